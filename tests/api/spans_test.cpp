// Objects of 8 to 40 KiB, which share runs of blocks in heaps that are not small
// (docs/design/heap.md, "Spans").
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

// As much as makes spans worth their while.
void make_heap() {
  const bool has_heap = GC_get_heap_size() >= 8 * kMiB || GC_expand_hp(8 * kMiB) != 0;
  ASSERT_TRUE(has_heap);
}

// A descriptor by which every other word is a pointer.
GC_descr half_of_the_words() {
  GC_word bitmap[GC_BITMAP_SIZE(void* [2])] = {};
  GC_set_bit(bitmap, 0);
  static const GC_descr descriptor = GC_make_descriptor(bitmap, 2);
  return descriptor;
}

struct Sort {
  const char* name;
  void* (*allocate)(std::size_t bytes);
  bool clear;
};
constexpr Sort kSorts[] = {
    {"plain", GC_malloc, true},
    {"atomic", GC_malloc_atomic, false},
    {"uncollectable", GC_malloc_uncollectable, true},
    {"ignore_off_page", GC_malloc_ignore_off_page, true},
    {"typed",
     [](std::size_t bytes) { return GC_malloc_explicitly_typed(bytes, half_of_the_words()); },
     true},
    {"typed_array",
     [](std::size_t bytes) {
       return GC_calloc_explicitly_typed(bytes / 16 + 1, 16, half_of_the_words());
     },
     true},
};

// Objects of all sorts and sizes that come and go by every way, and what they are to hold.
class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed) {
    table_.set(static_cast<void**>(GC_malloc_uncollectable(kObjects * sizeof(void*))));
  }
  ~Model() {
    for (std::size_t i = 0; i < kObjects; ++i) drop(i);
    GC_free(table_.get());
  }

  void step() {
    const std::size_t i = random_.below(kObjects);
    Known& known = known_[i];
    if (known.bytes == 0) return make(i);
    check(i);
    switch (random_.below(4)) {
      case 0:
        return resize(i);
      case 1:
        return drop(i);
      default:
        if (known.sort->allocate == GC_malloc_uncollectable) drop(i);
        return make(i);
    }
  }
  void check_all() {
    for (std::size_t i = 0; i < kObjects; ++i) {
      if (known_[i].bytes != 0) check(i);
    }
  }

 private:
  static constexpr std::size_t kObjects = 300;
  struct Known {
    const Sort* sort = nullptr;
    std::size_t bytes = 0;
    unsigned char first = 0;
    std::size_t offset = 0;  // of what the table has, an interior pointer
  };

  std::size_t size() {
    return random_.one_in(4) ? 1 + random_.below(100 * kKiB) : 8 * kKiB + random_.below(34 * kKiB);
  }
  unsigned char* object(std::size_t i) const {
    return static_cast<unsigned char*>(table_.get()[i]) - known_[i].offset;
  }
  // Of a typed object, the last words may be the library's.
  static std::size_t own_bytes(const Known& known) {
    return known.bytes < 64 ? known.bytes : known.bytes - 32;
  }
  void fill(std::size_t i, std::size_t from) {
    Known& known = known_[i];
    for (std::size_t at = from; at < own_bytes(known); ++at) {
      object(i)[at] = static_cast<unsigned char>(known.first + at % 251 % 7);
    }
  }
  void note(std::size_t i, void* p, std::size_t bytes) {
    Known& known = known_[i];
    known.bytes = bytes;
    // Only the beginning holds one that is so promised; the plain ones are held from anywhere.
    const bool anywhere =
        known.sort->allocate == GC_malloc || known.sort->allocate == GC_malloc_atomic;
    known.offset = anywhere ? random_.below(bytes) : 0;
    table_.get()[i] = static_cast<unsigned char*>(p) + known.offset;
    ASSERT_EQ(GC_base(static_cast<unsigned char*>(p) + random_.below(bytes)), p);
    ASSERT_GE(GC_size(p), bytes);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % 16, 0u);
  }
  void make(std::size_t i) {
    Known& known = known_[i];
    known.sort = &kSorts[random_.below(std::size(kSorts))];
    const std::size_t bytes = size();
    auto* p = static_cast<unsigned char*>(known.sort->allocate(bytes));
    ASSERT_NE(p, nullptr);
    if (known.sort->clear) {
      ASSERT_TRUE(std::all_of(p, p + bytes - std::min(bytes, std::size_t{32}),
                              [](unsigned char c) { return c == 0; }))
          << known.sort->name << " of " << bytes << " bytes";
    }
    // Small numbers: no pointers.
    known.first = static_cast<unsigned char>(random_.below(100));
    note(i, p, bytes);
    fill(i, 0);
  }
  void check(std::size_t i) {
    const Known& known = known_[i];
    const unsigned char* p = object(i);
    for (std::size_t at = 0; at < own_bytes(known); ++at) {
      ASSERT_EQ(p[at], static_cast<unsigned char>(known.first + at % 251 % 7))
          << known.sort->name << " of " << known.bytes << " bytes, at " << at;
    }
  }
  void resize(std::size_t i) {
    Known& known = known_[i];
    if (known.sort != &kSorts[0] && known.sort != &kSorts[1] && known.sort != &kSorts[2]) return;
    const std::size_t bytes = size();
    const std::size_t kept = std::min(own_bytes(known), bytes);
    void* p = GC_realloc(object(i), bytes);
    ASSERT_NE(p, nullptr);
    note(i, p, bytes);
    fill(i, std::min(kept, own_bytes(known)));
  }
  // By hand, or not.
  void drop(std::size_t i) {
    Known& known = known_[i];
    if (known.bytes == 0) return;
    const bool must_be_freed = known.sort->allocate == GC_malloc_uncollectable;
    if (must_be_freed || random_.one_in(2)) GC_free(object(i));
    table_.get()[i] = nullptr;
    known.bytes = 0;
  }

  Random random_;
  Root<void*> table_;
  Known known_[kObjects];
};

TEST(Spans, ObjectsKeepWhatIsWrittenToThem) {
  make_heap();
  Model model(test_seed());
  for (std::size_t round = 0; round < rounds(20); ++round) {
    for (int i = 0; i < 300; ++i) {
      model.step();
      if (HasFatalFailure()) return;
    }
    GC_gcollect();
    model.check_all();
  }
}

TEST(Spans, ThreadsShareThem) {
  make_heap();
  const std::uint64_t seed = test_seed();
  std::vector<std::thread> threads;
  GC_allow_register_threads();
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([seed, t] {
      GC_stack_base base;
      GC_get_stack_base(&base);
      GC_register_my_thread(&base);
      {
        Model model(seed + t);
        for (std::size_t i = 0; i < rounds(1500) && !HasFatalFailure(); ++i) model.step();
        model.check_all();
      }
      GC_unregister_my_thread();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Spans, WhatTheyHoldLives) {
  make_heap();
  Random random(test_seed());
  constexpr std::size_t kObjects = 60;
  Root<void*> table(static_cast<void**>(GC_malloc_uncollectable(kObjects * sizeof(void*))));
  Watch held;
  far_away([&] {
    for (std::size_t i = 0; i < kObjects; ++i) {
      const std::size_t bytes = 8 * kKiB + 16 + random.below(32 * kKiB);
      auto** words = static_cast<void**>(GC_malloc(bytes));
      table.get()[i] = words;
      for (int k = 0; k < 10; ++k) {
        void* small = GC_malloc_atomic(32);
        void*& word = words[random.below(bytes / sizeof(void*))];
        if (word != nullptr) continue;
        word = small;
        held.add(small);
      }
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  far_away([&] {
    for (std::size_t i = 0; i < kObjects; ++i) table.get()[i] = nullptr;
  });
  EXPECT_TRUE(most_collected(held));
  GC_free(table.get());
}

// Their elements are marked in steps, which wait as addresses in the midst of the array.
TEST(Spans, TypedArraysHoldTheirElements) {
  make_heap();
  for (const std::size_t words : {2, 3, 8, 70}) {
    GC_word bitmap[3] = {};
    GC_set_bit(bitmap, 1);
    const GC_descr descriptor = GC_make_descriptor(bitmap, words);
    for (std::size_t bytes = 8 * kKiB; bytes <= 42 * kKiB; bytes += 1500) {
      const std::size_t count = bytes / (words * sizeof(void*));
      Root<void*> array(static_cast<void**>(
          GC_calloc_explicitly_typed(count, words * sizeof(void*), descriptor)));
      Watch held;
      far_away([&] {
        for (std::size_t i = 0; i < count; ++i) {
          void* cell = GC_malloc_atomic(16);
          held.add(cell);
          array.get()[i * words + 1] = cell;
        }
      });
      collect();
      ASSERT_TRUE(all_alive(held)) << count << " elements of " << words << " words";
    }
  }
}

TEST(Spans, WhatIsDroppedDies) {
  make_heap();
  Watch dropped;
  far_away([&] {
    for (int i = 0; i < 500; ++i) dropped.add(GC_malloc(9000 + i % 7 * 5000));
  });
  EXPECT_TRUE(most_collected(dropped));
}

// As a block's objects, but for those that end their slot: a pointer one past the end, on a stack.
TEST(Spans, AnEndHoldsItsObject) {
  JD_OURS_ONLY("it adds a byte to each object");
  make_heap();
  for (const std::size_t bytes : {9088, 10912, 12288, 20480, 24576, 40960}) {
    std::size_t number = 0;
    Watch watch;
    char* volatile end = nullptr;
    far_away([&] {
      auto* p = static_cast<char*>(GC_malloc_atomic(bytes));
      ASSERT_GE(GC_size(p), bytes);  // more with padding
      number = watch.add(p);
      end = p + bytes;
    });
    collect();
    EXPECT_TRUE(watch.alive(number)) << bytes;
    EXPECT_EQ(GC_is_valid_displacement(end - 1), end - 1);
    end = nullptr;
  }
}

TEST(Spans, UncollectableBytesAreCounted) {
  make_heap();
  const GC_word before = GC_get_non_gc_bytes();
  std::vector<void*> objects;
  for (std::size_t i = 0; i < 40; ++i) objects.push_back(GC_malloc_uncollectable(9000 + i * 700));
  GC_word bytes = 0;
  for (void* p : objects) bytes += GC_size(p);
  EXPECT_EQ(GC_get_non_gc_bytes() - before, bytes);
  for (void*& p : objects) p = GC_realloc(p, GC_size(p) + 5000);
  bytes = 0;
  for (void* p : objects) bytes += GC_size(p);
  EXPECT_EQ(GC_get_non_gc_bytes() - before, bytes);
  for (void* p : objects) GC_free(p);
  EXPECT_EQ(GC_get_non_gc_bytes(), before);
}

// What a thread was about to clear when another forked is in the child as it was.
std::atomic<bool> stop_making{false};
volatile bool is_child = false;

struct Connection {
  GC_word is_made;
  GC_word is_open;
};
// What each thread is closing, and about to free.
constexpr std::size_t kConnections[] = {9000, 36000, 100000};
std::atomic<void*> closing[std::size(kConnections)];

int disclaim_connection(void* object) {
  for (const std::atomic<void*>& one : closing) {
    if (one == object) return 0;
  }
  const auto* connection = static_cast<volatile Connection*>(object);
  if (is_child && connection->is_made == 1 && connection->is_open == 0) _exit(7);
  return 0;
}

JD_CHILD(forks_beside_threads_that_make_connections) {
  GC_set_handle_fork(1);
  GC_INIT();
  GC_allow_register_threads();
  GC_expand_hp(8 * kMiB);
  const unsigned kind = GC_new_kind(GC_new_free_list(), 0, 1, 1);
  GC_register_disclaim_proc(static_cast<int>(kind), disclaim_connection, 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::size(kConnections); ++i) {
    threads.emplace_back([i, kind] {
      GC_stack_base base;
      GC_get_stack_base(&base);
      GC_register_my_thread(&base);
      while (!stop_making) {
        void* object = GC_generic_malloc(kConnections[i], static_cast<int>(kind));
        auto* connection = static_cast<volatile Connection*>(object);
        connection->is_open = 1;
        connection->is_made = 1;
        closing[i] = object;
        connection->is_open = 0;
        GC_free(object);
        closing[i] = nullptr;
      }
      GC_unregister_my_thread();
    });
  }
  int wrong = 0;
  for (std::size_t i = 0; i < rounds(100); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      is_child = true;
      GC_gcollect();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    wrong += status != 0 ? 1 : 0;
  }
  stop_making = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d children found stale words\n", wrong);
  return wrong;
}
TEST(Spans, AForksChildFindsNoStaleWords) {
  JD_SKIP_UNDER_TSAN("does not follow threads through a fork");
  JD_OURS_ONLY("it may find some");
  const ChildResult r = run_child("forks_beside_threads_that_make_connections");
  EXPECT_TRUE(r.ok()) << r;
}

// With a byte of padding, the largest small request is none.
JD_CHILD(asks_for_the_size_of_half_a_block) {
  GC_INIT();
  GC_expand_hp(8 * kMiB);
  for (int request = 8180; request <= 8192; ++request) {
    const std::size_t told = GC_get_size_map_at(request);
    const std::size_t size = GC_size(GC_malloc(static_cast<std::size_t>(request)));
    std::printf("%d: %zu, is %zu\n", request, told, size);
    if (told != size) return 1;
  }
  return 0;
}
TEST(Spans, TheSizeMapKnowsThem) {
  JD_OURS_ONLY("its sizes are its own");
  const ChildResult r = run_child("asks_for_the_size_of_half_a_block",
                                  {{"JACKDAW_PAD_OBJECTS", "1"}, {"JACKDAW_SPANS", "1"}});
  EXPECT_TRUE(r.ok()) << r;
}

// With whole blocks it would be half as much again.
JD_CHILD(keeps_many_of_ten_kilobytes) {
  GC_INIT();
  GC_expand_hp(8 * kMiB);
  constexpr std::size_t kObjects = 2000;
  constexpr std::size_t kBytes = 10900;
  Root<void*> table(static_cast<void**>(GC_malloc_uncollectable(kObjects * sizeof(void*))));
  for (std::size_t i = 0; i < kObjects; ++i) table.get()[i] = GC_malloc_atomic(kBytes);
  GC_gcollect();
  const std::size_t used = GC_get_heap_size() - GC_get_free_bytes();
  std::printf("%zu bytes in use for %zu\n", used, kObjects * kBytes);
  return used > kObjects * kBytes / 20 * 21;
}
TEST(Spans, WasteLittle) {
  JD_OURS_ONLY("it rounds up to pages");
  const ChildResult r = run_child("keeps_many_of_ten_kilobytes");
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(frees_slots_twice) {
  GC_INIT();
  GC_expand_hp(8 * kMiB);
  auto* other = GC_malloc(9000);
  auto* p = static_cast<char*>(GC_malloc(9000));
  GC_free(p + 16);
  GC_free(p);
  GC_free(p);
  GC_reachable_here(other);
  return 0;
}
TEST(Spans, WrongFreesAreReported) {
  JD_OURS_ONLY("it crashes");
  const ChildResult r = run_child("frees_slots_twice");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.err.find("not the beginning of an object"), std::string::npos) << r;
  EXPECT_NE(r.err.find("already free"), std::string::npos) << r;
}

}  // namespace
}  // namespace jd::test

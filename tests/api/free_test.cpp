// What is freed by hand (docs/design/alloc.md, "Explicit frees").
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

// Addresses that hold nothing.
using Hidden = std::vector<GC_word>;

Hidden hidden(const std::vector<void*>& objects) {
  Hidden result;
  for (void* object : objects) result.push_back(GC_HIDE_POINTER(object));
  std::sort(result.begin(), result.end());
  return result;
}

// How many of them are among the others.
std::size_t common(const Hidden& a, const Hidden& b) {
  Hidden both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.size();
}

// More than a thread keeps to itself. An uncollectable object: what it leads to lives.
constexpr std::size_t kMany = 2000;

Hidden allocate_many(std::size_t bytes) {
  std::vector<void*> objects(kMany);
  Root<void*> root(static_cast<void**>(GC_malloc(kMany * sizeof(void*))));
  for (std::size_t i = 0; i < kMany; ++i) objects[i] = root.get()[i] = GC_malloc(bytes);
  return hidden(objects);
}

TEST(Free, SlotsServeTheNextRequestsOfTheirSize) {
  JD_OURS_ONLY("where objects come to lie is each library's own");
  GC_INIT();
  GC_disable();
  constexpr std::size_t kBytes = 72;
  for (void* (*allocate)(std::size_t) :
       {GC_malloc, GC_malloc_atomic, GC_malloc_uncollectable, GC_malloc_atomic_uncollectable}) {
    std::array<void*, 40> objects{};
    for (void*& object : objects) {
      object = allocate(kBytes);
      std::memset(object, 0xff, kBytes);
    }
    const std::vector<void*> freed = {objects[3], objects[17], objects[30]};
    for (void* object : freed) GC_free(object);
    // More than a new block has, all of which is ready.
    std::vector<void*> got(300);
    for (void*& object : got) object = allocate(kBytes);
    const bool is_clear = allocate == GC_malloc || allocate == GC_malloc_uncollectable;
    for (void* object : got) {
      const auto* bytes = static_cast<const char*>(object);
      EXPECT_TRUE(!is_clear || std::all_of(bytes, bytes + kBytes, [](char c) { return c == 0; }));
    }
    EXPECT_EQ(common(hidden(got), hidden(freed)), freed.size());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end()) << "handed out twice";
  }
  GC_enable();
}

// In any order, with others between, and though the program has written to the object's beginning.
JD_CHILD(free_twice) {
  GC_INIT();
  GC_disable();
  for (const std::size_t bytes : {16, 40, 200, 3000}) {
    std::vector<void*> objects(30);
    for (void*& object : objects) object = GC_malloc(bytes);
    for (std::size_t i = 0; i < 20; i += 2) GC_free(objects[i]);
    *static_cast<void**>(objects[4]) = objects[5];
    for (std::size_t i = 0; i < 20; i += 2) GC_free(objects[i]);
    std::vector<void*> got(60);
    for (void*& object : got) object = GC_malloc(bytes);
    got.insert(got.end(), objects.begin() + 20, objects.end());
    for (std::size_t i = 1; i < 20; i += 2) got.push_back(objects[i]);
    std::sort(got.begin(), got.end());
    if (std::adjacent_find(got.begin(), got.end()) != got.end()) return 1;
  }
  return 0;
}
TEST(Free, TwiceIsToldAndIgnored) {
  JD_OURS_ONLY("it hands the object out twice");
  const ChildResult r = run_child("free_twice");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(lines_with(r.err, "already free"), 40u) << r;
}

// In a large heap of one thread's, whose magazines are asked instead of the object: by another one,
// which has never allocated anything.
JD_CHILD(free_twice_by_another) {
  GC_INIT();
  GC_expand_hp(std::size_t{32} << 20);
  GC_disable();
  constexpr std::size_t kBytes = 40;
  std::array<void*, 30> objects{};
  for (void*& object : objects) object = GC_malloc_atomic(kBytes);
  // A thread's first free makes its magazine for these, and puts this one there, or not.
  GC_free(objects[29]);
  GC_free(objects[7]);
  GcThread([&] { GC_free(objects[7]); }).join();
  std::vector<void*> got(60);
  for (void*& object : got) object = GC_malloc_atomic(kBytes);
  std::vector<void*> others(60);
  GcThread([&] {
    for (void*& object : others) object = GC_malloc_atomic(kBytes);
  }).join();
  got.insert(got.end(), others.begin(), others.end());
  std::sort(got.begin(), got.end());
  return std::adjacent_find(got.begin(), got.end()) != got.end() ? 1 : 0;
}
TEST(Free, TwiceByAThreadThatNeverAllocatedIsTold) {
  JD_OURS_ONLY("it hands the object out twice");
  const ChildResult r = run_child("free_twice_by_another");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(lines_with(r.err, "already free"), 1u) << r;
}

// An object that was had again is an object, whether or not the program has written to it.
JD_CHILD(free_what_was_had_again) {
  GC_INIT();
  for (void* (*allocate)(std::size_t) : {GC_malloc, GC_malloc_atomic}) {
    std::array<void*, 25> objects{};
    for (std::size_t round = 0; round < rounds(300); ++round) {
      for (void*& object : objects) object = allocate(48);
      for (void* object : objects) GC_free(object);
      if (round % 100 == 99) GC_gcollect();
    }
  }
  return 0;
}
TEST(Free, WhatWasHadAgainMayBeFreedAgain) {
  const ChildResult r = run_child("free_what_was_had_again");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "");
}

TEST(Free, ThreadsKeepNoSlotsThroughACollection) {
  JD_OURS_ONLY("what is free has a base there");
  GC_INIT();
  constexpr std::size_t kBytes = 1008;
  std::atomic<int> state{0};
  Hidden freed;
  GcThread other([&] {
    far_away([&] {
      std::vector<void*> objects(8);
      for (void*& object : objects) object = GC_malloc(kBytes);
      freed = hidden(objects);
      for (void* object : objects) GC_free(object);
    });
    clear_stack();
    state = 1;
    while (state.load() == 1) usleep(100);
  });
  while (state.load() == 0) usleep(100);
  GC_gcollect();
  const auto is_free = [](GC_word object) { return GC_base(GC_REVEAL_POINTER(object)) == nullptr; };
  // A stale word may hold one or the other.
  EXPECT_GE(std::count_if(freed.begin(), freed.end(), is_free), 6);
  state = 2;
  other.join();
}

TEST(Free, OthersHaveTheSlotsOfAThreadThatEnded) {
  JD_OURS_ONLY("where objects come to lie is each library's own");
  GC_INIT();
  GC_disable();
  constexpr std::size_t kBytes = 496;
  Hidden freed;
  GcThread([&] {
    std::vector<void*> objects(10);
    for (void*& object : objects) object = GC_malloc(kBytes);
    freed = hidden(objects);
    for (void* object : objects) GC_free(object);
  }).join();
  EXPECT_EQ(common(allocate_many(kBytes), freed), freed.size());
  GC_enable();
}

// The child has the slots of a thread that it has not, and that may be in the midst of a free.
JD_CHILD(free_and_fork) {
  GC_set_handle_fork(1);
  GC_INIT();
  std::atomic<bool> ends{false};
  int worst = 0;
  {
    const GcThread freeing([&ends] {
      std::array<void*, 64> objects{};
      for (std::size_t i = 0; !ends.load(); i = (i * 5 + 1) % objects.size()) {
        if (objects[i] != nullptr) GC_free(objects[i]);
        objects[i] = GC_malloc(16 + i * 8);
      }
      for (void* object : objects) GC_free(object);
    });
    for (std::size_t i = 0; i < rounds(100) && worst == 0; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(30);
        std::array<void*, 64> objects{};
        for (std::size_t k = 0; k < 500; ++k) {
          void*& object = objects[k * 5 % objects.size()];
          if (object != nullptr && *static_cast<GC_word*>(object) != (k * 5 % 64)) _exit(1);
          if (object != nullptr) GC_free(object);
          object = GC_malloc(16 + k % 64 * 8);
          *static_cast<GC_word*>(object) = k * 5 % 64;
          if (k % 100 == 50) GC_gcollect();
        }
        _exit(0);
      }
      waitpid(pid, &worst, 0);
    }
    ends = true;
  }
  return worst == 0 ? 0 : 1;
}
TEST(Free, GoesOnInTheChildOfAFork) {
  const ChildResult r = run_child("free_and_fork", {}, 120);
  EXPECT_TRUE(r.ok()) << r;
}

// A thread that the child has not was within GC_free or an allocation: what it had in hand there
// passes for free in none of the child's new objects.
JD_CHILD(fork_beside_frees) {
  GC_set_handle_fork(1);
  GC_INIT();
  std::atomic<bool> ends{false};
  int worst = 0;
  {
    const auto replace_all = [&ends] {
      Root<void*> root(static_cast<void**>(GC_malloc(64 * sizeof(void*))));
      for (std::size_t i = 1; !ends.load(); i = i * 5 + 3) {
        void*& object = root.get()[i / 64 % 64];
        if (object != nullptr) {
          GC_free(object);
          object = nullptr;
        } else {
          object = GC_malloc_atomic(32);
        }
      }
    };
    const GcThread one(replace_all);
    const GcThread another(replace_all);
    for (std::size_t i = 0; i < rounds(300) && worst == 0; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(30);
        GC_gcollect();
        // So many that the slots of before are among them.
        std::vector<void*> objects(3000);
        Root<void*> root(static_cast<void**>(GC_malloc(objects.size() * sizeof(void*))));
        for (std::size_t k = 0; k < objects.size(); ++k) {
          objects[k] = root.get()[k] = GC_malloc_atomic(32);
        }
        for (void*& object : objects) {
          // Null if it passed for a free one.
          void* const moved = GC_realloc(object, 40);
          if (moved == nullptr) _exit(1);
        }
        _exit(0);
      }
      waitpid(pid, &worst, 0);
    }
    ends = true;
  }
  return worst == 0 ? 0 : 1;
}
TEST(Free, NothingPassesForFreeInTheChildOfAFork) {
  const ChildResult r = run_child("fork_beside_frees", {}, 120);
  EXPECT_TRUE(r.ok()) << r;
}

// What threads had ready for uncollectable objects is free in the child, which has not the threads.
JD_CHILD(fork_beside_uncollectable) {
  GC_set_handle_fork(1);
  GC_INIT();
  constexpr std::size_t kThreads = 10;
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> ends{false};
  std::vector<std::unique_ptr<GcThread>> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.push_back(std::make_unique<GcThread>([&] {
      for (std::size_t bytes = 256; bytes <= 2048; bytes *= 2) {
        std::array<void*, 64> objects{};
        for (void*& object : objects) object = GC_malloc_uncollectable(bytes);
        for (void* object : objects) GC_free(object);
      }
      ++ready;
      while (!ends.load()) usleep(1000);
    }));
  }
  while (ready.load() < kThreads) usleep(1000);
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    GC_gcollect();
    GC_gcollect();
    // All but a few blocks, of the main thread's.
    _exit(GC_get_heap_size() - GC_get_free_bytes() < (std::size_t{256} << 10) ? 0 : 1);
  }
  waitpid(pid, &status, 0);
  ends = true;
  threads.clear();
  return status == 0 ? 0 : 1;
}
TEST(Free, AForksChildHasTheSlotsThatThreadsHadReady) {
  const ChildResult r = run_child("fork_beside_uncollectable");
  EXPECT_TRUE(r.ok()) << r;
}

// Collections that the program's function stops when the world stands.
JD_CHILD(free_and_stop_collections) {
  GC_INIT();
  // Eight objects are a block's, and magazines can hold so many: those of one block are freed
  // first.
  constexpr std::size_t kBytes = 2048;
  constexpr std::size_t kOfBlock = 8;
  const auto block_of = [](const void* object) { return GC_HIDE_POINTER(object) >> 14; };
  static int asked;
  std::array<void*, 32> objects{};
  const auto replace_all = [&] {
    for (void*& object : objects) object = GC_malloc_uncollectable(kBytes);
    void* const last = objects.back();
    std::sort(objects.begin(), objects.end());
    for (std::size_t i = 0; i + kOfBlock <= objects.size(); ++i) {
      const auto first = objects.begin() + static_cast<std::ptrdiff_t>(i);
      const auto block = block_of(*first);
      if (block != block_of(first[kOfBlock - 1]) || block == block_of(last)) continue;
      std::rotate(objects.begin(), first, first + kOfBlock);
      break;
    }
    for (void* object : objects) GC_free(object);
  };
  replace_all();
  const std::size_t before = GC_get_heap_size();
  for (int i = 0; i < 1000; ++i) {
    replace_all();
    asked = 0;
    if (GC_try_to_collect([] { return asked++ & 1; }) != 0) return 2;
  }
  return GC_get_heap_size() < before + (std::size_t{512} << 10) ? 0 : 1;
}
TEST(Free, CollectionsThatAreStoppedLoseNothing) {
  JD_OURS_ONLY("when the function is asked is each library's own");
  const ChildResult r = run_child("free_and_stop_collections");
  EXPECT_TRUE(r.ok()) << r;
}

// A program that has all its memory from what it freed before.
TEST(Free, FinalizersRunThoughNothingNewIsNeeded) {
  static std::atomic<int> finalized;
  finalized = 0;
  std::array<void*, 8> objects{};
  Root<void*> root(static_cast<void**>(GC_malloc(sizeof objects)));
  const auto replace_at = [&root](std::size_t i) {
    void*& object = root.get()[i % 8];
    if (object != nullptr) GC_free(object);
    object = GC_malloc(100);
  };
  for (std::size_t i = 0; i < 100; ++i) replace_at(i * 5);
  run_threads(1, [](std::size_t) {
    for (int i = 0; i < 50; ++i) {
      GC_register_finalizer(
          GC_malloc(32), [](void*, void*) { ++finalized; }, nullptr, nullptr, nullptr);
    }
  });
  // Not by GC_gcollect, which would run them itself.
  const GC_word number = GC_get_gc_no();
  while (GC_get_gc_no() == number) opaque(GC_malloc_atomic(5000));
  for (std::size_t i = 0; i < 1000000 && finalized == 0; ++i) replace_at(i * 5);
  EXPECT_GT(finalized.load(), 0);
}

// What a thread keeps for objects of one size serves those of others before the heap grows.
JD_CHILD(free_at_the_limit) {
  GC_set_max_heap_size(std::size_t{8} << 20);
  GC_INIT();
  GC_disable();
  GC_set_warn_proc(GC_ignore_warn_proc);
  std::vector<void*> objects;
  while (void* object = GC_malloc_uncollectable(1000)) objects.push_back(object);
  std::shuffle(objects.begin(), objects.end(), std::mt19937(1));
  for (void* object : objects) GC_free(object);
  return GC_malloc_atomic(std::size_t{6} << 20) != nullptr ? 0 : 1;
}
TEST(Free, RoomForOneSizeIsRoomForAnother) {
  JD_OURS_ONLY("bdwgc's blocks stay what they are until a collection");
  const ChildResult r = run_child("free_at_the_limit");
  EXPECT_TRUE(r.ok()) << r;
}

// Objects that threads free for each other, in random order, are whole until then. A shadow holds
// what each should contain.
struct Slot {
  void* object;
  std::size_t bytes;
  unsigned char fill;
};

bool is_whole(const Slot& slot) {
  const auto* bytes = static_cast<const unsigned char*>(slot.object);
  return std::all_of(bytes, bytes + slot.bytes, [&](unsigned char c) { return c == slot.fill; });
}

void replace(Slot* slot, Random* random, std::atomic<int>* damaged) {
  if (slot->object != nullptr) {
    if (!is_whole(*slot)) ++*damaged;
    GC_free(slot->object);
  }
  slot->bytes = 1 + random->below(random->one_in(8) ? 3000 : 120);
  slot->fill = static_cast<unsigned char>(random->below(255));
  slot->object = random->one_in(2) ? GC_malloc(slot->bytes) : GC_malloc_atomic(slot->bytes);
  std::memset(slot->object, slot->fill, slot->bytes);
}

TEST(Free, ObjectsAreWholeUntilThenInAnyOrderAndThread) {
  GC_INIT();
  const std::uint64_t seed = test_seed();
  constexpr std::size_t kSlots = 1000;
  Root<Slot> slots(static_cast<Slot*>(GC_malloc(kSlots * sizeof(Slot))));
  std::array<pthread_mutex_t, 16> locks{};
  for (pthread_mutex_t& lock : locks) pthread_mutex_init(&lock, nullptr);
  std::atomic<int> damaged{0};
  run_threads(3, [&](std::size_t thread) {
    Random random(seed + thread);
    for (std::size_t i = 0; i < rounds(100000); ++i) {
      const std::size_t at = random.below(kSlots);
      pthread_mutex_t& lock = locks[at % locks.size()];
      // ThreadSanitizer keeps a signal back while its thread waits for a mutex, whose owner may be
      // waiting for the answer to it.
      while (pthread_mutex_trylock(&lock) != 0) sched_yield();
      replace(&slots.get()[at], &random, &damaged);
      pthread_mutex_unlock(&lock);
      if (random.one_in(5000)) GC_gcollect();
    }
  });
  EXPECT_EQ(damaged.load(), 0);
}

}  // namespace
}  // namespace jd::test

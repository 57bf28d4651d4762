// What must not come between two instructions: a collection at the wrong moment of a free, of the
// making of a list, or of a question about another thread's block; a free at the wrong moment of a
// collection. Each case runs against the
// clock, since the moment is short; a child, because a failure leaves the heap in ruins.
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLong = std::chrono::milliseconds(2500);

void start(void* (*body)(void*), std::size_t number) {
  pthread_t thread;
  if (GC_pthread_create(&thread, nullptr, body, reinterpret_cast<void*>(number)) != 0) _exit(9);
}

// --- Freeing a large object
// --------------------------------------------------------------------------

constexpr std::size_t kLarge = 40000;

void* allocate_and_free(void*) {
  for (;;) GC_free(GC_malloc_atomic(kLarge));
}

void* allocate_and_check(void* number) {
  const auto mine = reinterpret_cast<std::size_t>(number);
  for (;;) {
    auto* volatile object = static_cast<volatile std::size_t*>(GC_malloc_atomic(kLarge));
    if (object == nullptr) continue;
    object[0] = mine;
    for (int i = 0; i < 2000; ++i) asm volatile("" : : : "memory");
    if (GC_base(const_cast<std::size_t*>(object)) != object || object[0] != mine) {
      std::fprintf(stderr, "a live object is free or another thread's\n");
      _exit(1);
    }
  }
}

JD_CHILD(free_large_in_a_full_heap) {
  // So small that the threads collect all the time.
  GC_set_max_heap_size(500000);
  GC_set_warn_proc(GC_ignore_warn_proc);
  GC_INIT();
  for (std::size_t i = 1; i <= 3; ++i) start(allocate_and_free, i);
  for (std::size_t i = 1; i <= 3; ++i) start(allocate_and_check, i);
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) usleep(1000);
  _exit(0);
}

TEST(Races, AnObjectIsFreedOnceOnly) {
  const ChildResult r = run_child("free_large_in_a_full_heap", {}, 60);
  EXPECT_EQ(r.status, 0) << r;
  EXPECT_EQ(r.err, "") << r;
}

// --- Questions about objects in another thread's block
// -----------------------------------------------

std::array<std::atomic<void*>, 4096> mailbox;

void* produce(void*) {
  for (std::size_t i = 0;; i += 7) {
    void* none = nullptr;
    mailbox[i % mailbox.size()].compare_exchange_strong(none, GC_malloc(24));
  }
}

void* resize_and_free(void*) {
  for (std::size_t i = 0;; ++i) {
    void* object = mailbox[(i * 2654435761u >> 7) % mailbox.size()].exchange(nullptr);
    if (object == nullptr) continue;
    // Refused with a message, if it is taken for free.
    if (GC_realloc(object, 24) != object) {
      std::fprintf(stderr, "a live object was not resized in place\n");
      _exit(1);
    }
    if (i % 2 != 0) GC_free(object);
  }
}

JD_CHILD(resize_in_anothers_block) {
  GC_INIT();
  for (std::size_t i = 0; i < 2; ++i) start(produce, i);
  for (std::size_t i = 0; i < 2; ++i) start(resize_and_free, i);
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) usleep(1000);
  _exit(0);
}

TEST(Races, AnObjectInAnothersBlockIsNotFree) {
  const ChildResult r = run_child("resize_in_anothers_block", {}, 60);
  EXPECT_EQ(r.status, 0) << r;
  EXPECT_EQ(r.err, "") << r;
}

// --- Lists of objects without pointers
// ---------------------------------------------------------------

constexpr std::size_t kListMakers = 3;
// Static data: each word holds the first object of its list; the root function names the others.
std::array<void*, kListMakers> lists;

void push_lists() {
  for (void* list : lists) {
    for (void* p = list; p != nullptr; p = GC_NEXT(p)) {
      GC_push_all(p, static_cast<char*>(p) + sizeof(void*));
    }
  }
}

void* make_lists(void* number) {
  void** list = &lists[reinterpret_cast<std::size_t>(number)];
  for (;;) {
    *list = nullptr;
    GC_generic_malloc_many(16, GC_I_PTRFREE, list);
    int place = 0;
    for (void* p = *list; p != nullptr; p = GC_NEXT(p), ++place) {
      if (GC_base(p) != p) {
        std::fprintf(stderr, "element %d of a new list is free\n", place);
        _exit(1);
      }
    }
  }
}

JD_CHILD(lists_while_collecting) {
  GC_INIT();
  GC_set_push_other_roots(push_lists);
  for (std::size_t i = 0; i < kListMakers; ++i) start(make_lists, i);
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) {
    GC_gcollect();
    usleep(50);
  }
  _exit(0);
}

TEST(Races, ANewListIsWhole) {
  JD_OURS_ONLY("bdwgc's lists are free lists until they are returned");
  const ChildResult r = run_child("lists_while_collecting", {}, 60);
  EXPECT_EQ(r.status, 0) << r;
  EXPECT_EQ(r.err, "") << r;
}

// --- Freeing by a thread that is never stopped
// -----------------------------------------------------------

constexpr std::size_t kForeign = 50000;
constexpr std::size_t kFreers = 4;

// Objects that nothing holds: what frees them looks elsewhere.
void** foreign;
std::atomic<std::size_t> freers;

void* free_a_share(void* number) {
  for (auto i = reinterpret_cast<std::size_t>(number); i < kForeign; i += kFreers) {
    GC_free(foreign[i]);
  }
  --freers;
  return nullptr;
}

// Objects that only a free ends, while this thread collects.
int free_beside_collections(void* (*body)(void*)) {
  foreign = static_cast<void**>(std::malloc(kForeign * sizeof(void*)));
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) {
    for (std::size_t i = 0; i < kForeign; ++i) foreign[i] = GC_malloc_atomic_uncollectable(16);
    freers = kFreers;
    std::array<pthread_t, kFreers> threads;
    for (std::size_t i = 0; i < kFreers; ++i) {
      if (pthread_create(&threads[i], nullptr, body, reinterpret_cast<void*>(i)) != 0) return 9;
    }
    while (freers != 0) GC_gcollect();
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    for (std::size_t i = 0; i < kForeign; ++i) {
      if (GC_base(foreign[i]) == nullptr) continue;
      std::fprintf(stderr, "object %zu was freed and is still there\n", i);
      return 1;
    }
  }
  return 0;
}

JD_CHILD(free_in_unknown_threads) {
  GC_INIT();
  return free_beside_collections(free_a_share);
}

JD_CHILD(free_in_blocking_sections) {
  GC_INIT();
  GC_allow_register_threads();
  return free_beside_collections([](void* number) -> void* {
    GC_stack_base base;
    GC_get_stack_base(&base);
    GC_register_my_thread(&base);
    GC_do_blocking(free_a_share, number);
    GC_unregister_my_thread();
    return nullptr;
  });
}

TEST(Races, ACollectionUndoesNoFreeOfAThreadThatItDoesNotStop) {
  JD_OURS_ONLY("bdwgc knows of no slot whether it is free");
  for (const char* child : {"free_in_unknown_threads", "free_in_blocking_sections"}) {
    const ChildResult r = run_child(child, {{"JACKDAW_VERIFY", "0"}}, 60);
    EXPECT_EQ(r.status, 0) << child << r;
    EXPECT_EQ(r.err, "") << child << r;
  }
}

// --- Results of threads whose handles are reused
// ------------------------------------------------------------

constexpr std::size_t kNodes = 50;

void* return_list(void*) { return make_list(kNodes); }

std::atomic<bool> joined_enough{false};

void* create_and_join(void*) {
  while (!joined_enough) {
    pthread_t thread;
    if (GC_pthread_create(&thread, nullptr, return_list, nullptr) != 0) _exit(9);
    // Meanwhile the thread ends, and its result is nowhere but with the collector.
    usleep(300);
    void* list = nullptr;
    GC_pthread_join(thread, &list);
    if (list_length(list) == kNodes) continue;
    std::fprintf(stderr, "a thread's result was reclaimed before the thread was joined\n");
    _exit(1);
  }
  return nullptr;
}

JD_CHILD(join_beside_new_threads) {
  GC_INIT();
  std::array<pthread_t, 4> threads{};
  for (pthread_t& thread : threads) {
    if (GC_pthread_create(&thread, nullptr, create_and_join, nullptr) != 0) _exit(9);
  }
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) {
    GC_gcollect();
    usleep(50);
  }
  joined_enough = true;
  for (pthread_t thread : threads) GC_pthread_join(thread, nullptr);
  return 0;
}

TEST(Races, AJoinForgetsTheResultOfItsOwnThread) {
  const ChildResult r = run_child("join_beside_new_threads", {{"JACKDAW_POISON", "1"}}, 60);
  EXPECT_EQ(r.status, 0) << r;
  EXPECT_EQ(r.err, "") << r;
}

}  // namespace
}  // namespace jd::test

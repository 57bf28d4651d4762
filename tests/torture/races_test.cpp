// What must not come between two instructions: a collection at the wrong moment of a free, of the
// making of a list, or of a question about another thread's block. Each case runs against the
// clock, since the moment is short; a child, because a failure leaves the heap in ruins.
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>

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

}  // namespace
}  // namespace jd::test

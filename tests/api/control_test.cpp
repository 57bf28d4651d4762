// Collecting on request, switching the collector off, and what the statistics say.
#include <unistd.h>
#include <cstdlib>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

TEST(Control, ACollectionIsCounted) {
  const GC_word before = GC_get_gc_no();
  GC_gcollect();
  EXPECT_EQ(GC_get_gc_no(), before + 1);
  GC_gcollect_and_unmap();
  EXPECT_GE(GC_get_gc_no(), before + 2);
}

TEST(Control, AllocationCollectsByItself) {
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 10000000 && GC_get_gc_no() < before + 3; ++i) opaque(GC_malloc(1000));
  EXPECT_GE(GC_get_gc_no(), before + 3);
}

TEST(Control, DisablingNests) {
  EXPECT_EQ(GC_is_disabled(), 0);
  GC_disable();
  GC_disable();
  EXPECT_NE(GC_is_disabled(), 0);
  const GC_word before = GC_get_gc_no();
  GC_gcollect();
  for (int i = 0; i < 100000; ++i) opaque(GC_malloc(1000));
  EXPECT_EQ(GC_get_gc_no(), before);
  GC_enable();
  EXPECT_NE(GC_is_disabled(), 0);
  GC_gcollect();
  EXPECT_EQ(GC_get_gc_no(), before);
  GC_enable();
  EXPECT_EQ(GC_is_disabled(), 0);
  GC_gcollect();
  EXPECT_EQ(GC_get_gc_no(), before + 1);
}

// A heap that had to grow while collections were off, with free blocks left in it. Of a process of
// its own, whose heap is small before.
GC_word grow_while_disabled() {
  GC_INIT();
  GC_gcollect();
  GC_disable();
  std::vector<void*> large;
  large.reserve(20);
  for (int i = 0; i < 20; ++i) large.push_back(GC_malloc(1 << 20));
  for (int i = 0; i < 100000; ++i) opaque(GC_malloc(1000));
  for (void* object : large) GC_free(object);
  GC_enable();
  return GC_get_gc_no();
}

JD_CHILD(overdue_small) {
  const GC_word before = grow_while_disabled();
  // Of a size that has no block yet.
  opaque(GC_malloc(400));
  std::printf("%d", static_cast<int>(GC_get_gc_no() - before));
  return 0;
}
JD_CHILD(overdue_large) {
  const GC_word before = grow_while_disabled();
  opaque(GC_malloc(100000));
  std::printf("%d", static_cast<int>(GC_get_gc_no() - before));
  return 0;
}

// Not only when the heap is full.
TEST(Control, ACollectionThatWasPutOffComesSoonAfter) {
  JD_OURS_ONLY("fills the heap first");
  for (const char* child : {"overdue_small", "overdue_large"}) {
    // Whole, not in steps.
    const ChildResult r = run_child(child, {{"GC_PAUSE_TIME_TARGET", kUnset}});
    ASSERT_TRUE(r.ok()) << child << r;
    EXPECT_EQ(r.out, "1") << child;
  }
}

// Nor by a thread that was about to collect, and waited for the lock.
TEST(Control, NoCollectionBeginsOnceTheyAreDisabled) {
  std::atomic<bool> ready{false};
  std::atomic<bool> go{false};
  GcThread other([&] {
    opaque(GC_malloc(16));
    ready = true;
    while (!go.load()) usleep(100);
    GC_gcollect();
  });
  while (!ready.load()) usleep(100);
  GC_alloc_lock();
  go = true;
  usleep(50000);  // by now it waits for the lock, as a rule
  ++GC_dont_gc;
  const GC_word before = GC_get_gc_no();
  GC_alloc_unlock();
  other.join();
  EXPECT_EQ(GC_get_gc_no(), before);
  GC_enable();
}

TEST(Control, NothingDiesWhileDisabled) {
  GC_disable();
  Watch watch;
  far_away([&] {
    for (int i = 0; i < 1000; ++i) watch.add(GC_malloc(100));
  });
  collect();
  EXPECT_TRUE(all_alive(watch));
  GC_enable();
  EXPECT_TRUE(most_collected(watch));
}

int never_stop() { return 0; }
int always_stop() { return 1; }

TEST(Control, TryToCollectAsksItsFunction) {
  const GC_word before = GC_get_gc_no();
  EXPECT_EQ(GC_try_to_collect(never_stop), 1);
  EXPECT_EQ(GC_get_gc_no(), before + 1);
  EXPECT_EQ(GC_try_to_collect(always_stop), 0);
  EXPECT_NE(GC_get_stop_func(), nullptr);
  GC_disable();
  EXPECT_EQ(GC_try_to_collect(never_stop), 0);
  GC_enable();
}

TEST(Control, AnAbandonedCollectionLosesNothing) {
  Watch watch;
  void* list = make_list(10000);
  watch.add(list);
  // At every moment at which the function is asked.
  int given_up = 0;
  for (int i = 0; i < 20; ++i) {
    static int asked;
    static int enough;
    asked = 0;
    enough = i / 2;
    if (GC_try_to_collect([]() -> int { return ++asked > enough; }) == 0) ++given_up;
    opaque(make_list(1000));
    EXPECT_EQ(list_length(list), 10000u);
  }
  EXPECT_GE(given_up, 4) << "none was given up after it had begun";
  collect();
  EXPECT_TRUE(all_alive(watch));
  EXPECT_EQ(list_length(list), 10000u);
}

// So that a collection may have so much time and no more.
TEST(Control, TheFunctionIsAskedWhileObjectsAreMarked) {
  struct Tree {
    Tree* left;
    Tree* right;
  };
  static const auto make = [](auto self, int depth) -> Tree* {
    auto* tree = static_cast<Tree*>(GC_malloc(sizeof(Tree)));
    if (depth == 0) return tree;
    tree->left = self(self, depth - 1);
    tree->right = self(self, depth - 1);
    return tree;
  };
  // Where every allocation is dear, a tree that is soon marked.
  const bool is_small = rounds(1000) < 1000;
  Tree* volatile root = make(make, is_small ? 12 : 17);
  static int asked;
  asked = 0;
  EXPECT_EQ(GC_try_to_collect([] { return ++asked > 1000000 ? 1 : 0; }), 1);
  // A stack of a few entries is empty before it is asked, and the rest found otherwise.
  const bool has_stack = std::getenv("JACKDAW_MARK_STACK") == nullptr;
  EXPECT_GE(asked, is_small || !has_stack ? 3 : 20);
  const int all = asked;
  asked = 0;
  static int enough;
  // How often it is asked depends on how much goes through the rings, which the marker finds out by
  // time: 110 to 260 times.
  enough = all / 8;
  EXPECT_EQ(GC_try_to_collect([] { return ++asked > enough ? 1 : 0; }), 0);
  EXPECT_EQ(asked, enough + 1);
  EXPECT_NE(root->left, nullptr);
}

TEST(Control, ACollectionThatAllocationStartsAsksTheStopFunction) {
  JD_OURS_ONLY("bdwgc makes some of these collections whatever the function says");
  static int asked;
  asked = 0;
  GC_gcollect();
  GC_set_stop_func([]() -> int { return ++asked > 2; });
  const GC_word before = GC_get_gc_no();
  // The third answer, and all that follow, say no: the heap grows instead, for a while.
  const std::size_t enough = (GC_get_free_bytes() + GC_get_unmapped_bytes()) / 1000 + 20000;
  for (std::size_t i = 0; i < enough && asked <= 5; ++i) opaque(GC_malloc(1000));
  EXPECT_GT(asked, 5);
  EXPECT_EQ(GC_get_gc_no(), before);
  for (std::size_t i = 0; i < 20 * enough && GC_get_gc_no() == before; ++i) opaque(GC_malloc(1000));
  EXPECT_GT(GC_get_gc_no(), before);
  GC_set_stop_func(never_stop);
}

TEST(Control, CollectALittleEnds) {
  for (int i = 0; i < 100; ++i) opaque(GC_malloc(1000));
  int steps = 0;
  while (GC_collect_a_little() != 0 && steps < 100000) ++steps;
  EXPECT_LT(steps, 100000);
}

TEST(Control, AutomaticCollectionCanBeSwitchedOff) {
  GC_set_disable_automatic_collection(1);
  EXPECT_NE(GC_get_disable_automatic_collection(), 0);
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 100000; ++i) opaque(GC_malloc(1000));
  EXPECT_EQ(GC_get_gc_no(), before);
  GC_gcollect();
  EXPECT_EQ(GC_get_gc_no(), before + 1);
  GC_set_disable_automatic_collection(0);
}

TEST(Control, ExpandingTheHeap) {
  const std::size_t before = GC_get_heap_size();
  EXPECT_EQ(GC_expand_hp(std::size_t{16} << 20), 1);
  EXPECT_GE(GC_get_heap_size(), before + (std::size_t{16} << 20));
  EXPECT_GE(GC_get_free_bytes(), std::size_t{16} << 20);
}

// Before the first collection, too, and however the heap would grow.
JD_CHILD(the_least_between_collections) {
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  GC_INIT();
  GC_set_min_bytes_allocd(kLeast);
  const GC_word before = GC_get_gc_no();
  std::size_t allocated = 0;
  for (int i = 0; GC_get_gc_no() == before; ++i) {
    const std::size_t bytes = i % 100 == 0 ? 100000 : 1000;
    opaque(GC_malloc_atomic(bytes));
    allocated += bytes;
  }
  std::fprintf(stderr, "%zu bytes\n", allocated);
  return allocated >= kLeast * 9 / 10 ? 0 : 2;
}
TEST(Control, TheLeastBetweenCollectionsHoldsFromTheStart) {
  if (allocations_are_dear()) GTEST_SKIP() << "collects at other times";
  const ChildResult r = run_child("the_least_between_collections");
  EXPECT_TRUE(r.ok()) << r;
}

// As programs ask that want a heap of a given size from the start (Whippet).
JD_CHILD(expand_to_the_limit) {
  constexpr std::size_t kLimit = 24777000;  // no multiple of a block
  GC_set_max_heap_size(kLimit);
  GC_INIT();
  if (GC_expand_hp(kLimit - GC_get_heap_size()) != 1) return 2;
  return GC_get_heap_size() <= kLimit && GC_get_heap_size() > kLimit - (1 << 16) ? 0 : 3;
}
TEST(Control, WhatIsLeftToTheLimitMayBeAskedFor) {
  const ChildResult r = run_child("expand_to_the_limit");
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Control, AnExpandedHeapIsUsedBeforeCollecting) {
  ASSERT_EQ(GC_expand_hp(std::size_t{64} << 20), 1);
  GC_gcollect();
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 100000; ++i) opaque(GC_malloc(64));
  EXPECT_LE(GC_get_gc_no(), before + 1);
}

// --- Statistics
// ------------------------------------------------------------------------------------

JD_CHILD(memory_use_before_the_start) {
  if (GC_get_memory_use() != 0) return 2;
  GC_INIT();
  return GC_get_memory_use() < (std::size_t{1} << 30) ? 0 : 3;
}

TEST(Statistics, NothingIsInUseBeforeTheStart) {
  const ChildResult r = run_child("memory_use_before_the_start");
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Statistics, TheHeapWasNeverLargerThanWhatWasObtained) {
  constexpr std::size_t kMost = std::size_t{32} << 20;
  const auto use = [](std::size_t bytes) {
    GC_disable();
    for (std::size_t i = 0; i < bytes; i += 100000) {
      ASSERT_NE(GC_malloc_atomic(100000), nullptr);
      ASSERT_GE(GC_get_obtained_from_os_bytes(), GC_get_heap_size());
    }
    GC_enable();
  };
  use(kMost);
  GC_gcollect_and_unmap();
  // Now what is new is all there is; then what went back to the system is used again.
  ASSERT_EQ(GC_expand_hp(kMost), 1);
  use(kMost * 3 / 2);
  const std::size_t most = GC_get_heap_size();
  GC_gcollect_and_unmap();
  EXPECT_LT(GC_get_heap_size(), most);
  EXPECT_GE(GC_get_obtained_from_os_bytes(), most);
}

TEST(Statistics, BytesAreCounted) {
  GC_gcollect();
  const std::size_t total = GC_get_total_bytes();
  const std::size_t since = GC_get_bytes_since_gc();
  GC_disable();
  for (int i = 0; i < 10000; ++i) opaque(GC_malloc(1000));
  GC_enable();
  const std::size_t total_grown = GC_get_total_bytes() - total;
  const std::size_t since_grown = GC_get_bytes_since_gc() - since;
  EXPECT_GE(total_grown, 9500000u);
  EXPECT_LE(total_grown, 13000000u);
  EXPECT_GE(since_grown, 9500000u);
  EXPECT_LE(since_grown, 13000000u);
  GC_gcollect();
  EXPECT_LT(GC_get_bytes_since_gc(), 1000000u);
  EXPECT_GE(GC_get_total_bytes(), total + total_grown);
}

TEST(Statistics, HeapUsageIsConsistent) {
  GC_word heap = 0;
  GC_word free_bytes = 0;
  GC_word unmapped = 0;
  GC_word since = 0;
  GC_word total = 0;
  void* list = make_list(100000, 100);
  GC_get_heap_usage_safe(&heap, &free_bytes, &unmapped, &since, &total);
  EXPECT_GE(heap, 100000u * 100);
  EXPECT_LE(free_bytes, heap);
  EXPECT_EQ(heap, GC_get_heap_size());
  EXPECT_GE(total, since);
  EXPECT_GE(total, 100000u * 100);
  GC_get_heap_usage_safe(nullptr, nullptr, nullptr, nullptr, nullptr);
  EXPECT_GE(GC_get_obtained_from_os_bytes(), heap);
  keep_here(list);
}

TEST(Statistics, ProfStatsAreConsistent) {
  void* list = make_list(100000, 100);
  GC_prof_stats_s stats;
  ASSERT_EQ(GC_get_prof_stats(&stats, sizeof stats), sizeof stats);
  EXPECT_EQ(stats.gc_no, GC_get_gc_no());
  EXPECT_EQ(stats.heapsize_full - stats.unmapped_bytes, GC_get_heap_size());
  EXPECT_LE(stats.free_bytes_full, stats.heapsize_full);
  EXPECT_EQ(stats.bytes_allocd_since_gc + stats.allocd_bytes_before_gc, GC_get_total_bytes());
  EXPECT_GE(stats.obtained_from_os_bytes, stats.heapsize_full - stats.unmapped_bytes);
  // A client compiled for a smaller or a greater struct.
  GC_word words[20];
  std::memset(words, 0x11, sizeof words);
  EXPECT_EQ(GC_get_prof_stats(reinterpret_cast<GC_prof_stats_s*>(words), 3 * sizeof(GC_word)),
            3 * sizeof(GC_word));
  EXPECT_EQ(words[3], 0x1111111111111111u);
  EXPECT_EQ(GC_get_prof_stats(reinterpret_cast<GC_prof_stats_s*>(words), sizeof words),
            sizeof stats);
  EXPECT_EQ(words[sizeof stats / sizeof(GC_word)], ~GC_word{0});
  keep_here(list);
}

TEST(Statistics, NonGcBytesFollowUncollectableObjects) {
  // bdwgc counts only what comes from a free list that has something on it.
  void* first = GC_malloc_uncollectable(1000);
  const GC_word before = GC_get_non_gc_bytes();
  void* p = GC_malloc_uncollectable(1000);
  EXPECT_GE(GC_get_non_gc_bytes(), before + 1000);
  GC_free(p);
  EXPECT_EQ(GC_get_non_gc_bytes(), before);
  GC_free(first);
}

// Kinds that no header names.
constexpr int kUncollectable = 2;
constexpr int kAtomicUncollectable = 3;

TEST(Statistics, NonGcBytesReturnToWhatTheyWere) {
  JD_OURS_ONLY("bdwgc counts only what comes from a free list that has something on it");
  const GC_word before = GC_get_non_gc_bytes();
  for (const std::size_t size : {1, 16, 64, 100, 1024, 8192, 20000, 65536}) {
    for (const int kind : {kUncollectable, kAtomicUncollectable}) {
      void* objects[] = {GC_generic_malloc(size, kind),
                         GC_generic_malloc_ignore_off_page(size, kind),
                         GC_realloc(GC_generic_malloc(size, kind), size + 100)};
      EXPECT_GE(GC_get_non_gc_bytes(), before + 3 * size + 100) << size;
      for (void* p : objects) GC_free(p);
      EXPECT_EQ(GC_get_non_gc_bytes(), before) << size;
    }
  }
  void* list = nullptr;
  GC_generic_malloc_many(64, kUncollectable, &list);
  EXPECT_GE(GC_get_non_gc_bytes(), before + 64);
  while (list != nullptr) {
    void* next = *static_cast<void**>(list);
    GC_free(list);
    list = next;
  }
  EXPECT_EQ(GC_get_non_gc_bytes(), before);
}

// Regression: a second GC_free is ignored, but for the bytes, which fell below none.
TEST(Statistics, NonGcBytesFallOnceForAnObject) {
  JD_OURS_ONLY("it frees twice what is freed twice");
  const GC_word before = GC_get_non_gc_bytes();
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{100000}}) {
    void* object = GC_malloc_uncollectable(bytes);
    ASSERT_NE(object, nullptr);
    GC_free(object);
    GC_free(object);
    EXPECT_EQ(GC_get_non_gc_bytes(), before);
  }
}

TEST(Statistics, NonGcBytesLeaveTheOutOfMemoryFunctionsMemoryOut) {
  JD_OURS_ONLY("bdwgc's count is its own");
  static char memory[64];
  // The compiler believes that what an allocator returns is no variable of the program's.
  static char* volatile last_resort = memory;
  const GC_oom_func before_function = GC_get_oom_fn();
  const GC_word before = GC_get_non_gc_bytes();
  GC_set_oom_fn([](std::size_t) -> void* { return last_resort; });
  const GC_warn_proc warn = GC_get_warn_proc();
  GC_set_warn_proc(GC_ignore_warn_proc);
  EXPECT_EQ(GC_malloc_uncollectable(opaque(std::size_t{1} << 60)), last_resort);
  GC_set_warn_proc(warn);
  GC_set_oom_fn(before_function);
  EXPECT_EQ(GC_get_non_gc_bytes(), before);
}

TEST(Statistics, ExplicitlyFreedBytesAreCounted) {
  GC_gcollect();
  const std::size_t before = GC_get_expl_freed_bytes_since_gc();
  GC_disable();
  for (int i = 0; i < 1000; ++i) GC_free(GC_malloc(1000));
  GC_enable();
  const std::size_t freed = GC_get_expl_freed_bytes_since_gc() - before;
  EXPECT_GE(freed, 900000u);
  EXPECT_LE(freed, 1300000u);
}

// Each thread counts what it frees by itself.
TEST(Statistics, WhatAnotherThreadFreedIsCountedOnceItHasEnded) {
  GC_gcollect();
  GC_disable();
  const std::size_t before = GC_get_expl_freed_bytes_since_gc();
  std::vector<GcThread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) GC_free(GC_malloc(1000));
    });
  }
  threads.clear();
  const std::size_t freed = GC_get_expl_freed_bytes_since_gc() - before;
  GC_enable();
  EXPECT_GE(freed, 1800000u);
  EXPECT_LE(freed, 2600000u);
}

TEST(Statistics, AShrunkProgramReturnsItsMemory) {
  void* list = make_list(200000, 500);
  const std::size_t full = GC_get_heap_size();
  EXPECT_GE(full, 100000000u);
  // Cut to pieces, so that a stale word somewhere keeps one node, not all that follow.
  while (list != nullptr) list = std::exchange(*static_cast<void**>(list), nullptr);
  for (int i = 0; i < 4; ++i) {
    clear_stack();
    GC_gcollect_and_unmap();
  }
  // What the list had; what no test has touched yet stays as it is.
  constexpr std::size_t kMost = std::size_t{200000} * 500 / 10 * 9;
  EXPECT_LT(GC_get_heap_size(), full - kMost);
  EXPECT_GT(GC_get_unmapped_bytes(), kMost);
  // And it is usable again.
  EXPECT_EQ(list_length(make_list(200000, 500)), 200000u);
  keep_here(list);
}

// Regression: whoever asked, without the lock, between the two counts of a run that came into use
// got a number near 2^64.
TEST(Statistics, FreeBytesAreNeverFewerThanNone) {
  JD_OURS_ONLY("it may come between two counts there, too");
  constexpr std::size_t kLarge = std::size_t{64} << 20;
  constexpr std::size_t kMost = std::size_t{1} << 40;
  std::atomic<bool> done{false};
  std::atomic<std::size_t> greatest{0};
  // Not registered: nobody stops it.
  std::thread asking([&] {
    while (!done) greatest = std::max(greatest.load(), std::size_t{GC_get_free_bytes()});
  });
  for (int i = 0; i < 40; ++i) {
    void* large = GC_malloc_atomic(kLarge);
    ASSERT_NE(large, nullptr);
    GC_free(large);
    GC_gcollect_and_unmap();
  }
  done = true;
  asking.join();
  EXPECT_LT(greatest, kMost);
}

TEST(Statistics, TheSizeMapCoversSmallRequests) {
  opaque(GC_malloc(100));
  EXPECT_GE(GC_get_size_map_at(100), 100u);
  if (!kPeer) {
    for (int request = 0; request <= 2000; ++request) {
      void* object = GC_malloc(static_cast<std::size_t>(request));
      ASSERT_EQ(GC_get_size_map_at(request), GC_size(object)) << request;
    }
  }
  EXPECT_EQ(GC_get_size_map_at(-1), static_cast<std::size_t>(-1));
  EXPECT_EQ(GC_get_size_map_at(1 << 20), static_cast<std::size_t>(-1));
}

TEST(Statistics, FullCollectionTimeIsMeasured) {
  GC_start_performance_measurement();
  void* list = make_list(500000);
  for (int i = 0; i < 5; ++i) GC_gcollect();
  EXPECT_LT(GC_get_full_gc_total_time(), 60000u);
  keep_here(list);
}

JD_CHILD(dumps) {
  GC_INIT();
  opaque(make_list(1000));
  GC_dump();
  GC_dump_named("by name");
  GC_dump_regions();
  GC_dump_finalization();
  return 0;
}

TEST(Statistics, DumpsGoToStandardOutput) {
  const ChildResult r = run_child("dumps");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.out.find("by name"), std::string::npos) << r;
}

TEST(Statistics, DumpsGoToTheLogFile) {
  const std::string path = testing::TempDir() + "jackdaw-dump-" + std::to_string(getpid()) + ".txt";
  const ChildResult r = run_child("dumps", {{"GC_LOG_FILE", path.c_str()}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("by name"), std::string::npos) << text.str();
  std::remove(path.c_str());
}

// --- The lock
// --------------------------------------------------------------------------------------

TEST(Lock, CallWithAllocLockReturnsItsResultAndExcludesCollections) {
  static GC_word at_entry;
  const auto run = [](void* argument) -> void* {
    at_entry = GC_get_gc_no();
    for (int i = 0; i < 2000000; ++i) {
      asm volatile("");
    }
    return GC_get_gc_no() == at_entry ? argument : nullptr;
  };
  std::vector<GcThread> threads;
  threads.emplace_back([] {
    for (int i = 0; i < 50; ++i) GC_gcollect();
  });
  int token = 0;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(GC_call_with_alloc_lock(run, &token), &token);
  threads.clear();
}

TEST(Lock, LockAndUnlockExclude) {
  static long counter;
  counter = 0;
  run_threads(4, [](std::size_t) {
    for (int i = 0; i < 20000; ++i) {
      GC_alloc_lock();
      ++counter;
      GC_alloc_unlock();
      if (i % 100 == 0) opaque(GC_malloc(64));
    }
  });
  EXPECT_EQ(counter, 80000);
}

}  // namespace
}  // namespace jd::test

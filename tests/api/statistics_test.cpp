// What the statistics say (cycle.req.measured), and the dumps.
#include <unistd.h>

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

JD_CHILD(memory_use_before_the_start) {
  if (GC_get_memory_use() != 0) return 2;
  GC_INIT();
  return GC_get_memory_use() < (std::size_t{1} << 30) ? 0 : 3;
}

TEST(Statistics, NothingIsInUseBeforeTheStart) {
  const ChildResult r = run_child("memory_use_before_the_start");
  EXPECT_TRUE(r.ok()) << r;
}

// In a process of its own, where nothing else comes and goes.
JD_CHILD(memory_use_in_bytes) {
  constexpr std::size_t kBytes = std::size_t{10} << 20;
  GC_INIT();
  GC_disable();
  const std::size_t before = GC_get_memory_use();
  std::vector<void*> objects;
  for (std::size_t i = 0; i < kBytes; i += 100000) objects.push_back(GC_malloc_atomic(100000));
  const std::size_t with = GC_get_memory_use();
  for (void* object : objects) GC_free(object);
  const std::size_t after = GC_get_memory_use();
  std::fprintf(stderr, "%zu, then %zu, then %zu\n", before, with, after);
  // Objects of this size fill their blocks but for some KiB each.
  if (with < before + kBytes || with > before + kBytes * 5 / 4) return 2;
  return after <= before + (std::size_t{1} << 16) ? 0 : 3;
}

TEST(Statistics, MemoryInUseIsCountedInBytes) {
  JD_OURS_ONLY("it counts eight for each byte");
  const ChildResult r = run_child("memory_use_in_bytes");
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

GC_prof_stats_s prof_stats() {
  GC_prof_stats_s stats;
  EXPECT_EQ(GC_get_prof_stats(&stats, sizeof stats), sizeof stats);
  return stats;
}

TEST(Statistics, ProfStatsAreWhatTheFunctionsSay) {
  void* uncollectable = GC_malloc_uncollectable(100000);
  GC_gcollect();
  GC_disable();
  for (int i = 0; i < 1000; ++i) GC_free(GC_malloc(1000));
  const GC_prof_stats_s stats = prof_stats();
  EXPECT_EQ(stats.non_gc_bytes, GC_get_non_gc_bytes());
  // bdwgc counts only what comes from a free list.
  EXPECT_GE(stats.non_gc_bytes, kPeer ? 0u : 100000u);
  EXPECT_EQ(stats.expl_freed_bytes_since_gc, GC_get_expl_freed_bytes_since_gc());
  EXPECT_GE(stats.expl_freed_bytes_since_gc, 900000u);
  EXPECT_LE(stats.expl_freed_bytes_since_gc, 1300000u);
  GC_enable();
  GC_free(uncollectable);
}

TEST(Statistics, ProfStatsTellWhatWasReclaimed) {
  constexpr std::size_t kBytes = std::size_t{10} << 20;
  GC_gcollect();
  GC_disable();
  far_away([] {
    for (std::size_t i = 0; i < kBytes; i += 100000) opaque(GC_malloc_atomic(100000));
  });
  GC_enable();
  const GC_prof_stats_s before = prof_stats();
  collect();
  const GC_prof_stats_s found = prof_stats();
  // A stale word may hold some.
  EXPECT_GE(found.bytes_reclaimed_since_gc, kBytes / 10 * 9);
  EXPECT_LE(found.bytes_reclaimed_since_gc, before.bytes_allocd_since_gc * 3 / 2);
  EXPECT_EQ(found.reclaimed_bytes_before_gc,
            before.reclaimed_bytes_before_gc + before.bytes_reclaimed_since_gc);
  collect();
  EXPECT_LT(prof_stats().bytes_reclaimed_since_gc, kBytes / 2);
  EXPECT_GE(prof_stats().reclaimed_bytes_before_gc,
            found.reclaimed_bytes_before_gc + kBytes / 10 * 9);
}

JD_CHILD(markers_in_prof_stats) {
  GC_INIT();
  void* list = make_list(20000);
  // The first one wishes for helpers, and they are made when it is over.
  for (int i = 0; i < 3; ++i) GC_gcollect();
  std::printf("%lu %d", static_cast<unsigned long>(prof_stats().markers_m1), GC_get_parallel());
  return list_length(list) == 20000 ? 0 : 1;
}

TEST(Statistics, ProfStatsTellHowManyHelpersThereAre) {
  JD_OURS_ONLY("makes its markers at another time");
  const auto told = [](const char* markers) {
    return run_child("markers_in_prof_stats",
                     {{"GC_MARKERS", markers}, {"JACKDAW_MARK_PATIENCE", "1"}})
        .out;
  };
  EXPECT_EQ(told("1"), "0 0");
  EXPECT_EQ(told("4"), "3 3");
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

// Counted in milliseconds: a collection of such a list takes some of them.
TEST(Statistics, FullCollectionTimeIsMeasured) {
  GC_start_performance_measurement();
  const unsigned long before = GC_get_full_gc_total_time();
  void* list = make_list(500000);
  for (int i = 0; i < 1000 && GC_get_full_gc_total_time() == before; ++i) GC_gcollect();
  EXPECT_GT(GC_get_full_gc_total_time(), before);
  EXPECT_LT(GC_get_full_gc_total_time(), before + 60000u);
  keep_here(list);
}

// --- Dumps
// --------------------------------------------------------------------------------------

// What each dump is to tell of, on standard error.
void* large_object() {
  void* object = GC_malloc_atomic(100000);
  std::fprintf(stderr, "%p", object);
  return object;
}

JD_CHILD(GC_dump) {
  GC_INIT();
  void* object = large_object();
  GC_dump();
  keep_here(object);
  return 0;
}
JD_CHILD(GC_dump_named) {
  GC_INIT();
  void* object = large_object();
  GC_dump_named("by name");
  keep_here(object);
  return 0;
}
JD_CHILD(GC_dump_regions) {
  GC_INIT();
  void* object = large_object();
  GC_dump_regions();
  keep_here(object);
  return 0;
}

JD_CHILD(finalizer_dumped) {
  GC_INIT();
  void* object = large_object();
  GC_register_finalizer(
      object, [](void*, void*) {}, nullptr, nullptr, nullptr);
  GC_dump_finalization();
  keep_here(object);
  return 0;
}
template <int (*Register)(void**, const void*)>
int dump_link() {
  GC_INIT();
  void* object = large_object();
  static void* link;
  link = object;
  if (Register(&link, object) != GC_SUCCESS) return 2;
  GC_dump_finalization();
  keep_here(object);
  return 0;
}
JD_CHILD(link_dumped) { return dump_link<GC_general_register_disappearing_link>(); }
JD_CHILD(long_link_dumped) { return dump_link<GC_register_long_link>(); }

constexpr const char* kDumps[] = {"GC_dump",          "GC_dump_named", "GC_dump_regions",
                                  "finalizer_dumped", "link_dumped",   "long_link_dumped"};

// The words are each library's own.
void expect_dump(const std::string& name, const std::string& text, const std::string& object) {
  if (name == "GC_dump_named") {
    EXPECT_NE(text.find("by name"), std::string::npos) << text;
  }
  ASSERT_EQ(object.rfind("0x", 0), 0u) << object;
  if (kPeer) {
    EXPECT_NE(text, "") << name;
    return;
  }
  const std::string line = name == "finalizer_dumped" ? "  object " + object + "\n"
                           : name.find("link") != std::string::npos
                               ? " to " + object + "\n"
                               : object + ": atomic, one object";
  EXPECT_NE(text.find(line), std::string::npos) << name << " lacks " << line << ":\n" << text;
  // The others tell of those that the last collection found, and there was none.
  if (name == "GC_dump") {
    EXPECT_NE(text.find("Static roots:\n  0x"), std::string::npos) << text;
  }
}

TEST(Statistics, DumpsGoToStandardOutput) {
  for (const char* name : kDumps) {
    const ChildResult r = run_child(name);
    EXPECT_TRUE(r.ok()) << name << r;
    expect_dump(name, r.out, r.err);
  }
}

TEST(Statistics, DumpsGoToTheLogFile) {
  const std::string path = testing::TempDir() + "jackdaw-dump-" + std::to_string(getpid()) + ".txt";
  for (const char* name : kDumps) {
    const ChildResult r = run_child(name, {{"GC_LOG_FILE", path.c_str()}});
    EXPECT_TRUE(r.ok()) << name << r;
    EXPECT_EQ(r.out, "") << name;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    expect_dump(name, text.str(), r.err);
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace jd::test

// The environment variables that libgc's users rely on, with good values and bad ones.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

JD_CHILD(print_heap) {
  GC_INIT();
  std::printf("%zu\n", GC_get_heap_size());
  return list_length(make_list(1000)) == 1000 ? 0 : 1;
}

std::size_t heap_with(const char* variable, const char* value) {
  const ChildResult r = run_child("print_heap", {{variable, value}});
  EXPECT_TRUE(r.ok()) << variable << "=" << value << " " << r;
  EXPECT_EQ(r.err, "") << r;
  return std::strtoull(r.out.c_str(), nullptr, 10);
}

TEST(EnvironmentSizes, InitialHeapSizeWithSuffixes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (const char* value : {"33554432", "32768k", "32768K", "32m", "32M"}) {
    const std::size_t heap = heap_with("GC_INITIAL_HEAP_SIZE", value);
    EXPECT_GE(heap, 32 * kMiB) << value;
    EXPECT_LE(heap, 40 * kMiB) << value;
  }
  EXPECT_GE(heap_with("GC_INITIAL_HEAP_SIZE", "1G"), 1024 * kMiB);
  EXPECT_LE(heap_with("GC_INITIAL_HEAP_SIZE", kUnset), 4 * kMiB);
}

TEST(EnvironmentSizes, TheLeastHeaps) {
  JD_OURS_ONLY("bdwgc's sizes are its own");
  EXPECT_EQ(heap_with("GC_INITIAL_HEAP_SIZE", kUnset), 256u << 10);
  EXPECT_EQ(heap_with("GC_INITIAL_HEAP_SIZE", "64k"), 64u << 10);
  EXPECT_EQ(heap_with("GC_INITIAL_HEAP_SIZE", "0"), heap_with("GC_INITIAL_HEAP_SIZE", "1"));
  // Less than what the heap begins with otherwise, and no reason for a warning.
  EXPECT_EQ(heap_with("GC_MAXIMUM_HEAP_SIZE", "64k"), 64u << 10);
  EXPECT_EQ(heap_with("GC_MAXIMUM_HEAP_SIZE", "100k"), 96u << 10);
  EXPECT_EQ(heap_with("JACKDAW_RESERVE", "4M"), 256u << 10);
  EXPECT_EQ(heap_with("JACKDAW_MARK_STACK", "16"), 256u << 10);
}

JD_CHILD(count_collections) {
  GC_INIT();
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 400000; ++i) opaque(GC_malloc(64));
  std::printf("%lu\n", static_cast<unsigned long>(GC_get_gc_no() - before));
  return 0;
}

unsigned long collections_with(const char* variable, const char* value) {
  const ChildResult r = run_child("count_collections", {{variable, value}});
  EXPECT_TRUE(r.ok()) << variable << "=" << value << " " << r;
  return std::strtoul(r.out.c_str(), nullptr, 10);
}

TEST(EnvironmentSizes, NothingIsCollectedBeforeTheInitialHeapIsFull) {
  EXPECT_GE(collections_with("GC_INITIAL_HEAP_SIZE", kUnset), 2u);
  EXPECT_EQ(collections_with("GC_INITIAL_HEAP_SIZE", "256M"), 0u);
}

JD_CHILD(fill_heap) {
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  std::size_t bytes = 0;
  void** list = nullptr;
  while (bytes < (std::size_t{1} << 30)) {
    auto** node = static_cast<void**>(GC_malloc(1000));
    if (node == nullptr) break;
    node[0] = list;
    list = node;
    bytes += 1000;
  }
  std::printf("%zu %zu\n", bytes, GC_get_heap_size());
  return 0;
}

TEST(EnvironmentSizes, MaximumHeapSizeIsKept) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (const auto& [value, limit] :
       {std::pair{"20971520", 20 * kMiB}, std::pair{"20480k", 20 * kMiB},
        std::pair{"50m", 50 * kMiB}, std::pair{"50M", 50 * kMiB}}) {
    const ChildResult r = run_child("fill_heap", {{"GC_MAXIMUM_HEAP_SIZE", value}});
    ASSERT_TRUE(r.ok()) << value << " " << r;
    std::size_t bytes = 0;
    std::size_t heap = 0;
    ASSERT_EQ(std::sscanf(r.out.c_str(), "%zu %zu", &bytes, &heap), 2) << r;
    EXPECT_LE(heap, limit) << value;
    EXPECT_GE(bytes, limit * 6 / 10) << value;
  }
}

JD_CHILD(is_disabled) {
  GC_INIT();
  std::printf("%d\n", GC_is_disabled());
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 200000; ++i) opaque(GC_malloc(64));
  GC_gcollect();
  return GC_get_gc_no() == before ? 0 : 1;
}

TEST(EnvironmentFlags, DontGcDisables) {
  const ChildResult r = run_child("is_disabled", {{"GC_DONT_GC", "1"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "1\n");
  EXPECT_EQ(run_child("is_disabled", {{"GC_DONT_GC", kUnset}}).status, 1);
}

JD_CHILD(interior_pointers) {
  GC_INIT();
  std::printf("%d\n", GC_get_all_interior_pointers());
  return 0;
}
JD_CHILD(interior_pointers_off) {
  GC_set_all_interior_pointers(0);
  GC_INIT();
  std::printf("%d\n", GC_get_all_interior_pointers());
  return 0;
}

TEST(EnvironmentFlags, AllInteriorPointersOverridesTheProgram) {
  EXPECT_EQ(run_child("interior_pointers", {{"GC_ALL_INTERIOR_POINTERS", kUnset}}).out, "1\n");
  EXPECT_EQ(run_child("interior_pointers_off", {{"GC_ALL_INTERIOR_POINTERS", kUnset}}).out, "0\n");
  EXPECT_EQ(run_child("interior_pointers_off", {{"GC_ALL_INTERIOR_POINTERS", "1"}}).out, "1\n");
  if (kPeer) return;  // there, "0" is as good as "1"
  EXPECT_EQ(run_child("interior_pointers", {{"GC_ALL_INTERIOR_POINTERS", "0"}}).out, "0\n");
}

JD_CHILD(unmapped_after_collecting) {
  GC_INIT();
  far_away([] { opaque(make_list(200000, 100)); });
  GC_gcollect();
  return GC_get_unmapped_bytes() > (4U << 20) ? 1 : 0;
}

TEST(EnvironmentFlags, PagesGoBackWithEachCollectionIfAsked) {
  JD_OURS_ONLY("how much stays mapped is each library's own rule");
  const char* variable = "GC_FORCE_UNMAP_ON_GCOLLECT";
  EXPECT_EQ(run_child("unmapped_after_collecting", {{variable, "1"}}).status, 1);
  EXPECT_EQ(run_child("unmapped_after_collecting", {{variable, kUnset}}).status, 0);
}

JD_CHILD(collect_some) {
  GC_INIT();
  for (int i = 0; i < 3; ++i) {
    opaque(make_list(1000));
    GC_gcollect();
  }
  std::puts("result");
  return 0;
}

TEST(EnvironmentFlags, StatisticsGoToStandardError) {
  const ChildResult quiet = run_child("collect_some", {{"GC_PRINT_STATS", kUnset}});
  EXPECT_EQ(quiet.err, "");
  const ChildResult r = run_child("collect_some", {{"GC_PRINT_STATS", "1"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "result\n");
  EXPECT_GE(count_lines(r.err), 3u) << r;
  const ChildResult verbose = run_child("collect_some", {{"GC_PRINT_VERBOSE_STATS", "1"}});
  EXPECT_TRUE(verbose.ok()) << verbose;
  EXPECT_GT(count_lines(verbose.err), count_lines(r.err)) << verbose;
}

TEST(EnvironmentFlags, StatisticsGoToTheLogFile) {
  const std::string path = testing::TempDir() + "jackdaw-log-" + std::to_string(getpid()) + ".txt";
  std::remove(path.c_str());
  const ChildResult r =
      run_child("collect_some", {{"GC_PRINT_STATS", "1"}, {"GC_LOG_FILE", path.c_str()}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "result\n");
  EXPECT_EQ(r.err, "");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_GE(count_lines(text.str()), 3u) << text.str();
  std::remove(path.c_str());
}

TEST(EnvironmentFlags, AnImpossibleLogFileIsReported) {
  JD_OURS_ONLY("bdwgc's reaction is its own");
  const ChildResult r =
      run_child("collect_some", {{"GC_PRINT_STATS", "1"}, {"GC_LOG_FILE", "/nowhere/at/all"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(lines_with(r.err, "GC_LOG_FILE"), 1u) << r;
  EXPECT_GE(count_lines(r.err), 4u) << r;
}

// What a file holds that a child was to write; removed.
std::string take_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::remove(path.c_str());
  return text.str();
}

// The value of a member of the statistics file; -1: it has none.
long long member(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\": ";
  const std::size_t at = json.find(key);
  return at == std::string::npos ? -1 : std::atoll(json.c_str() + at + key.size());
}

JD_CHILD(fork_and_collect) {
  GC_INIT();
  void* list = make_list(1000, 32);
  for (int i = 0; i < 3; ++i) GC_gcollect();
  const pid_t child = fork();
  if (child == 0) {
    GC_gcollect();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%d\n", static_cast<int>(getpid()));
  std::printf("%d\n", static_cast<int>(child));
  keep_here(list);
  return status;
}

std::string statistics_path(const char* name) {
  return testing::TempDir() + "jackdaw-statistics-" + std::to_string(getpid()) + name;
}

TEST(EnvironmentStatistics, AreALineOfJsonOfThisProcess) {
  JD_OURS_ONLY("bdwgc has no such file");
  const std::string path = statistics_path("");
  const ChildResult r = run_child("fork_and_collect", {{"JACKDAW_STATISTICS", path.c_str()}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "");
  const std::string json = take_file(path);
  EXPECT_EQ(count_lines(json), 1u) << json;
  // Not the child's, which made one more.
  EXPECT_EQ(member(json, "collections"), 3) << json;
  EXPECT_GE(member(json, "live_objects"), 1000) << json;
  EXPECT_GE(member(json, "marked_objects"), 3000) << json;
  EXPECT_GE(member(json, "run_ns"), member(json, "pause_ns")) << json;
  EXPECT_GT(member(json, "mark_ns"), 0) << json;
  EXPECT_EQ(member(json, "clearing_ns"), -1) << json;
}

TEST(EnvironmentStatistics, TimeWhatSweepingLeavesToAllocation) {
  JD_OURS_ONLY("bdwgc has no such file");
  const std::string path = statistics_path("");
  const ChildResult r = run_child(
      "collect_some", {{"JACKDAW_STATISTICS", path.c_str()}, {"JACKDAW_TIME_SWEEP", "1"}});
  EXPECT_TRUE(r.ok()) << r;
  const std::string json = take_file(path);
  EXPECT_GT(member(json, "finding_ns"), 0) << json;
  EXPECT_GT(member(json, "clearing_ns"), 0) << json;
  EXPECT_LT(member(json, "finding_ns") + member(json, "clearing_ns"), member(json, "run_ns"))
      << json;
}

TEST(EnvironmentStatistics, EachProcessHasItsFileIfTheNameSaysSo) {
  JD_OURS_ONLY("bdwgc has no such file");
  const std::string path = statistics_path("-%p");
  const ChildResult r = run_child("fork_and_collect", {{"JACKDAW_STATISTICS", path.c_str()}});
  EXPECT_TRUE(r.ok()) << r;
  std::istringstream numbers(r.out);
  std::string parent;
  std::string child;
  numbers >> parent >> child;
  const std::string of_parent = take_file(statistics_path(("-" + parent).c_str()));
  const std::string of_child = take_file(statistics_path(("-" + child).c_str()));
  EXPECT_EQ(member(of_parent, "collections"), 3) << of_parent;
  EXPECT_EQ(member(of_child, "collections"), 4) << of_child;
}

TEST(EnvironmentStatistics, AnImpossibleFileIsReported) {
  JD_OURS_ONLY("bdwgc has no such file");
  const ChildResult r = run_child("collect_some", {{"JACKDAW_STATISTICS", "/nowhere/at/all"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(lines_with(r.err, "JACKDAW_STATISTICS"), 1u) << r;
}

TEST(EnvironmentStatistics, AFullDeviceIsReported) {
  JD_OURS_ONLY("bdwgc has no such file");
  const ChildResult r = run_child("collect_some", {{"JACKDAW_STATISTICS", "/dev/full"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(lines_with(r.err, "JACKDAW_STATISTICS"), 1u) << r;
}

JD_CHILD(print_divisor) {
  GC_INIT();
  std::printf("%lu\n", static_cast<unsigned long>(GC_get_free_space_divisor()));
  // A live heap, and collections by allocation.
  void* list = make_list(300000, 32);
  const GC_word before = GC_get_gc_no();
  for (int i = 0; i < 3000000; ++i) opaque(GC_malloc(32));
  std::printf("%lu\n", static_cast<unsigned long>(GC_get_gc_no() - before));
  keep_here(list);
  return 0;
}

TEST(EnvironmentNumbers, FreeSpaceDivisorTakesEffect) {
  unsigned long divisor[2];
  unsigned long collections[2];
  const char* values[2] = {"1", "20"};
  for (int i = 0; i < 2; ++i) {
    const ChildResult r = run_child("print_divisor", {{"GC_FREE_SPACE_DIVISOR", values[i]}});
    ASSERT_TRUE(r.ok()) << r;
    ASSERT_EQ(std::sscanf(r.out.c_str(), "%lu\n%lu", &divisor[i], &collections[i]), 2) << r;
  }
  EXPECT_EQ(divisor[0], 1u);
  EXPECT_EQ(divisor[1], 20u);
  EXPECT_GT(collections[1], 2 * collections[0]);
}

// What a child prints, as a number. It has nothing to complain of.
unsigned long number_from(const char* child, const Environment& environment) {
  const ChildResult r = run_child(child, environment);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
  return std::strtoul(r.out.c_str(), nullptr, 10);
}

JD_CHILD(print_helpers) {
  GC_INIT();
  void* list = make_list(20000);
  // The first one wishes for helpers, and they are made when it is over.
  for (int i = 0; i < 3; ++i) GC_gcollect();
  std::printf("%d\n", GC_get_parallel());
  return list_length(list) == 20000 ? 0 : 1;
}

unsigned long helpers_with(const char* variable, const char* value) {
  return number_from("print_helpers", {{"JACKDAW_MARK_PATIENCE", "1"}, {variable, value}});
}

TEST(EnvironmentNumbers, MarkersAreAsManyAsSaid) {
  EXPECT_EQ(helpers_with("GC_MARKERS", "1"), 0u);
  EXPECT_EQ(helpers_with("GC_MARKERS", "3"), 2u);
  EXPECT_EQ(helpers_with("GC_NPROCS", "1"), 0u);
  EXPECT_EQ(helpers_with("GC_NPROCS", "3"), 2u);
  if (kPeer) return;
  EXPECT_EQ(helpers_with("GC_NPROCS", "64"), 15u);
}

JD_CHILD(print_unmapped) {
  GC_INIT();
  far_away([] {
    for (int i = 0; i < 32; ++i) {
      void* p = GC_malloc_atomic(std::size_t{1} << 20);
      opaque(p);
    }
  });
  for (int i = 0; i < 12; ++i) collect();
  std::printf("%zu\n", GC_get_unmapped_bytes());
  return 0;
}

TEST(EnvironmentNumbers, UnmapThresholdDecidesWhenMemoryIsReturned) {
  // Room for all of them at once, so that none is used again.
  const auto unmapped_with = [](const char* threshold) {
    return number_from("print_unmapped",
                       {{"GC_INITIAL_HEAP_SIZE", "64M"}, {"GC_UNMAP_THRESHOLD", threshold}});
  };
  EXPECT_GE(unmapped_with("1"), 28ul << 20);
  EXPECT_GE(unmapped_with("7"), 28ul << 20);
  EXPECT_EQ(unmapped_with("0"), 0u);
  EXPECT_EQ(unmapped_with("100"), 0u);
}

// How often a thread that does not answer is sent the stop signal.
JD_CHILD(count_stop_signals) {
  // One of those that are queued: each that was sent is there to be counted.
  const int stop_signal = SIGRTMIN + 4;
  GC_set_suspend_signal(stop_signal);
  GC_INIT();
  int messages[2];
  if (pipe(messages) != 0 || dup2(messages[1], STDERR_FILENO) < 0) return 3;
  std::atomic<bool> blocked{false};
  int sent = 0;
  GcThread thread([&] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, stop_signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    blocked = true;
    // A second signal follows the first complaint, if any does, and is there before the next one.
    int lines = 0;
    char byte = 0;
    while (lines < 2 && read(messages[0], &byte, 1) == 1) lines += byte == '\n';
    const timespec at_once = {};
    while (sigtimedwait(&set, nullptr, &at_once) == stop_signal) ++sent;
    // The answer that the collector waits for.
    pthread_kill(pthread_self(), stop_signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  });
  while (!blocked) sched_yield();
  GC_gcollect();
  thread.join();
  std::printf("%d\n", sent);
  return 0;
}

TEST(EnvironmentFlags, SignalsAreSentAgainToASilentThread) {
  JD_OURS_ONLY("bdwgc waits without a word");
  EXPECT_GE(number_from("count_stop_signals", {{"GC_RETRY_SIGNALS", "1"}}), 2u);
}

TEST(EnvironmentFlags, SignalsAreSentOnceWithoutRetry) {
  JD_OURS_ONLY("bdwgc waits without a word");
  EXPECT_EQ(number_from("count_stop_signals", {{"GC_RETRY_SIGNALS", "0"}}), 1u);
}

// --- Padding

struct Made {
  void* object;
  std::size_t bytes;
};

// Objects that only a pointer past their end holds, and that in the heap, where it counts for the
// next object alone. How many of a hundred are gone.
std::size_t lost_objects(Made (*make)()) {
  constexpr std::size_t kObjects = 100;
  Root<void*> ends(static_cast<void**>(GC_malloc(kObjects * sizeof(void*))));
  Watch watch;
  // A lost object's place may be given to others, into the middle of which the pointer leads then.
  GC_disable();
  far_away([&] {
    for (std::size_t i = 0; i < kObjects; ++i) {
      const Made made = make();
      watch.add(made.object);
      ends.get()[i] = static_cast<char*>(made.object) + made.bytes;
      // Where the pointer leads without padding.
      for (int k = 0; k < 3; ++k) opaque(make().object);
    }
  });
  GC_enable();
  for (int i = 0; i < 3; ++i) collect();
  return watch.count() - watch.count_alive();
}

JD_CHILD(past_the_end_in_the_heap) {
  GC_INIT();
  // Each fills what it occupies.
  const std::pair<const char*, Made (*)()> ways[] = {
      {"small",
       [] {
         return Made{GC_malloc(64), 64};
       }},
      {"large",
       [] {
         return Made{GC_malloc_atomic(32768), 32768};
       }},
      {"list",
       [] {
         return Made{GC_malloc_many(64), 64};
       }},
      {"aligned",
       [] {
         return Made{GC_memalign(64, 64), 64};
       }},
      {"aligned large",
       [] {
         return Made{GC_memalign(32768, 32768), 32768};
       }},
      {"resized",
       [] {
         return Made{GC_realloc(GC_malloc(41), 48), 48};
       }},
      {"resized large",
       [] {
         return Made{GC_realloc(GC_malloc(50000), 50016), 50016};
       }},
      // A heap of spans by now.
      {"of a span",
       [] {
         return Made{GC_malloc_atomic(20480), 20480};
       }},
  };
  for (const auto& [name, make] : ways) std::printf("%s %zu\n", name, lost_objects(make));
  return 0;
}

TEST(EnvironmentFlags, PaddingLetsPointersPastTheEndHoldInTheHeap) {
  JD_OURS_ONLY("bdwgc pads as all_interior_pointers says");
  for (const char* value : {"0", "1"}) {
    const ChildResult r = run_child("past_the_end_in_the_heap", {{"JACKDAW_PAD_OBJECTS", value},
                                                                 {"JACKDAW_COARSE_CLASSES", "0"}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(count_lines(r.out), 8u) << r;
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);) {
      const unsigned long lost = std::strtoul(line.c_str() + line.rfind(' '), nullptr, 10);
      if (*value == '1') {
        EXPECT_EQ(lost, 0u) << line;
      } else {
        EXPECT_GE(lost, 90u) << line;
      }
    }
  }
}

JD_CHILD(print_defaults) {
  GC_INIT();
  std::printf("divisor %lu, heap %zu, helpers %d\n",
              static_cast<unsigned long>(GC_get_free_space_divisor()), GC_get_heap_size(),
              GC_get_parallel());
  // And memory is to be had.
  return list_length(make_list(10000)) == 10000 ? 0 : 1;
}

TEST(EnvironmentBad, ValuesAreNamedAndTheDefaultIsUsed) {
  JD_OURS_ONLY("bdwgc says little about bad values");
  const ChildResult defaults = run_child("print_defaults");
  ASSERT_TRUE(defaults.ok()) << defaults;
  for (const auto& [name, value] :
       {std::pair{"GC_INITIAL_HEAP_SIZE", "a lot"}, std::pair{"GC_INITIAL_HEAP_SIZE", "12x"},
        std::pair{"GC_INITIAL_HEAP_SIZE", "-5"}, std::pair{"GC_INITIAL_HEAP_SIZE", ""},
        std::pair{"GC_MAXIMUM_HEAP_SIZE", "many"}, std::pair{"GC_MAXIMUM_HEAP_SIZE", "5kk"},

        std::pair{"GC_FREE_SPACE_DIVISOR", "three"}, std::pair{"GC_FREE_SPACE_DIVISOR", "3.5"},
        std::pair{"GC_MARKERS", "x"}, std::pair{"GC_MARKERS", "-1"}, std::pair{"GC_NPROCS", "none"},
        std::pair{"GC_UNMAP_THRESHOLD", "often"}, std::pair{"JACKDAW_MARK_STRATEGY", "quick"},
        std::pair{"JACKDAW_MARK_STACK", "big"},

        std::pair{"JACKDAW_COLLECT_EVERY", "now"}, std::pair{"JACKDAW_RESERVE", "all"},
        // No such option.
        std::pair{"JACKDAW_RESERVES", "4M"}}) {
    const ChildResult r = run_child("print_defaults", {{name, value}});
    EXPECT_TRUE(r.ok()) << name << "=" << value << " " << r;
    EXPECT_EQ(count_lines(r.err), 1u) << name << "=" << value << " " << r;
    EXPECT_EQ(lines_with(r.err, name), 1u) << name << "=" << value << " " << r;
    EXPECT_EQ(r.out, defaults.out) << name << "=" << value << " " << r;
  }
}

TEST(EnvironmentBad, OfValuesOutOfRangeTheNearestIsUsed) {
  JD_OURS_ONLY("bdwgc has other ranges");
  for (const auto& [name, value] :
       {std::pair{"GC_FREE_SPACE_DIVISOR", "1001"}, std::pair{"GC_FREE_SPACE_DIVISOR", "0"},
        std::pair{"GC_MARKERS", "65"}, std::pair{"GC_MARKERS", "0"}, std::pair{"GC_NPROCS", "0"},
        std::pair{"JACKDAW_MARK_PATIENCE", "0"}, std::pair{"GC_UNMAP_THRESHOLD", "1000"},
        std::pair{"JACKDAW_MARK_STACK", "3"}, std::pair{"JACKDAW_MARK_STACK", "15"},
        std::pair{"JACKDAW_RESERVE", "1M"}, std::pair{"JACKDAW_STOP_DELAY", "1000001"}}) {
    const ChildResult r = run_child("print_defaults", {{name, value}});
    EXPECT_TRUE(r.ok()) << name << "=" << value << " " << r;
    EXPECT_EQ(count_lines(r.err), 1u) << name << "=" << value << " " << r;
    EXPECT_EQ(lines_with(r.err, "is out of range"), 1u) << name << "=" << value << " " << r;
  }
  // The nearest to those is more than there is, which is said as well.
  for (const char* size : {"99999999999999999999999", "17179869184G"}) {
    const ChildResult r = run_child("print_defaults", {{"GC_INITIAL_HEAP_SIZE", size}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(lines_with(r.err, "is out of range"), 1u) << r;
    EXPECT_EQ(lines_with(r.err, "is not to be had; starting small"), 1u) << r;
  }
  // A limit is one, if not quite the one that was meant.
  const ChildResult r = run_child("print_defaults", {{"GC_MAXIMUM_HEAP_SIZE", "1k"}});
  EXPECT_EQ(lines_with(r.err, "is out of range"), 1u) << r;
  EXPECT_EQ(lines_with(r.out, "heap 65536"), 1u) << r;
}

TEST(EnvironmentBad, ASwitchThatIsNeitherOnNorOffIsOnAndNamed) {
  JD_OURS_ONLY("bdwgc takes any value for on");
  const ChildResult on = run_child("print_defaults", {{"GC_PRINT_STATS", "1"}});
  ASSERT_GT(lines_with(on.err, "heap grown"), 0u) << on;
  for (const auto& [value, warnings] :
       {std::pair{"maybe", 1u}, std::pair{"-1", 1u}, std::pair{"2x", 1u}, std::pair{"2", 0u},
        std::pair{"", 0u}, std::pair{"true", 0u}}) {
    const ChildResult r = run_child("print_defaults", {{"GC_PRINT_STATS", value}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_GT(lines_with(r.err, "heap grown"), 0u) << value << " " << r;
    EXPECT_EQ(lines_with(r.err, "GC_PRINT_STATS"), warnings) << value << " " << r;
  }
}

TEST(EnvironmentBad, AnInitialHeapBeyondAllMemoryIsSurvived) {
  JD_OURS_ONLY("bdwgc aborts");
  const ChildResult r = run_child("print_heap", {{"GC_INITIAL_HEAP_SIZE", "1000000G"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(count_lines(r.err), 1u) << r;
  EXPECT_EQ(lines_with(r.err, "GC_INITIAL_HEAP_SIZE"), 1u) << r;
}

}  // namespace
}  // namespace jd::test

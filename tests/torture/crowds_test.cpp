// Many threads: hundreds that sleep while the world is stopped, thousands that come and go, those
// that start with every signal blocked, those that wait for a lock that another has all the time;
// and the markers' own threads, counted.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "child.hpp"
#include "emulator.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

int fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

void expect_ok(const char* child, const Environment& environment = {}) {
  const ChildResult r = run_child(child, environment, 100);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

std::size_t count_tasks() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// --- Hundreds that sleep ------------------------------------------------------------------------

struct Sleeper {
  int kind;
  int pipe_end;
  std::atomic<int>* ready;
  std::atomic<bool>* woken;
};

// Each sleeps in another way; its list is on its stack only.
void* sleep_with_a_list(void* data) {
  const Sleeper sleeper = *static_cast<Sleeper*>(data);
  void* volatile list = make_list(50);
  sleeper.ready->fetch_add(1);
  char byte = 0;
  switch (sleeper.kind) {
    case 0:  // in a system call
      while (read(sleeper.pipe_end, &byte, 1) < 0 && errno == EINTR) {
      }
      break;
    case 1:  // in many
      while (!sleeper.woken->load()) usleep(2000);
      break;
    default:  // where it need not be stopped
      GC_do_blocking(
          [](void* end) -> void* {
            char one = 0;
            while (read(*static_cast<int*>(end), &one, 1) < 0 && errno == EINTR) {
            }
            return nullptr;
          },
          const_cast<int*>(&sleeper.pipe_end));
  }
  return list_length(list) == 50 ? const_cast<void*>(list) : nullptr;
}

TEST(Crowds, HundredsSleepWhileTheWorldStops) {
  JD_SKIP_UNDER_TSAN("hands no signal over to a thread in read()");
  constexpr int kThreads = 300;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<int> ready{0};
  std::atomic<bool> woken{false};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  static Sleeper sleepers[kThreads];
  std::vector<pthread_t> threads;
  for (int i = 0; i < kThreads; ++i) {
    sleepers[i] = {i % 3, ends[0], &ready, &woken};
    pthread_t thread;
    if (GC_pthread_create(&thread, &attributes, sleep_with_a_list, &sleepers[i]) != 0) break;
    threads.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  ASSERT_GT(threads.size(), 200u) << "the system allows too few threads";
  while (ready.load() != static_cast<int>(threads.size())) usleep(1000);
  for (int i = 0; i < 10; ++i) {
    opaque(make_list(2000, 64));
    GC_gcollect();
  }
  woken = true;
  ASSERT_EQ(close(ends[1]), 0);
  int whole = 0;
  for (const pthread_t thread : threads) {
    void* list = nullptr;
    ASSERT_EQ(GC_pthread_join(thread, &list), 0);
    whole += list_length(list) == 50 ? 1 : 0;
  }
  EXPECT_EQ(whole, static_cast<int>(threads.size())) << "lists of sleeping threads were damaged";
  close(ends[0]);
}

// --- Thousands that come and go -----------------------------------------------------------------

std::size_t mapped_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// What a short thread does: some objects of every kind, so that it has holes of all of them.
void* live_shortly(void*) {
  for (std::size_t size = 16; size <= 512; size *= 2) {
    opaque(make_list(3, size));
    opaque(GC_malloc_atomic(size));
    GC_free(GC_malloc_uncollectable(size));
  }
  opaque(GC_malloc(20000));
  return nullptr;
}
void* live_shortly_registered(void*) {
  GC_stack_base base;
  GC_get_stack_base(&base);
  if (GC_register_my_thread(&base) != GC_SUCCESS) return nullptr;
  live_shortly(nullptr);
  GC_unregister_my_thread();
  return nullptr;
}

// By GC_pthread_create; registering; and, with ours, without a word to the collector.
bool run_short_threads(std::size_t count) {
  constexpr std::size_t kAtOnce = 8;
  for (std::size_t started = 0; started < count; started += kAtOnce) {
    pthread_t threads[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const int error = i % 2 == 0 ? GC_pthread_create(&threads[i], nullptr, live_shortly, nullptr)
                        : i % 4 == 1 || kPeer
                            ? pthread_create(&threads[i], nullptr, live_shortly_registered, nullptr)
                            : pthread_create(&threads[i], nullptr, live_shortly, nullptr);
      if (error != 0) return false;
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      if ((i % 2 == 0 ? GC_pthread_join : pthread_join)(threads[i], nullptr) != 0) return false;
    }
  }
  return true;
}

JD_CHILD(ten_thousand_threads) {
  GC_INIT();
  GC_allow_register_threads();
  if (!run_short_threads(rounds(2000))) return fail("a thread was not made");
  GC_gcollect();
  const std::size_t heap = GC_get_heap_size();
  const std::size_t mapped = mapped_bytes();
  if (!run_short_threads(rounds(10000))) return fail("a thread was not made");
  GC_gcollect();
  // 10,000 threads, of which none may leave so much as a hundred bytes.
  if (GC_get_heap_size() > heap + (std::size_t{1} << 20)) {
    std::fprintf(stderr, "the heap grew from %zu to %zu bytes\n", heap, GC_get_heap_size());
    return 1;
  }
  if (mapped_bytes() > mapped + (std::size_t{1} << 20)) {
    std::fprintf(stderr, "%zu bytes were mapped, then %zu\n", mapped, mapped_bytes());
    return 1;
  }
  return 0;
}
TEST(Crowds, TenThousandThreadsLeaveNoGrowth) {
  JD_SKIP_UNDER_TSAN("keeps memory for each thread that there was");
  JD_SKIP_IN_EMULATOR("keeps memory for each thread that there was");
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps memory for each thread that there was";
#endif
  // Otherwise libc makes itself another heap of 64 MiB when many threads allocate at once.
  expect_ok("ten_thousand_threads", {{"MALLOC_ARENA_MAX", "1"}});
}

// --- All signals blocked from the first instruction ---------------------------------------------

TEST(Crowds, AThreadMayBeStartedWithAllSignalsBlocked) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  sigset_t all;
  sigfillset(&all);
  ASSERT_EQ(pthread_attr_setsigmask_np(&attributes, &all), 0);
  static std::atomic<bool> finish;
  finish = false;
  pthread_t thread;
  ASSERT_EQ(GC_pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  while (!finish.load()) {
                  }
                  return nullptr;
                },
                nullptr),
            0);
  // Would wait for ever for a thread that can't be stopped.
  for (int i = 0; i < 10; ++i) GC_gcollect();
  finish = true;
  EXPECT_EQ(GC_pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// --- A lock that another has all the time -------------------------------------------------------

// A thread that collects in a loop takes the lock again before the thread that it has woken can.
// That the other gets it in the end is what LockTest shows; this, that it does so in a program.
JD_CHILD(lock_beside_collections) {
  GC_INIT();
  constexpr int kTimes = 50;
  constexpr std::uint64_t kMost = std::uint64_t{kTimes} * 200;
  std::atomic<bool> finish{false};
  std::atomic<std::uint64_t> collections{0};
  GcThread collector([&] {
    while (!finish.load() && collections.load() <= kMost) {
      GC_gcollect();
      collections.fetch_add(1);
    }
  });
  std::uint64_t during = 0;
  for (int i = 0; i < kTimes; ++i) {
    // In the middle of a collection, or nearly.
    const std::uint64_t seen = collections.load();
    while (collections.load() == seen) usleep(20);
    const std::uint64_t before = collections.load();
    // Its beginning and its end wait for the lock, and no stop wakes who is in such a section.
    GC_do_blocking([](void*) -> void* { return nullptr; }, nullptr);
    during += collections.load() - before;
  }
  finish = true;
  collector.join();
  std::printf("%llu collections\n", static_cast<unsigned long long>(during));
  return during < kMost ? 0 : fail("a thread waited for too many collections");
}
TEST(Crowds, NobodyStarvesBesideCollections) {
  JD_OURS_ONLY("bdwgc's lock makes no promise");
  expect_ok("lock_beside_collections");
  // Nor where nobody may spin.
  expect_ok("lock_beside_collections", {{"GC_NPROCS", "1"}});
}

// --- Threads that allocate side by side ----------------------------------------------------------

// Collections while two threads allocate 64 MiB in turn, by 16 KiB each; of the second thread's
// turns every `share`-th is used.
std::size_t collections_of_two(int share) {
  constexpr int kTurns = 4096;
  std::atomic<int> turn{0};
  const std::size_t before = GC_get_gc_no();
  const auto take_turns = [&](int self) {
    for (int i = self; i < kTurns; i += 2) {
      while (turn.load() != i) sched_yield();
      if (self == 0 || i / 2 % share == 0) {
        for (int object = 0; object < 256; ++object) opaque(GC_MALLOC(64));
      }
      turn.store(i + 1);
    }
  };
  GcThread second([&] { take_turns(1); });
  take_turns(0);
  second.join();
  return GC_get_gc_no() - before;
}

JD_CHILD(two_that_allocate) {
  GC_INIT();
  // In this order: the heap that two have filled stays as large.
  const std::size_t mostly_one = collections_of_two(1024);
  const std::size_t both = collections_of_two(1);
  std::printf("%zu %zu\n", both, mostly_one);
  return 0;
}
TEST(Crowds, EachThreadThatAllocatesPutsCollectionsOff) {
  JD_OURS_ONLY("goes by the bytes of all threads");
#if defined(__SANITIZE_ADDRESS__) || defined(JD_SANITIZE_UNDEFINED)
  GTEST_SKIP() << "the sanitizer's megabytes of static data put collections off already";
#endif
  JD_SKIP_IN_EMULATOR(
      "keeps an object or two more alive, for which this small heap grows by a step");
  const auto run = [](const char* cpus, std::size_t* both, std::size_t* mostly_one) {
    const ChildResult r =
        run_child("two_that_allocate", {{"GC_NPROCS", cpus}, {"GC_MARKERS", "1"}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(std::sscanf(r.out.c_str(), "%zu %zu", both, mostly_one), 2) << r;
    // 32 MiB at most every 2 MiB: there is something to compare.
    EXPECT_GE(*mostly_one, 16U) << r;
  };
  std::size_t both = 0;
  std::size_t mostly_one = 0;
  // Twice as much in four collections for three where both can run, in twice as many where they
  // can't. A thread that allocates a thousandth does not count.
  run("2", &both, &mostly_one);
  EXPECT_LT(both, mostly_one * 5 / 3);
  run("1", &both, &mostly_one);
  EXPECT_GT(both, mostly_one * 5 / 3);
}

// --- The markers --------------------------------------------------------------------------------

struct Wide {
  Wide* child[4];
};
Wide* make_wide(int depth) {
  Wide* wide = GC_NEW(Wide);
  for (Wide*& child : wide->child) child = depth > 0 ? make_wide(depth - 1) : nullptr;
  return wide;
}

JD_CHILD(count_marker_threads) {
  GC_INIT();
  const std::size_t before = count_tasks();
  const Root<Wide> wide(make_wide(7));
  for (int i = 0; i < 5; ++i) GC_gcollect();
  std::printf("%zu\n", count_tasks() - before);
  return 0;
}
// mark.req.lazy
TEST(Crowds, OneMarkerMakesNoThread) {
  JD_OURS_ONLY("makes its threads at the start");
  JD_SKIP_UNDER_TSAN("has a thread of its own");
  const auto helpers = [](const char* markers) {
    const ChildResult r = run_child("count_marker_threads",
                                    {{"GC_MARKERS", markers}, {"JACKDAW_MARK_PATIENCE", "1"}});
    EXPECT_TRUE(r.ok()) << r;
    return r.out;
  };
  EXPECT_EQ(helpers("1"), "0\n");
  EXPECT_EQ(helpers("2"), "1\n");
  EXPECT_EQ(helpers("4"), "3\n");
}

JD_CHILD(count_marker_threads_of_one_marker) {
  GC_set_markers_count(1);
  return jd_child_count_marker_threads();
}
JD_CHILD(count_marker_threads_of_three_markers) {
  GC_set_markers_count(3);
  return jd_child_count_marker_threads();
}
TEST(Crowds, MarkersAreAsManyAsTheProgramSays) {
  JD_OURS_ONLY("makes its threads at the start");
  JD_SKIP_UNDER_TSAN("has a thread of its own");
  const auto helpers = [](const char* child) {
    // On a machine of four, whatever this one has.
    const ChildResult r = run_child(
        child, {{"GC_MARKERS", kUnset}, {"GC_NPROCS", "4"}, {"JACKDAW_MARK_PATIENCE", "1"}});
    EXPECT_TRUE(r.ok()) << r;
    return r.out;
  };
  EXPECT_NE(helpers("count_marker_threads"), "0\n");
  EXPECT_EQ(helpers("count_marker_threads_of_one_marker"), "0\n");
  EXPECT_EQ(helpers("count_marker_threads_of_three_markers"), "2\n");
}

// The number behind the last `word` of the collector's statistics.
std::uint64_t last_number(const std::string& text, const std::string& word) {
  const std::size_t at = text.rfind(word);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + word.size(), nullptr, 10);
}

JD_CHILD(markers_after_a_fork) {
  GC_set_handle_fork(1);
  GC_INIT();
  const Root<Wide> wide(make_wide(7));
  for (int i = 0; i < 5; ++i) GC_gcollect();
  std::fprintf(stderr, "fork\n");
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) return 1;
  for (int i = 0; i < 5; ++i) GC_gcollect();
  return 0;
}
TEST(Crowds, MarkersOfTheParentSurviveAFork) {
  JD_OURS_ONLY("reports no such numbers");
  const ChildResult r = run_child(
      "markers_after_a_fork",
      {{"GC_MARKERS", "3"}, {"JACKDAW_MARK_PATIENCE", "1"}, {"GC_PRINT_VERBOSE_STATS", "1"}});
  ASSERT_TRUE(r.ok()) << r;
  const std::string before = r.err.substr(0, r.err.find("fork\n"));
  EXPECT_EQ(last_number(before, "markers "), 3u) << r;
  EXPECT_EQ(last_number(r.err, "markers "), 3u) << r;
  EXPECT_GT(last_number(before, "waits "), 0u) << r;
  EXPECT_GT(last_number(r.err, "waits "), last_number(before, "waits ")) << r;
}

JD_CHILD(mark_a_list) {
  GC_INIT();
  // Wide enough that marking is shared; then there is one long list left.
  const Root<Wide> wide(make_wide(4));
  const Root<void> list(make_list(rounds(2000000)));
  for (int i = 0; i < 5; ++i) GC_gcollect();
  return list_length(list.get()) == rounds(2000000) ? 0 : 1;
}
TEST(Crowds, AMarkerWithoutWorkSleeps) {
  JD_OURS_ONLY("reports no such numbers");
  const ChildResult r = run_child(
      "mark_a_list",
      {{"GC_MARKERS", "2"}, {"JACKDAW_MARK_PATIENCE", "1"}, {"GC_PRINT_VERBOSE_STATS", "1"}});
  ASSERT_TRUE(r.ok()) << r;
  EXPECT_GT(last_number(r.err, "waits "), 0u) << r;
  // 500 looks, then it sleeps; and a few more for each packet that was another's by then.
  EXPECT_LE(last_number(r.err, "looks "), 600 * last_number(r.err, "waits ")) << r;
}

}  // namespace
}  // namespace jd::test

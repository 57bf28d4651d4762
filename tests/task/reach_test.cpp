// Work that somebody waits for must be within everybody's reach: the tests here wait for it, so
// that a scheduler that leaves it lying about hangs.
#include <gc/gc.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "counters.hpp"
#include "jackdaw/task.hpp"

namespace {

class Reach : public testing::Test {
 protected:
  void TearDown() override { jd_task_stop(); }
};

void nap() {
  timespec moment{0, 200'000};
  nanosleep(&moment, nullptr);
}

// As a task that has work of its own.
void spin_until(const std::atomic<bool>& flag) {
  while (!flag.load()) {
  }
}
// As one that waits for something outside.
void block_until(const std::atomic<bool>& flag) {
  jd::blocking([&] {
    while (!flag.load()) nap();
  });
}

TEST_F(Reach, APairFromAnotherThread) {
  jd_task_start(2);
  std::atomic<bool> second{false};
  jd::par([&] { spin_until(second); }, [&] { second = true; });
}

TEST_F(Reach, APairInABlockingSection) {
  jd_task_start(2);
  std::atomic<bool> second{false};
  jd::run(
      [&] { jd::blocking([&] { jd::par([&] { spin_until(second); }, [&] { second = true; }); }); });
}

TEST_F(Reach, TheBenchIsEmptyAfterARestart) {
  for (int round = 0; round < 3; ++round) {
    jd_task_start(1);
    std::atomic<bool> flag{false};
    jd::run([&] { jd::par([&] { block_until(flag); }, [&] { flag = true; }); });
    // The worker that came for the blocked one has time to sit down.
    for (int i = 0; i < 50; ++i) nap();
    jd_task_stop();
  }
}

TEST_F(Reach, ForksBelowATaskThatWaitsForItsScope) {
  jd_task_start(2);
  std::atomic<bool> flag{false};
  jd::run([&] {
    jd::par([] {}, [] {});
    jd::par(
        [&] {
          jd::scope scope;
          std::atomic<bool> begun{false};
          scope.fork([&] {
            begun = true;
            block_until(flag);
          });
          spin_until(begun);
          scope.join();
        },
        [&] { flag = true; });
  });
}

// Each waits until all have begun, which needs a worker for each.
void meet(std::atomic<int>* here, int all) {
  here->fetch_add(1);
  while (here->load() < all) nap();
}

void left_deep(std::atomic<int>* here, int all, int depth) {
  if (depth == 0) return meet(here, all);
  jd::par([=] { left_deep(here, all, depth - 1); }, [=] { meet(here, all); });
}

TEST_F(Reach, TasksThatForkNoMoreForAllWorkers) {
  constexpr int kWorkers = 6;
  std::uint64_t sleeps = counters_now().sleeps;
  jd_task_start(kWorkers);
  for (int round = 0; round < 5; ++round) {
    // All asleep: task.req.idle.
    for (int i = 0; i < 20 || counters_now().sleeps == sleeps; ++i) nap();
    sleeps = counters_now().sleeps;
    std::atomic<int> in_scope{0};
    jd::run([&] {
      jd::scope scope;
      for (int i = 0; i < kWorkers; ++i) scope.fork([&] { meet(&in_scope, kWorkers); });
      scope.join();
    });
    std::atomic<int> in_pairs{0};
    jd::run([&] { left_deep(&in_pairs, kWorkers, kWorkers - 1); });
  }
}

TEST_F(Reach, WhatATaskOfAnOutsidersScopeForks) {
  jd_task_start(2);
  jd::scope scope;
  scope.fork([&] {
    scope.fork([] {
      for (int i = 0; i < 50; ++i) {
        std::atomic<bool> second{false};
        jd::par([&] { spin_until(second); }, [&] { second = true; });
      }
    });
  });
  scope.join();
}

TEST_F(Reach, AVictimThatBlocksSignalsKeepsNobody) {
  jd_task_start(2);
  std::atomic<bool> blocked{false};
  std::atomic<bool> flag{false};
  jd::scope scope;
  scope.fork([&] {
    jd::par(
        [&] {
          sigset_t all;
          sigset_t before;
          sigfillset(&all);
          pthread_sigmask(SIG_SETMASK, &all, &before);
          blocked = true;
          spin_until(flag);
          pthread_sigmask(SIG_SETMASK, &before, nullptr);
        },
        [] {});
  });
  spin_until(blocked);
  for (int i = 0; i < 20; ++i) nap();  // the other worker asks meanwhile
  scope.fork([&] { flag = true; });
  scope.join();
}

TEST_F(Reach, TwoThatBlockAtOnceGiveBothTheirPlaces) {
  for (int round = 0; round < 10; ++round) {
    jd_task_start(2);
    jd::run([] { jd::blocking([] { nap(); }); });
    for (int i = 0; i < 20; ++i) nap();  // one sits on the bench now
    std::atomic<int> both{0};
    std::atomic<bool> open{false};
    std::atomic<int> up{0};
    jd::scope scope;
    for (int i = 0; i < 2; ++i) {
      scope.fork([&] {
        both.fetch_add(1);
        while (both.load() < 2) {
        }
        block_until(open);
      });
    }
    for (int i = 0; i < 2; ++i) {
      scope.fork([&] {
        up.fetch_add(1);
        while (up.load() < 2) nap();
        open = true;
      });
    }
    scope.join();
    jd_task_stop();
  }
}

long thread_count() {
  long count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    count += entry.is_directory() ? 1 : 0;
  }
  return count;
}

// Each section added a thread, since nobody had sat down on the bench yet: up to 256 of them.
TEST_F(Reach, SectionsOneAfterTheOtherNeedFewThreads) {
  jd_task_start(2);
  jd::run([] {});
  const long before = thread_count();
  jd::run([] {
    for (int i = 0; i < 1000; ++i) jd::blocking([] {});
  });
  EXPECT_LT(thread_count(), before + 8);
}

// The second one's forks are for the one that came for the first, which may be asleep by then.
TEST_F(Reach, ForksBelowTheSecondOfTwoSections) {
  for (int round = 0; round < 10; ++round) {
    jd_task_start(1);
    std::atomic<bool> flag{false};
    jd::run([&] {
      jd::blocking([] {});
      for (int i = 0; i < round * 10; ++i) nap();
      jd::par([&] { block_until(flag); }, [&] { flag = true; });
    });
    jd_task_stop();
  }
}

// ---- Ranges, and results ----

struct Link {
  Link* next;
  std::size_t number;
};
Link* make_links(std::size_t count) {
  Link* list = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    list = new (GC_MALLOC(sizeof(Link))) Link{list, i};
  }
  return list;
}
bool are_links(const Link* list, std::size_t count) {
  for (; count != 0; list = list->next) {
    if (list == nullptr || list->number != --count) return false;
  }
  return list == nullptr;
}

// Its results come to its stack, before it has allocated anything itself.
TEST_F(Reach, ResultsOfAThreadThatAllocatesNothingAreHeld) {
  constexpr std::size_t kCount = 100;
  jd_task_start(2);
  for (int round = 0; round < 20; ++round) {
    bool good = false;
    std::thread([&] {
      Link* const one = jd::run([] { return make_links(kCount); });
      const auto pair =
          jd::par([] { return make_links(kCount); }, [] { return make_links(kCount); });
      // Collected by another thread, and handed out anew.
      std::thread([] {
        GC_gcollect();
        for (int i = 0; i < 100; ++i) make_links(kCount);
      }).join();
      good =
          are_links(one, kCount) && are_links(pair.first, kCount) && are_links(pair.second, kCount);
    }).join();
    ASSERT_TRUE(good) << "round " << round;
  }
}

TEST_F(Reach, DifferencesThatNoIntHolds) {
  constexpr int kFirst = std::numeric_limits<int>::min();
  constexpr int kLast = std::numeric_limits<int>::max();
  jd::cancellation enough;
  std::atomic<std::size_t> calls{0};
  std::atomic<bool> outside{false};
  jd::parallel_for(kFirst, kLast,
                   [&](int i) {
                     if (i == kLast) outside = true;
                     if (calls.fetch_add(1) == 100'000) enough.cancel();
                   },
                   {.grain = std::size_t{1} << 20, .cancel = &enough});
  EXPECT_FALSE(outside);
  EXPECT_GT(calls.load(), 0u);
  const long sum = jd::parallel_reduce(
      std::int8_t{-128}, std::int8_t{127}, 0L, [](std::int8_t i) { return long{i}; },
      std::plus<>{});
  EXPECT_EQ(sum, -128L - 127);
}

// --- What a task finds ---------------------------------------------------------------------------

// Tasks that a join runs meanwhile have nothing to do with the task that joins, and leave nothing
// behind.
TEST(Tasks, HaveNothingOfTheJoinerTheyRunOn) {
  const int before = std::fegetround();
  std::atomic<int> strange{0};
  std::atomic<bool> go_on{false};
  const auto other = [&] {
    if (std::current_exception() != nullptr || std::fegetround() != before) ++strange;
    std::fesetround(FE_DOWNWARD);
    usleep(100);
  };
  std::thread outside([&] {
    while (!go_on.load()) jd::run(other);
  });
  std::vector<std::thread> more;
  more.reserve(3);
  for (int i = 0; i < 3; ++i) {
    more.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        jd::run([&] {
          try {
            throw std::runtime_error("mine");
          } catch (const std::runtime_error&) {
            std::fesetround(FE_UPWARD);
            jd::par([] { usleep(50); }, [] { usleep(300); });
            if (std::fegetround() != FE_UPWARD || std::current_exception() == nullptr) ++strange;
            std::fesetround(before);
          }
        });
      }
    });
  }
  for (std::thread& thread : more) thread.join();
  go_on = true;
  outside.join();
  EXPECT_EQ(strange.load(), 0);
}

// --- Exceptions that are not C++'s ---------------------------------------------------------------

[[noreturn]] void throw_foreign() {
  static _Unwind_Exception exception{};
  std::memcpy(&exception.exception_class, "JDTEST\0\0", sizeof exception.exception_class);
  exception.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) {};
  _Unwind_RaiseException(&exception);
  std::abort();
}

TEST(ForeignExceptions, BecomeOneOfOurs) {
  const auto two = [] { return 2; };
  const auto throws = []() -> int { throw_foreign(); };
  EXPECT_THROW(jd::par(throws, two), jd::foreign_exception);
  EXPECT_THROW(jd::par(two, throws), jd::foreign_exception);
  EXPECT_THROW(jd::run(throws), jd::foreign_exception);
  jd::run([&] {
    EXPECT_THROW(jd::par(throws, two), jd::foreign_exception);
    jd::scope scope;
    scope.fork(throw_foreign);
    EXPECT_THROW(scope.join(), jd::foreign_exception);
  });
}

struct Numbered {
  explicit Numbered(int n) : number(n) {}
  int number;
};
struct Movable {
  Movable() = default;
  Movable(Movable&&) = default;
  Movable(const Movable&) = delete;
  Movable& operator=(Movable&&) = default;
  Movable& operator=(const Movable&) = delete;
  ~Movable() = default;
  int number = 7;
};

TEST_F(Reach, SmallResultsOfEveryKind) {
  jd::run([] {
    const auto numbered = jd::par([] { return Numbered(1); }, [] { return Numbered(2); });
    EXPECT_EQ(numbered.first.number + numbered.second.number, 3);
    int x = 4;
    const auto references = jd::par([&] { return std::ref(x); }, [&] { return std::cref(x); });
    EXPECT_EQ(&references.first.get(), &references.second.get());
    const auto movables = jd::par([] { return Movable{}; }, [] { return Movable{}; });
    EXPECT_EQ(movables.first.number + movables.second.number, 14);
  });
}

// ---- Roots ----

[[gnu::noinline]] void put(pthread_key_t key, void** link) {
  void* object = GC_malloc(64);
  *link = object;
  GC_general_register_disappearing_link(link, object);
  pthread_setspecific(key, object);
}
[[gnu::noinline]] void clear_stack() {
  volatile char bytes[20000];
  for (volatile char& byte : bytes) byte = 0;
}

TEST_F(Reach, ThreadSpecificDataOfWorkers) {
  GC_INIT();
  pthread_key_t key{};
  ASSERT_EQ(pthread_key_create(&key, nullptr), 0);
  auto** link = static_cast<void**>(GC_malloc_atomic_uncollectable(sizeof(void*)));
  jd::run([&] {
    put(key, link);
    for (int i = 0; i < 3; ++i) {
      clear_stack();
      GC_gcollect();
    }
    EXPECT_NE(*link, nullptr);
    pthread_setspecific(key, nullptr);
  });
  pthread_key_delete(key);
}

// A link in the frame of a task that is suspended. In the child of a thread that is no worker the
// task is gone, and its stack is another's: a word there is a number.
[[gnu::noinline]] void wait_with_link(std::atomic<void**>* where, std::atomic<bool>* waits,
                                      const std::atomic<bool>& end) {
  void* link = GC_malloc(64);
  GC_general_register_disappearing_link(&link, link);
  *where = &link;
  jd::par([&] { spin_until(*waits); },
          [&] {
            *waits = true;
            spin_until(end);
          });
}
// Lies deeper in the stack, so that the frames of the child's tasks cover it.
[[gnu::noinline]] void wait_deeper(std::atomic<void**>* where, std::atomic<bool>* waits,
                                   const std::atomic<bool>& end) {
  volatile char room[8192];
  room[0] = 1;
  wait_with_link(where, waits, end);
  room[1] = room[0];
}
enum class Found { Elsewhere, AsItWas, Changed };
// What a collection leaves of a word at the place, if this frame covers that.
[[gnu::noinline]] Found what_stays_at(const void* place) {
  volatile unsigned char words[65536];
  for (volatile unsigned char& byte : words) byte = 0x55;
  for (int i = 0; i < 3; ++i) GC_gcollect();
  const auto* at = static_cast<const volatile unsigned char*>(place);
  if (at < words || at >= words + sizeof words) return Found::Elsewhere;
  for (std::size_t i = 0; i < sizeof(void*); ++i) {
    if (at[i] != 0x55) return Found::Changed;
  }
  return Found::AsItWas;
}
TEST_F(Reach, WhatSuspendedTasksRegisteredIsForgottenInAChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#endif
  jd_task_start(2);
  std::atomic<void**> where{nullptr};
  std::atomic<bool> waits{false};
  std::atomic<bool> end{false};
  std::thread outside([&] { jd::run([&] { wait_deeper(&where, &waits, end); }); });
  spin_until(waits);
  for (int i = 0; i < 100; ++i) nap();  // until the forker has left its stack
  const pid_t child = fork();
  if (child == 0) {
    jd_task_start(4);
    std::atomic<int> begun{0};
    std::atomic<int> covering{0};
    std::atomic<bool> changed{false};
    // Together they have all stacks that the parent had.
    for (int attempt = 0; attempt < 50 && covering == 0; ++attempt) {
      begun = 0;
      jd::scope scope;
      for (int i = 0; i < 4; ++i) {
        scope.fork([&] {
          ++begun;
          for (int naps = 0; begun < 4 && naps < 1000; ++naps) nap();
          const Found found = what_stays_at(where.load());
          if (found != Found::Elsewhere) ++covering;
          if (found == Found::Changed) changed = true;
        });
      }
      scope.join();
    }
    // In the deque mode the forker's stack is its thread's.
    const bool is_covered = covering != 0 || jd_task_get_mode() == JD_TASK_DEQUE;
    _exit(changed ? 7 : is_covered ? 0 : 8);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  end = true;
  outside.join();
}

// ---- Registers ----

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" int task_masks_survive();

TEST_F(Reach, MaskRegistersAreTheForkers) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "this processor has no AVX-512";
  int wrong = 0;
  jd::run([&] {
    for (int i = 0; i < 1000; ++i) wrong += task_masks_survive() == 0 ? 1 : 0;
  });
  EXPECT_EQ(wrong, 0);
}
#endif

}  // namespace

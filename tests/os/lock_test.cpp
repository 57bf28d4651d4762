// os.req.fair-lock: the lock in every interleaving of a few threads.
#include "os/lock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "../support/interleaved_test.hpp"

namespace jd::test {
namespace {

using TestedLock = os::LockOver<Scheduled>;

// What the threads share; a new one for each execution.
struct Shared {
  TestedLock lock;
  Scheduled::Atomic<int> data{0};

  // Two steps that belong together.
  void change() {
    const int before = data.load();
    data.store(before + 1);
  }
};

// Each of so many threads takes the lock so many times.
Report run(const Limits& limits, unsigned threads, int times) {
  return explore(limits, [=](Program* program) {
    auto shared = std::make_shared<Shared>();
    for (unsigned t = 0; t < threads; ++t) {
      program->add_thread([=] {
        for (int i = 0; i < times; ++i) {
          shared->lock.acquire();
          shared->change();
          shared->lock.release();
        }
      });
    }
    program->at_end([=] {
      check(shared->data.load() == static_cast<int>(threads) * times, "two held the lock");
    });
  });
}

class LockTest : public InterleavedTest {};
constexpr std::uint64_t kLong = 2000000;  // what makes a waiter starve

TEST_F(LockTest, ExcludesAndForgetsNobody) {
  for (const std::uint64_t passes : {std::uint64_t{0}, kLong}) {
    for (const unsigned looks : {0u, 1u}) {
      Scheduled::time_passes = passes;
      Scheduled::most_looks = looks;
      const Report report = run({}, 2, 1);
      EXPECT_TRUE(report.passed()) << report;
      EXPECT_EQ(report.timeouts, 0u);
      std::printf("two threads: %llu executions\n",
                  static_cast<unsigned long long>(report.executions));
    }
  }
}

TEST_F(LockTest, ExcludesAndForgetsNobodyOfThree) {
  for (const std::uint64_t passes : {std::uint64_t{0}, kLong}) {
    Scheduled::time_passes = passes;
    const Report report = run({.preemptions = 3}, 3, 2);
    EXPECT_TRUE(report.passed()) << report;
    EXPECT_EQ(report.timeouts, 0u);
    std::printf("three threads: %llu executions\n",
                static_cast<unsigned long long>(report.executions));
  }
}

// Regression: a thread that collected in a loop took the lock again before the one that it had
// woken could, for seconds.
TEST_F(LockTest, WhoHasWaitedForLongIsNext) {
  Scheduled::time_passes = kLong;
  std::uint64_t starved = 0;
  const Report report = explore({.preemptions = 4}, [&starved](Program* program) {
    auto shared = std::make_shared<Shared>();
    auto overtaken = std::make_shared<int>(0);
    auto got_it = std::make_shared<bool>(false);
    program->add_thread([=, &starved] {
      shared->lock.acquire();
      *got_it = true;
      starved += Scheduled::waits[0] > 1 ? 1 : 0;
      shared->lock.release();
    });
    program->add_thread([=] {
      for (int i = 0; i < 4; ++i) {
        shared->lock.acquire();
        // The other was woken once, came too late, and sleeps again.
        if (Scheduled::waits[0] > 1 && !*got_it) ++*overtaken;
        shared->lock.release();
      }
    });
    program->at_end([=] { check(*overtaken == 0, "a starving thread was overtaken"); });
  });
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_GT(starved, 0u) << "nobody starved, so nothing was tested";
}

// A sleeper that the lock is reserved for may be in a handler of the program's.
TEST_F(LockTest, AReservationEnds) {
  Scheduled::time_passes = kLong;
  auto gate = std::make_shared<std::shared_ptr<Scheduled::Atomic<std::uint32_t>>>();
  Scheduled::after_wait = [gate] {
    // The second time it was woken because it starved.
    if (running_thread() != 0 || Scheduled::waits[0] != 2) return;
    while ((*gate)->load() == 0) Scheduled::wait(gate->get(), 0);
  };
  const Report report = explore({.preemptions = 3}, [gate](Program* program) {
    *gate = std::make_shared<Scheduled::Atomic<std::uint32_t>>(0);
    const auto open = *gate;
    auto shared = std::make_shared<Shared>();
    program->add_thread([=] {
      shared->lock.acquire();
      shared->lock.release();
    });
    program->add_thread([=] {
      for (int i = 0; i < 3; ++i) {
        shared->lock.acquire();
        shared->lock.release();
      }
      open->store(1);
      Scheduled::wake(open.get(), 1);
    });
  });
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_GT(report.timeouts, 0u) << "nobody waited for the reservation's end";
}

// Where a thread that starves comes no more: thread 0 is parked as it would sleep again, while
// another holds the lock.
struct Parking : Scheduled {
  static void tell_waiting(const void*) {
    if (running_thread() != 0 || waits[0] == 0 || !held) return;
    parked = true;
    for (;;) Scheduled::wait(gate.get(), 0);
  }
  static bool wait_stoppably(Atomic<std::uint32_t>* word, std::uint32_t expected,
                             std::uint64_t nanoseconds) {
    const bool woken = Scheduled::wait_stoppably(word, expected, nanoseconds);
    lapses += woken ? 0 : 1;
    return woken;
  }
  static void begin() {
    gate = std::make_shared<Atomic<std::uint32_t>>(0);
    held = parked = false;
    lapses = 0;
  }

  static inline std::shared_ptr<Atomic<std::uint32_t>> gate;
  static inline bool held;
  static inline bool parked;
  static inline int lapses;  // waits for a reservation's end
};

// The most lapses of an execution in which it is parked beside threads that take the lock again and
// again. `mark`: who holds it then marks that, as GC_suspend_thread does.
int most_lapses_beside_parked(bool mark, int threads) {
  std::uint64_t executions = 0;
  int most = 0;
  const Report report = explore({.preemptions = 3}, [&, mark, threads](Program* program) {
    Parking::begin();
    auto lock = std::make_shared<os::LockOver<Parking>>();
    auto marked = std::make_shared<bool>(!mark);
    program->add_server([=] {
      lock->acquire();
      lock->release();
    });
    for (int t = 0; t < threads; ++t) {
      program->add_thread([=] {
        for (int i = 0; i < 5; ++i) {
          lock->acquire();
          Parking::held = true;
          static_cast<void>(Parking::gate->load());  // the other's turn
          Parking::held = false;
          if (Parking::parked && !*marked) {
            lock->mark_contended();
            *marked = true;
          }
          lock->release();
        }
      });
    }
    program->at_end([&] {
      executions += Parking::parked ? 1 : 0;
      most = std::max(most, Parking::lapses);
    });
  });
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_GT(executions, 0u) << "nobody was parked, so nothing was tested";
  Parking::gate = nullptr;
  return most;
}

// Regression: it stayed counted, so that each contended acquisition waited for 10 ms.
TEST_F(LockTest, AThreadThatComesNoMoreIsWaitedForOnce) {
  Scheduled::time_passes = kLong;
  EXPECT_EQ(most_lapses_beside_parked(false, 1), 1);
  EXPECT_EQ(most_lapses_beside_parked(true, 1), 0);
  EXPECT_EQ(most_lapses_beside_parked(true, 2), 0);
}

// That the exploration finds what is wrong: a lock that forgets to wake.
struct Forgetful : Scheduled {
  static int wake(Atomic<std::uint32_t>*, int) { return 0; }
};
TEST_F(LockTest, AForgottenWakeIsFound) {
  const Report report = explore({}, [](Program* program) {
    auto lock = std::make_shared<os::LockOver<Forgetful>>();
    for (int t = 0; t < 2; ++t) {
      program->add_thread([=] {
        lock->acquire();
        lock->release();
      });
    }
  });
  EXPECT_NE(report.failure.find("nobody can go on"), std::string::npos) << report;
}

// The machine's own lock, taken while there is no other thread: in the first round, where the case
// runs in a process of its own; libc does not say so again once there was one.
TEST(LockAlone, IsWaitedForByThreadsThatComeLater) {
  static os::Lock lock;
  int turns = 0;
  for (int round = 0; round < 100; ++round) {
    lock.acquire();
    std::thread other([&] {
      const os::LockGuard guard(lock);
      ++turns;
    });
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_FALSE(lock.try_acquire());
    ASSERT_EQ(turns, round);
    lock.release();
    other.join();
    ASSERT_EQ(turns, round + 1);
  }
  EXPECT_TRUE(lock.try_acquire());
}

}  // namespace
}  // namespace jd::test

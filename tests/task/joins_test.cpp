// Who goes on at a join whose other part was stolen (task.req.last-continues).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jackdaw/task.hpp>
#include <thread>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>

#include "counters.hpp"

namespace {

using Clock = std::chrono::steady_clock;

bool with_stacks() { return jd_task_get_mode() != JD_TASK_DEQUE; }

void wait_until(const auto& done) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (!done() && Clock::now() < end) jd::poll();
}

// A join whose second part was stolen, and ends `pause` after the forker has left.
struct StolenJoin {
  // The kernel's ids: compilers take what the C library tells of the calling thread for the same
  // all over a function.
  pid_t before = 0;
  pid_t after = 0;
};
StolenJoin join_stolen(std::chrono::microseconds pause) {
  StolenJoin result;
  jd::run([&] {
    const auto before = counters_now().joins_suspended;
    result.before = gettid();
    std::atomic<bool> begun{false};
    jd::par([&] { wait_until([&] { return begun.load(); }); },
            [&] {
              begun = true;
              wait_until([&] { return counters_now().joins_suspended > before; });
              const auto end = Clock::now() + pause;
              wait_until([&] { return Clock::now() >= end; });
            });
    result.after = gettid();
  });
  return result;
}

class Joins : public testing::Test {
 protected:
  void SetUp() override {
    jd_task_stop();
    jd_task_start(2);
    if (!with_stacks()) GTEST_SKIP() << "in deque mode the forker always goes on itself";
  }
  void TearDown() override { jd_task_stop(); }
};

TEST_F(Joins, AFrameIsGivenBackToItsForkerThatLooksForWork) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  std::uint64_t stayed = 0;
  // A forker that has lost its processor does not look. One that comes to its join after its other
  // part's end stays in its worker, too.
  while (counters_now().given_back < 20) {
    const StolenJoin join = join_stolen(std::chrono::microseconds(20));
    stayed += join.after == join.before ? 1 : 0;
    ASSERT_LT(Clock::now(), end) << counters_now().given_back;
  }
  EXPECT_GE(stayed, counters_now().given_back);
}

TEST_F(Joins, TheOtherGoesOnWhereTheForkerSleeps) {
  StolenJoin join;
  // On a loaded machine it may not have come to its sleep yet.
  for (int tries = 0; tries < 20 && join.after == join.before; ++tries) {
    join = join_stolen(std::chrono::milliseconds(200));
  }
  EXPECT_NE(join.after, join.before);
}

TEST_F(Joins, TheOtherGoesOnWhereTheForkerIsBusy) {
  std::atomic<bool> suspended{false};
  std::atomic<bool> busy{false};
  std::atomic<bool> went_on{false};
  bool was_busy_then = false;  // when the frame went on
  bool saw_it_go_on = false;
  std::thread other([&] {
    wait_until([&] { return suspended.load(); });
    jd::run([&] {
      busy = true;
      wait_until([&] { return went_on.load(); });
      saw_it_go_on = went_on;
    });
  });
  jd::run([&] {
    const auto before = counters_now().joins_suspended;
    std::atomic<bool> begun{false};
    jd::par([&] { wait_until([&] { return begun.load(); }); },
            [&] {
              begun = true;
              wait_until([&] { return counters_now().joins_suspended > before; });
              suspended = true;
              wait_until([&] { return busy.load(); });
            });
    was_busy_then = busy;
    went_on = true;
  });
  other.join();
  EXPECT_TRUE(was_busy_then);
  EXPECT_TRUE(saw_it_go_on);
}

// What two libraries' C++ run-times, each its own, keep for a thread (Itanium C++ ABI, 2.2.2).
struct Globals {
  void* caught;
  unsigned uncaught;
};
thread_local Globals of_run_times[2];
// Looked up at each call: the caller may have gone on in another thread.
[[gnu::noinline]] Globals* globals(unsigned number) {
  asm volatile("" : : : "memory");
  return &of_run_times[number];
}
void* first_globals() { return globals(0); }
void* second_globals() { return globals(1); }

// A suspended task handles an exception of the second's. Meanwhile the first's library leaves, and
// another one comes that has the second's run-time, too.
TEST_F(Joins, ATaskKeepsItsExceptionWhileRunTimesComeAndGo) {
  jd_task_exceptions_are_of(first_globals);
  jd_task_exceptions_are_of(second_globals);
  int exception = 0;
  const void* caught_before = nullptr;
  const void* caught_after = nullptr;
  jd::run([&] {
    const auto before = counters_now().joins_suspended;
    std::atomic<bool> begun{false};
    globals(1)->caught = &exception;
    jd::par([&] { wait_until([&] { return begun.load(); }); },
            [&] {
              caught_before = globals(1)->caught;
              begun = true;
              wait_until([&] { return counters_now().joins_suspended > before; });
              jd_task_exceptions_are_no_more_of(first_globals);
              jd_task_exceptions_are_of(second_globals);
            });
    caught_after = globals(1)->caught;
    globals(1)->caught = nullptr;
  });
  jd_task_exceptions_are_no_more_of(second_globals);
  jd_task_exceptions_are_no_more_of(second_globals);
  EXPECT_EQ(caught_before, nullptr) << "the stolen part is within the forker's handler";
  EXPECT_EQ(caught_after, &exception);
}

template <unsigned number>
void* other_globals() {
  static thread_local Globals of_one;
  return &of_one;
}

TEST_F(Joins, MoreRunTimesThanAreKnownAreToldOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    for (void* (*const globals)() : {other_globals<0>, other_globals<1>, other_globals<2>,
                                     other_globals<3>, other_globals<4>}) {
      jd_task_exceptions_are_of(globals);
    }
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("more than 4 C++ run-times"), std::string::npos) << said;
  for (int i = 0; i < 2; ++i) {
    for (void* (*const globals)() : {other_globals<0>, other_globals<1>, other_globals<2>,
                                     other_globals<3>, other_globals<4>}) {
      jd_task_exceptions_are_no_more_of(globals);
    }
  }
}

// What a child forks into somebody's scope runs above the child's forker in the deque mode, and in
// the others wherever there is a worker: in neither within the forker's handler.
// task.req.stacks-bounded: however many joins were suspended, no more stacks are made than these
// forks within forks can have in use.
TEST_F(Joins, StacksAreUsedAgain) {
  if (!with_stacks()) GTEST_SKIP() << "tasks have no stacks of their own";
  constexpr unsigned kWorkers = 3;
  constexpr unsigned kDepth = 8;
  jd_task_stop();
  jd_task_start(kWorkers);
  const jd_task_counters before = counters_now();
  const auto suspended = [&] { return counters_now().joins_suspended - before.joins_suspended; };
  const auto tree = [](auto self, unsigned depth) -> void {
    if (depth == 0) return static_cast<void>(usleep(10));
    jd::par([=] { self(self, depth - 1); }, [=] { self(self, depth - 1); });
  };
  constexpr std::uint64_t kEnough = 50 * kWorkers * kDepth;
  for (int i = 0; i < 10000 && suspended() < kEnough; ++i) jd::run([&] { tree(tree, kDepth); });
  ASSERT_GE(suspended(), kEnough);
  EXPECT_LE(counters_now().stacks_peak, 2 * kWorkers * (kDepth + 1));
  EXPECT_LE(counters_now().stacks - before.stacks, 2 * kWorkers * (kDepth + 1));
}

TEST(ScopeTasks, AreInNoHandlerOfAnothers) {
  jd_task_start(1);
  std::atomic<bool> finds_exception{false};
  std::atomic<int> rounding{-1};
  jd::run([&] {
    jd::scope outer;
    try {
      throw std::runtime_error("a stranger's");
    } catch (const std::runtime_error&) {
      const int before = std::fegetround();
      std::fesetround(FE_UPWARD);
      jd::par(
          [&] {
            outer.fork([&] {
              finds_exception = std::current_exception() != nullptr;
              rounding = std::fegetround();
            });
          },
          [] {});
      std::fesetround(before);
    }
    outer.join();
  });
  EXPECT_FALSE(finds_exception.load());
  EXPECT_EQ(rounding.load(), FE_TONEAREST);
  jd_task_stop();
}

// They are joined in the order in which they were begun, so that the first one's lie below.
TEST(ScopeTasks, OfTwoScopesOfOneTaskAreBothRunInAChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#endif
  jd_task_start(1);
  std::atomic<int> status{-1};
  jd::run([&] {
    int first = 0;
    int second = 0;
    jd::scope a;
    jd::scope b;
    for (int i = 0; i < 3; ++i) {
      a.fork([&] { ++first; });
      b.fork([&] { ++second; });
    }
    const pid_t child = fork();
    if (child == 0) {
      a.join();
      const bool others_wait = second == 0;
      b.join();
      _exit(others_wait && first == 3 && second == 3 ? 0 : 7);
    }
    int ended = -1;
    waitpid(child, &ended, 0);
    status = ended;
    a.join();
    b.join();
  });
  EXPECT_EQ(status.load(), 0);
  jd_task_stop();
}

// The child of a task has its parent's deque, with tasks of others' scopes in it.
TEST(ScopeTasks, OfOthersAreNotRunInAChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#endif
  jd_task_start(1);
  const pid_t parent = getpid();
  std::atomic<int> status{-1};
  std::atomic<int> others{0};
  jd::scope outer;
  outer.fork([&] {
    // The newest is run first.
    outer.fork([&] {
      if (getpid() != parent) _exit(7);
      ++others;
    });
    outer.fork([&] {
      const pid_t child = fork();
      if (child == 0) {
        bool own = false;
        jd::scope inner;
        inner.fork([&] { own = true; });
        inner.join();
        _exit(own ? 0 : 8);
      }
      int ended = -1;
      waitpid(child, &ended, 0);
      status = ended;
    });
  });
  outer.join();
  EXPECT_EQ(status.load(), 0) << "7 << 8: another's task was run";
  EXPECT_EQ(others.load(), 1);
  jd_task_stop();
}

}  // namespace

// Who goes on at a join whose other part was stolen (task.req.last-continues).
#include <gtest/gtest.h>
#include <unistd.h>
#include <jackdaw/task.hpp>
#include <thread>

#include <atomic>
#include <chrono>

namespace {

using Clock = std::chrono::steady_clock;

bool with_stacks() { return jd_task_get_mode() != JD_TASK_DEQUE; }

jd_task_counters counters_now() {
  jd_task_counters counters{};
  jd_task_get_counters(&counters);
  return counters;
}

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
  std::uint64_t given_back = 0;  // during the join
};
StolenJoin join_stolen(std::chrono::microseconds pause) {
  StolenJoin result;
  jd::run([&] {
    const jd_task_counters before = counters_now();
    result.before = gettid();
    std::atomic<bool> begun{false};
    jd::par([&] { wait_until([&] { return begun.load(); }); },
            [&] {
              begun = true;
              wait_until([&] { return counters_now().joins_suspended > before.joins_suspended; });
              const auto end = Clock::now() + pause;
              wait_until([&] { return Clock::now() >= end; });
            });
    result.after = gettid();
    result.given_back = counters_now().given_back - before.given_back;
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
  int given_back = 0;
  // A forker that has lost its processor meanwhile does not look.
  while (given_back < 20) {
    const StolenJoin join = join_stolen(std::chrono::microseconds(20));
    EXPECT_EQ(join.given_back != 0, join.after == join.before);
    given_back += join.given_back != 0 ? 1 : 0;
    ASSERT_LT(Clock::now(), end) << given_back;
  }
}

TEST_F(Joins, TheOtherGoesOnWhereTheForkerSleeps) {
  const StolenJoin join = join_stolen(std::chrono::milliseconds(200));
  EXPECT_NE(join.after, join.before);
  EXPECT_EQ(join.given_back, 0u);
}

TEST_F(Joins, TheOtherGoesOnWhereTheForkerIsBusy) {
  std::atomic<bool> suspended{false};
  std::atomic<bool> busy{false};
  std::atomic<bool> went_on{false};
  bool waited_in_vain = false;
  std::thread other([&] {
    wait_until([&] { return suspended.load(); });
    jd::run([&] {
      busy = true;
      wait_until([&] { return went_on.load(); });
      waited_in_vain = !went_on;
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
    went_on = true;
  });
  other.join();
  EXPECT_FALSE(waited_in_vain);
}

}  // namespace

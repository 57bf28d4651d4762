// What the scheduler tells of itself: classes of times, and answers at polls (task.req.poll).
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <jackdaw/task.hpp>
#include <thread>

#include <atomic>
#include <chrono>

#include "counters.hpp"

namespace {

TEST(Times, ClassesCoverAllTicks) {
  EXPECT_EQ(jd_task_time_class_begin(0), 0u);
  for (unsigned k = 1; k < JD_TASK_TIME_CLASSES; ++k) {
    const auto begin = jd_task_time_class_begin(k);
    const auto before = jd_task_time_class_begin(k - 1);
    EXPECT_GT(begin, before) << k;
    // Four to each power of two.
    if (k >= 4) {
      EXPECT_LE(4 * (begin - before), begin) << k;
    }
  }
  EXPECT_EQ(jd_task_time_class_begin(40), 2048u);
}

TEST(Times, QuantilesLieInTheirClass) {
  jd_task_times times{};
  EXPECT_EQ(jd_task_times_quantile(&times, 0.5), 0);
  times.count[40] = 100;
  EXPECT_EQ(jd_task_times_quantile(&times, 0.5), 2048 + 256);
  times.count[60] = 300;
  EXPECT_GE(jd_task_times_quantile(&times, 0.5), static_cast<double>(jd_task_time_class_begin(60)));
  EXPECT_LT(jd_task_times_quantile(&times, 0.5), static_cast<double>(jd_task_time_class_begin(61)));
  EXPECT_LE(jd_task_times_quantile(&times, 0.25),
            static_cast<double>(jd_task_time_class_begin(41)));
}

std::uint64_t count_of(jd_task_time kind) {
  jd_task_times times{};
  jd_task_get_times(kind, &times);
  std::uint64_t sum = 0;
  for (const std::uint64_t count : times.count) sum += count;
  return sum;
}

void fork_nothing() {
  jd::par([] {}, [] {});
}

enum class Signals : bool { Blocked, Taken };

void take_no_signals() {
  sigset_t steals;
  sigemptyset(&steals);
  sigaddset(&steals, SIGURG);
  pthread_sigmask(SIG_BLOCK, &steals, nullptr);
}

// A fork that is stolen while its first part does this again and again. False if nobody came.
bool steal_from_code_with(void (*answer)(), Signals signals) {
  return jd::run([answer, signals] {
    std::atomic<bool> begun{false};
    auto [came, result] = jd::par(
        [&begun, answer, signals] {
          // Its thread is a worker, and ends with the test.
          if (signals == Signals::Blocked) take_no_signals();
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (!begun.load(std::memory_order_relaxed)) {
            for (int i = 0; i < 1000; ++i) answer();
            if (std::chrono::steady_clock::now() > end) return false;
          }
          return true;
        },
        [&begun] {
          begun = true;
          return 7;
        });
    return came && result == 7;
  });
}

// Without signals: where thief and victim share a CPU, as on a loaded machine, a signal comes
// before the victim runs again, and would be answered first each time.
void expect_answers_by(void (*answer)()) {
  jd_task_stop();
  jd_task_start(2);
  const bool by_stack = jd_task_get_mode() != JD_TASK_DEQUE;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(steal_from_code_with(answer, Signals::Blocked));
  const jd_task_counters counters = counters_now();
  EXPECT_EQ(counters.polls_answered > 0, by_stack);
  EXPECT_EQ(count_of(JD_TASK_TIME_VICTIM_POLLED), counters.polls_answered);
  jd_task_stop();
}

TEST(Poll, AnswersThieves) { expect_answers_by(jd::poll); }
TEST(Poll, AForkIsOne) { expect_answers_by(fork_nothing); }

// ---- What a victim keeps ----

std::uint64_t answers() {
  return counters_now().polls_answered + count_of(JD_TASK_TIME_VICTIM_STOPPED);
}

// Forks within forks, and the innermost waits until the outermost is stolen, whose thief is busy
// until all but that have returned.
struct Nest {
  std::atomic<bool> stolen{false};
  std::atomic<bool> returned{false};
  std::uint64_t answers_when_built = 0;
  // Later its worker is a thief itself, and the other may answer.
  std::uint64_t answers_when_returned = 0;

  void build(unsigned depth) {
    if (depth == 0) return wait();
    jd::par([this, depth] { build(depth - 1); }, [] {});
  }
  void wait() {
    answers_when_built = answers();
    while (!stolen.load(std::memory_order_relaxed)) jd::poll();
  }
};

// Returns to the barrier, where `depth` forks were on the stack when the thief's only request came.
std::uint64_t returns_to_barrier(unsigned depth) {
  jd_task_stop();
  jd_task_start(2);
  for (;;) {
    Nest nest;
    const std::uint64_t answers_before = answers();
    const std::uint64_t returns_before = counters_now().barrier_hits;
    jd::run([&nest, depth] {
      jd::par(
          [&nest, depth] {
            nest.build(depth - 1);
            nest.answers_when_returned = answers();
            nest.returned = true;
          },
          [&nest] {
            nest.stolen = true;
            while (!nest.returned.load(std::memory_order_relaxed)) std::this_thread::yield();
          });
    });
    // Otherwise it came before all were there, or woke up to a fork that was published for it.
    if (nest.answers_when_built == answers_before &&
        nest.answers_when_returned == answers_before + 1) {
      return counters_now().barrier_hits - returns_before;
    }
  }
}

// task.req.one-stop: the forks below were taken without stopping it again.
// task.md, "The steal": the newest three are not published where there are older ones.
TEST(Poll, TheNewestForksStayTheVictims) {
  if (std::thread::hardware_concurrency() < 2) {
    GTEST_SKIP() << "a thief and its victim must run at once: there is one CPU";
  }
  if (jd_task_get_mode() == JD_TASK_DEQUE) GTEST_SKIP() << "there is no barrier";
  const bool publishes_all = jd_task_get_mode() == JD_TASK_BARRIER;
  EXPECT_EQ(returns_to_barrier(1), 1u);
  EXPECT_EQ(returns_to_barrier(3), 1u);
  EXPECT_EQ(returns_to_barrier(4), 1u);
  EXPECT_EQ(returns_to_barrier(5), publishes_all ? 2u : 1u);
  EXPECT_EQ(returns_to_barrier(9), publishes_all ? 6u : 1u);
}

// In a thread that is no worker it answers nobody, and puts right what says that somebody waits.
TEST(Poll, IsForEverybody) {
  jd_task_start(2);
  const jd_task_counters before = counters_now();
  for (void (*poll)() : {+[] { jd::poll(); }, +[] { jd_task_poll(); }, +[] { jd_task_answer(); }}) {
    poll();
#if defined(__x86_64__)
    __atomic_store_n(&jd_task_wanted, 1, __ATOMIC_RELAXED);
    poll();
    EXPECT_EQ(__atomic_load_n(&jd_task_wanted, __ATOMIC_RELAXED), 0);
#endif
  }
  const jd_task_counters after = counters_now();
  EXPECT_EQ(after.polls_answered, before.polls_answered);
  EXPECT_EQ(after.victim_poll_ticks, before.victim_poll_ticks);
}

// Each steal is in exactly one class.
TEST(Times, CountAllSteals) {
  jd_task_stop();
  jd_task_start(3);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(steal_from_code_with(jd::poll, Signals::Taken));
  const jd_task_counters counters = counters_now();
  EXPECT_EQ(count_of(JD_TASK_TIME_DEQUE), counters.steals - counters.stack_steals);
  EXPECT_EQ(count_of(JD_TASK_TIME_BELOW_BARRIER) + count_of(JD_TASK_TIME_STOPPED) +
                count_of(JD_TASK_TIME_POLLED),
            counters.stack_steals);
  EXPECT_LE(count_of(JD_TASK_TIME_VICTIM_STOPPED), counters.requests);
  EXPECT_GT(counters.steals, 0u);
}

}  // namespace

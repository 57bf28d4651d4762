// tasks-latency [--quick]: how long single steps of the scheduler take, with two workers, in the
// mode that JACKDAW_TASK_MODE chooses. Prints one line of JSON; times in nanoseconds.
//
//   steal     A chain of forks, each below the other, whose innermost task waits until a thief has
//             taken them all: from the start of one stolen task to that of the next, which the same
//             thief takes. The task itself does nothing but read the clock. By the
//             scheduler's own count: from a thief's decision on, by what it had to do.
//   poll      The same chain, whose innermost task polls while it waits.
//   signal    The bare round trip of a signal to a thread that computes: sent, handled, seen. And
//             for how long that thread stands still, the kernel's part included (standstill).
//   wake-up   From a fork to the start of the forked task, when the other worker has slept.
//   futex     The bare wake-up of a thread that has slept as long, of another processor: from the
//             call to its first step.
//   idle      What a worker without work takes of a CPU, from 10 ms after its last task on.
//   stream    What reading one large array and writing another moves, in bytes a second, by one
//             thread and by two.
#include <jackdaw/task.hpp>

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "ticks.hpp"

namespace bench {
namespace {

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// A task's sleep is interrupted when thieves ask it.
void sleep_ms(long ms) {
  timespec left{ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) continue;
}

double ticks_per_ns = 1;
void calibrate() {
  const double began = seconds(CLOCK_MONOTONIC);
  const std::uint64_t ticks = ticks_now();
  sleep_ms(50);
  ticks_per_ns =
      static_cast<double>(ticks_now() - ticks) / ((seconds(CLOCK_MONOTONIC) - began) * 1e9);
}

// A waiting time that ends, so that a missing thief makes a missing figure and no endless run.
class Patience {
 public:
  explicit Patience(double limit) : end_(seconds(CLOCK_MONOTONIC) + limit) {}
  bool is_over() const { return seconds(CLOCK_MONOTONIC) > end_; }

 private:
  double end_;
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool is_first = true;
void print(const char* name, double value) {
  std::printf("%s\"%s\": %.9g", is_first ? "{" : ", ", name, value);
  is_first = false;
}

// Prints the median of the samples; nothing where there are none.
void print_median(const char* name, const std::vector<double>& samples) {
  if (samples.empty()) return;
  print(name, median(samples));
}

// ---- steal ----

constexpr int kChain = 64;
struct Start {
  std::uint64_t ticks;
  pid_t thread;
};
// Each written by the task that runs, and read after the join.
Start starts[kChain];
std::atomic<int> started{0};

template <bool kPolls>
void chain(int depth) {
  if (depth == kChain) {
    const Patience patience(0.5);
    while (started.load(std::memory_order_acquire) < kChain && !patience.is_over()) {
      // Many to a look at the clock, which takes longer than they do.
      for (int i = 0; i < 16; ++i) {
        if constexpr (kPolls) jd::poll();
        relax();
      }
    }
    return;
  }
  jd::par([depth] { chain<kPolls>(depth + 1); },
          [depth] {
            starts[depth] = {ticks_now(), gettid()};
            started.fetch_add(1, std::memory_order_acq_rel);
          });
}

// The scheduler's own counts of times, of what happens from here on.
class Times {
 public:
  explicit Times(jd_task_time kind) : kind_(kind) { jd_task_get_times(kind, &before_); }
  void print_median(const char* name) const {
    jd_task_times now{};
    jd_task_get_times(kind_, &now);
    bool any = false;
    for (int i = 0; i < JD_TASK_TIME_CLASSES; ++i) {
      now.count[i] -= before_.count[i];
      any |= now.count[i] != 0;
    }
    if (any) print(name, jd_task_times_quantile(&now, 0.5) / ticks_per_ns);
  }

 private:
  jd_task_time kind_;
  jd_task_times before_{};
};

void measure_polls(int rounds) {
  const Times polled(JD_TASK_TIME_POLLED);
  const Times victim(JD_TASK_TIME_VICTIM_POLLED);
  for (int round = 0; round < rounds; ++round) {
    started = 0;
    jd::run([] { chain<true>(0); });
  }
  polled.print_median("steal at a poll");
  victim.print_median("victim at a poll");
}

void measure_steals(int rounds) {
  const Times deque(JD_TASK_TIME_DEQUE);
  const Times below(JD_TASK_TIME_BELOW_BARRIER);
  const Times stopped(JD_TASK_TIME_STOPPED);
  const Times victims(JD_TASK_TIME_VICTIM_STOPPED);
  std::vector<double> samples;
  jd_task_counters before{};
  jd_task_counters after{};
  jd_task_get_counters(&before);
  for (int round = 0; round < rounds; ++round) {
    started = 0;
    pid_t victim = 0;
    jd::run([&victim] {
      victim = gettid();
      chain<false>(0);
    });
    // The oldest is taken first.
    for (int i = 1; i < kChain; ++i) {
      if (starts[i].thread == victim || starts[i - 1].thread != starts[i].thread) continue;
      if (starts[i].ticks < starts[i - 1].ticks) continue;
      samples.push_back(static_cast<double>(starts[i].ticks - starts[i - 1].ticks) / ticks_per_ns);
    }
  }
  jd_task_get_counters(&after);
  print_median("steal", samples);
  const auto steals = static_cast<double>(after.steals - before.steals);
  print("steals", steals);
  print("requests", static_cast<double>(after.requests - before.requests));
  if (steals > 0) {
    print("decision to task, mean",
          static_cast<double>(after.thief_ticks - before.thief_ticks) / steals / ticks_per_ns);
  }
  deque.print_median("steal from a deque");
  below.print_median("steal below a barrier");
  stopped.print_median("steal with a stop");
  victims.print_median("victim in the handler");
}

// ---- signal ----

std::atomic<bool> handled{false};
void on_signal(int /*signal*/) { handled.store(true, std::memory_order_release); }

void measure_signals(int rounds) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGUSR2, &action, nullptr);
  std::atomic<bool> over{false};
  std::atomic<bool> runs{false};
  // The longest time between two looks at the clock: since the last round.
  std::atomic<std::uint64_t> longest{0};
  std::thread computes([&] {
    runs = true;
    std::uint64_t last = ticks_now();
    while (!over.load(std::memory_order_relaxed)) {
      const std::uint64_t now = ticks_now();
      if (now - last > longest.load(std::memory_order_relaxed)) longest = now - last;
      last = now;
    }
  });
  while (!runs) sleep_ms(1);
  std::vector<double> samples;
  std::vector<double> standstills;
  for (int i = 0; i < rounds; ++i) {
    handled = false;
    longest = 0;
    const std::uint64_t began = ticks_now();
    pthread_kill(computes.native_handle(), SIGUSR2);
    while (!handled.load(std::memory_order_acquire)) relax();
    samples.push_back(static_cast<double>(ticks_now() - began) / ticks_per_ns);
    const std::uint64_t pause = ticks_now();
    while (static_cast<double>(ticks_now() - pause) < 20000 * ticks_per_ns) relax();
    standstills.push_back(static_cast<double>(longest.load()) / ticks_per_ns);
  }
  over = true;
  computes.join();
  print_median("signal", samples);
  print_median("standstill", standstills);
}

// ---- wake-up and idling ----

void measure_wake_ups(int rounds) {
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) {
    jd::run([&samples] {
      // Until the other worker sleeps for good: it has naps of some 6 ms before that.
      sleep_ms(20);
      std::atomic<std::uint64_t> began{0};
      const pid_t forker = gettid();
      pid_t runner = forker;
      const std::uint64_t forked = ticks_now();
      jd::par(
          [&began] {
            const Patience patience(0.2);
            while (began.load(std::memory_order_acquire) == 0 && !patience.is_over()) relax();
          },
          [&began, &runner] {
            runner = gettid();
            began.store(ticks_now(), std::memory_order_release);
          });
      if (runner != forker) {
        samples.push_back(static_cast<double>(began.load() - forked) / ticks_per_ns);
      }
    });
  }
  print_median("wake-up", samples);
}

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

// The two threads keep to a processor each: the system leaves both on the one where they have been,
// if so, and there the sleeper waits for the waker's time slice to end.
bool keep_to(int which, const cpu_set_t& usable) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || which-- != 0) continue;
    CPU_SET(cpu, &one);
    return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
  }
  return false;
}

void measure_bare_wake_ups(int rounds) {
  cpu_set_t usable;
  if (pthread_getaffinity_np(pthread_self(), sizeof usable, &usable) != 0 ||
      CPU_COUNT(&usable) < 2 || !keep_to(0, usable)) {
    return;
  }
  // Odd: the sleeper is to sleep until it is even.
  std::atomic<std::uint32_t> word{1};
  std::atomic<std::uint64_t> woke{0};
  std::thread sleeper([&] {
    keep_to(1, usable);
    std::uint32_t seen = 1;
    for (int i = 0; i < rounds; ++i, seen += 2) {
      while (word.load(std::memory_order_acquire) == seen) futex(&word, FUTEX_WAIT, seen);
      woke.store(ticks_now(), std::memory_order_release);
      while (word.load(std::memory_order_acquire) == seen + 1) relax();
    }
  });
  std::vector<double> samples;
  for (int i = 0; i < rounds; ++i) {
    sleep_ms(20);
    woke.store(0, std::memory_order_relaxed);
    const std::uint64_t called = ticks_now();
    word.fetch_add(1, std::memory_order_release);
    futex(&word, FUTEX_WAKE, 1);
    while (woke.load(std::memory_order_acquire) == 0) relax();
    samples.push_back(static_cast<double>(woke.load() - called) / ticks_per_ns);
    word.fetch_add(1, std::memory_order_release);
  }
  sleeper.join();
  pthread_setaffinity_np(pthread_self(), sizeof usable, &usable);
  print_median("futex", samples);
}

void measure_idling(bool quick) {
  jd::run([] { jd::par([] {}, [] {}); });
  sleep_ms(10);
  const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double began = seconds(CLOCK_MONOTONIC);
  sleep_ms(quick ? 20 : 1000);
  const double used = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  print("idle", used / (seconds(CLOCK_MONOTONIC) - began) / jd_task_workers());
}

// ---- stream ----

double stream(unsigned threads, std::size_t points, int rounds) {
  std::vector<double> from(points, 1);
  std::vector<double> to(points, 2);
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const double began = seconds(CLOCK_MONOTONIC);
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        const double* __restrict source = from.data();
        double* __restrict target = to.data();
        for (std::size_t i = points * t / threads; i < points * (t + 1) / threads; ++i) {
          target[i] = 0.5 * source[i];
        }
      });
    }
    for (std::thread& thread : all) thread.join();
    const double bytes = 3.0 * sizeof(double) * static_cast<double>(points);
    rates.push_back(bytes / (seconds(CLOCK_MONOTONIC) - began));
    from.swap(to);
  }
  return median(rates);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (argc != 1 && !quick) {
    std::fputs("usage: tasks-latency [--quick]\n", stderr);
    return 1;
  }
  calibrate();
  jd_task_start(2);
  measure_steals(quick ? 2 : 100);
  measure_polls(quick ? 5 : 300);
  measure_wake_ups(quick ? 2 : 100);
  measure_idling(quick);
  jd_task_stop();
  measure_signals(quick ? 5 : 500);
  measure_bare_wake_ups(quick ? 2 : 100);
  const std::size_t points = quick ? 100000 : 4 << 20;
  print("stream, 1 thread", stream(1, points, quick ? 1 : 9));
  print("stream, 2 threads", stream(2, points, quick ? 1 : 9));
  static const char* const modes[] = {"deque", "stop", "barrier"};
  std::printf(", \"mode\": \"%s\"}\n", modes[jd_task_get_mode()]);
  return 0;
}

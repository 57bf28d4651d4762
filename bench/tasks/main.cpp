// The task benchmarks of one framework:
//
//   tasks-FRAMEWORK PROBLEM WORKERS [--quick]
//   trees-FRAMEWORK trees WORKERS [--quick]
//
// Runs the problem until half a second or five runs are over, checks each result, and prints one
// line of JSON: the median time, and the CPU time and the counters of the runs together.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(BENCH_TREES)
#include "../support/library.h"
#include "problems/trees.hpp"
#else
#include "problems/fib.hpp"
#include "problems/heat.hpp"
#include "problems/integrate.hpp"
#include "problems/jacobi.hpp"
#include "problems/lud.hpp"
#include "problems/multiply.hpp"
#include "problems/queens.hpp"
#include "problems/search.hpp"
#include "problems/sort.hpp"
#endif
#include "ticks.hpp"

// Prepares a problem where its tasks will run: with one worker, what the program's first thread had
// just written would have to come out of another processor's cache.
BENCH_DECLARE(void, prepare, void (*prepare_problem)(void*), void* problem);
BENCH_TASK(void, prepare, void (*prepare_problem)(void*), void* problem) {
  prepare_problem(problem);
  BENCH_RETURN_VOID;
}

namespace bench {
namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "%s: %s\n", framework::kName, what);
  std::exit(1);
}

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// What all timed runs took together.
struct Taken {
  std::vector<double> times;
  double elapsed = 0;
  double processors = 0;
  double ticks = 0;
};

#if defined(BENCH_IS_JACKDAW)
jd_task_counters counters_now() {
  jd_task_counters counters{};
  jd_task_get_counters(&counters);
  return counters;
}

// Those that grow, of the timed runs alone.
#define BENCH_EACH_COUNTER(visit)                                                               \
  visit(pushed) visit(steals) visit(stack_steals) visit(requests) visit(requests_empty)         \
      visit(requests_refused) visit(barrier_hits) visit(barrier_waits) visit(joins_suspended)   \
          visit(sleeps) visit(victim_stop_ticks) visit(victim_barrier_ticks) visit(thief_ticks) \
              visit(polls_answered) visit(victim_poll_ticks) visit(given_back)

void add_difference(jd_task_counters* sum, const jd_task_counters& before,
                    const jd_task_counters& after) {
#define BENCH_ADD(name) sum->name += after.name - before.name;
  BENCH_EACH_COUNTER(BENCH_ADD)
#undef BENCH_ADD
}

void print_counters(const jd_task_counters& sum, const jd_task_counters& now) {
  const auto print = [](const char* name, uint64_t value) {
    std::printf(", \"%s\": %llu", name, static_cast<unsigned long long>(value));
  };
#define BENCH_PRINT(name) print(#name, sum.name);
  BENCH_EACH_COUNTER(BENCH_PRINT)
#undef BENCH_PRINT
  print("stacks", now.stacks);
  print("stacks_peak", now.stacks_peak);
  static const char* const modes[] = {"deque", "stop", "barrier"};
  std::printf(", \"mode\": \"%s\"", modes[jd_task_get_mode()]);
}
#endif

// Sorts them.
double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Nothing that the compiler knows of the problem holds on the other side of this.
template <class Problem>
void forget(Problem* problem) {
  asm volatile("" : : "r"(problem) : "memory");
}

template <class Problem>
void prepare(Problem& problem) {
  const auto prepare_it = [](void* it) { static_cast<Problem*>(it)->prepare(); };
  BENCH_RUN(::prepare, +prepare_it, static_cast<void*>(&problem));
}

template <class Problem>
void measure(Problem problem, const char* name, unsigned workers, bool quick) {
  constexpr double kEnough = 0.5;
  constexpr std::size_t kMostRuns = 5;
  framework::start(workers);
  // Here, so that its arrays come from the first thread's malloc in every program.
  problem.prepare();
  // One run that is not timed: threads start, pages are touched.
  prepare(problem);
  forget(&problem);
  problem.run();
  if (!problem.check()) die("a wrong result");
#if defined(BENCH_COUNTS_FORKS)
  framework::forks = 0;
#endif
#if defined(BENCH_IS_JACKDAW)
  jd_task_counters counters{};
#endif
  Taken taken;
  do {
    prepare(problem);
    forget(&problem);
#if defined(BENCH_IS_JACKDAW)
    const jd_task_counters before = counters_now();
#endif
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t ticks = ticks_now();
    const double began = seconds(CLOCK_MONOTONIC);
    problem.run();
    forget(&problem);
    const double took = seconds(CLOCK_MONOTONIC) - began;
    taken.ticks += static_cast<double>(ticks_now() - ticks);
    taken.processors += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    taken.elapsed += took;
    taken.times.push_back(took);
#if defined(BENCH_IS_JACKDAW)
    add_difference(&counters, before, counters_now());
#endif
    if (!problem.check()) die("a wrong result");
  } while (!quick && taken.elapsed < kEnough && taken.times.size() < kMostRuns);
  const auto runs = static_cast<double>(taken.times.size());
  std::printf(
      "{\"bench\": \"%s\", \"framework\": \"%s\", \"workers\": %u, \"time\": %.9g, \"runs\": %.0f, "
      "\"elapsed\": %.9g, \"processors\": %.9g, \"ticks\": %.0f",
      name, framework::kName, workers, median(taken.times), runs, taken.elapsed, taken.processors,
      taken.ticks);
  if constexpr (requires { problem.traffic(); }) {
    std::printf(", \"traffic\": %.0f", problem.traffic());
  }
#if defined(BENCH_COUNTS_FORKS)
  std::printf(", \"forks\": %.0f, \"depth\": %.0f", static_cast<double>(framework::forks) / runs,
              static_cast<double>(framework::deepest));
#endif
#if defined(BENCH_IS_JACKDAW)
  print_counters(counters, counters_now());
  if (jd_task_workers() != workers) die("another number of workers");
#endif
#if defined(BENCH_TREES)
  std::printf(", \"collections\": %lu", static_cast<unsigned long>(GC_get_gc_no()));
  print_library(stdout, "GC_get_gc_no");
#endif
  framework::stop();
  std::printf("}\n");
}

bool run_problem(const char* name, unsigned workers, bool quick) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
#if defined(BENCH_TREES)
  if (!is("trees")) return false;
  measure(Trees(quick), name, workers, quick);
#else
  if (is("fib")) {
    measure(Fib(34, quick), name, workers, quick);
  } else if (is("fib-42")) {
    measure(Fib(42, quick), name, workers, quick);
  } else if (is("queens")) {
    measure(Queens(quick), name, workers, quick);
  } else if (is("integrate")) {
    measure(Integrate(quick), name, workers, quick);
  } else if (is("jacobi")) {
    measure(Jacobi(quick), name, workers, quick);
  } else if (is("lud")) {
    measure(Lud(quick), name, workers, quick);
  } else if (is("heat")) {
    measure(Heat(quick), name, workers, quick);
  } else if (is("multiply")) {
    measure(Multiply(quick), name, workers, quick);
  } else if (is("sort")) {
    measure(Sort(quick), name, workers, quick);
  } else if (is("search")) {
    measure(Search(quick), name, workers, quick);
  } else {
    return false;
  }
#endif
  return true;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bool quick = argc == 4 && std::strcmp(argv[3], "--quick") == 0;
  const long workers = argc >= 3 ? std::strtol(argv[2], nullptr, 10) : 0;
  if ((argc != 3 && !quick) || workers < 1 || workers > 128) {
    bench::die("usage: PROBLEM WORKERS [--quick]");
  }
  if (!bench::run_problem(argv[1], static_cast<unsigned>(workers), quick)) {
    bench::die("no such problem");
  }
}

// What a fork costs: Fibonacci's numbers by jd::par, by the same program with each fork a call that
// is not inlined, and by nothing but calls. Live size: a stack of some forty frames.
//
//   task_fib [n] [rounds]
//
// Prints, in seconds, the medians of the rounds (the three alternate), the median of the forked
// ones' ratio to the plain ones, and the counters of the forked rounds. JACKDAW_WORKERS and
// JACKDAW_TASK_MODE choose how they run.
#include <jackdaw/task.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// Nothing but calls; the compiler inlines some of the recursion into itself.
[[gnu::noinline]] long calls(long n) {
  if (n < 2) return n;
  return calls(n - 1) + calls(n - 2);
}

// The same program as below, with each fork a call that is not inlined.
template <class A>
[[gnu::noinline]] long call_first(A a) {
  return a();
}
template <class A, class B>
std::pair<long, long> pair_of_calls(A a, B b) {
  const long x = call_first(a);
  return {x, b()};
}
long plain(long n) {
  if (n < 2) return n;
  auto [x, y] = pair_of_calls([n] { return plain(n - 1); }, [n] { return plain(n - 2); });
  return x + y;
}

long forked(long n) {
  if (n < 2) return n;
  auto [x, y] = jd::par([n] { return forked(n - 1); }, [n] { return forked(n - 2); });
  return x + y;
}

template <class F>
double seconds(F f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const long n = argc > 1 ? std::atol(argv[1]) : 38;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::vector<double> call_times;
  std::vector<double> plain_times;
  std::vector<double> forked_times;
  std::vector<double> ratios;
  long expected = 0;
  long result = 0;
  jd_task_start(0);
  for (int i = 0; i < rounds; ++i) {
    call_times.push_back(seconds([&] { expected = calls(n); }));
    plain_times.push_back(seconds([&] { expected = plain(n); }));
    forked_times.push_back(seconds([&] { result = jd::run([&] { return forked(n); }); }));
    ratios.push_back(forked_times.back() / plain_times.back());
    if (result != expected) {
      std::fprintf(stderr, "task_fib: fib(%ld) is %ld, not %ld\n", n, expected, result);
      return 1;
    }
  }
  static const char* const modes[] = {"deque", "stop", "barrier"};
  jd_task_counters c;
  jd_task_get_counters(&c);
  std::printf(
      "fib(%ld), %u workers, %s: calls %.3f s, plain %.3f s, forked %.3f s, forked / plain "
      "%.3f\n",
      n, jd_task_workers(), modes[jd_task_get_mode()], median(call_times), median(plain_times),
      median(forked_times), median(ratios));
  std::printf(
      "steals %lu, of these from stacks %lu, requests %lu (%lu empty, %lu refused), barrier hits "
      "%lu (%lu waited), joins suspended %lu, stacks %lu, sleeps %lu\n",
      c.steals, c.stack_steals, c.requests, c.requests_empty, c.requests_refused, c.barrier_hits,
      c.barrier_waits, c.joins_suspended, c.stacks, c.sleeps);
  return 0;
}

// What task.hpp promises: results, exceptions, cancellation, nesting, other threads, other
// processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <atomic>
#include <chrono>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "c_api.h"

namespace {

long fib(long n) {
  if (n < 2) return n;
  auto [x, y] = jd::par([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
  return x + y;
}

long plain_fib(long n) { return n < 2 ? n : plain_fib(n - 1) + plain_fib(n - 2); }

TEST(Par, ReturnsBothResults) {
  const auto pair = jd::par([] { return 1; }, [] { return std::string("two"); });
  EXPECT_EQ(pair.first, 1);
  EXPECT_EQ(pair.second, "two");
}

TEST(Par, TakesClosuresWithoutResults) {
  int x = 0;
  int y = 0;
  jd::par([&] { x = 1; }, [&] { y = 2; });
  EXPECT_EQ(x, 1);
  EXPECT_EQ(y, 2);
  const auto pair = jd::par([&] { x = 3; }, [] { return 4; });
  EXPECT_EQ(x, 3);
  EXPECT_EQ(pair.second, 4);
}

TEST(Par, MovesResultsThatCannotBeCopied) {
  auto pair =
      jd::par([] { return std::make_unique<int>(1); }, [] { return std::make_unique<int>(2); });
  EXPECT_EQ(*pair.first, 1);
  EXPECT_EQ(*pair.second, 2);
}

TEST(Par, RecursesInWorkers) {
  EXPECT_EQ(jd::run([] { return fib(25); }), plain_fib(25));
}

TEST(Par, RecursesFromAThreadThatIsNoWorker) { EXPECT_EQ(fib(18), plain_fib(18)); }

TEST(Par, RunsInWorkers) {
  EXPECT_EQ(jd_task_in_worker(), 0);
  EXPECT_EQ(jd::run([] { return jd_task_in_worker(); }), 1);
  // What proves short does not, when the test is repeated.
  const auto pair = jd::par(
      [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return jd_task_in_worker();
      },
      [] { return jd_task_in_worker(); });
  EXPECT_EQ(pair.first, 1);
  EXPECT_EQ(pair.second, 1);
}

TEST(Par, TakesLargeClosures) {
  std::vector<int> a(100, 1);
  std::vector<int> b(100, 2);
  const long k1 = 1, k2 = 2, k3 = 3, k4 = 4, k5 = 5;
  const auto pair = jd::run([&] {
    return jd::par([=] { return std::accumulate(a.begin(), a.end(), k1 + k2 + k3 + k4 + k5); },
                   [=] { return std::accumulate(b.begin(), b.end(), k1 + k2 + k3 + k4 + k5); });
  });
  EXPECT_EQ(pair.first, 115);
  EXPECT_EQ(pair.second, 215);
}

// ---- Exceptions ----

struct Boom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(Exceptions, OfTheFirstPartComeOutAndTheSecondEnds) {
  for (int i = 0; i < 100; ++i) {
    bool other = false;
    EXPECT_THROW(jd::run([&] { jd::par([]() -> int { throw Boom("a"); }, [&] { other = true; }); }),
                 Boom);
    EXPECT_TRUE(other);
  }
}

TEST(Exceptions, OfTheSecondPartComeOutAndTheFirstEnds) {
  bool other = false;
  EXPECT_THROW(jd::run([&] { jd::par([&] { other = true; }, [] { throw Boom("b"); }); }), Boom);
  EXPECT_TRUE(other);
}

// For as long as it takes others to steal, or not at all where nobody does.
void wait_for(const std::atomic<bool>& flag) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

// Set while the frames of what threw are left.
struct Leave {
  std::atomic<bool>* flag;
  ~Leave() { *flag = true; }
};

std::string thrown_by_two(bool first_throws_first) {
  std::atomic<bool> begun{false};
  std::atomic<bool> thrown{false};
  const auto part = [&thrown](const char* name, bool is_first) {
    if (!is_first) {
      wait_for(thrown);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const Leave leave{&thrown};
    throw Boom(name);
  };
  try {
    jd::run([&] {
      jd::par(
          [&] {
            wait_for(begun);
            part("first", first_throws_first);
          },
          [&] {
            begun = true;
            part("second", !first_throws_first);
          });
    });
  } catch (const Boom& boom) {
    return boom.what();
  }
  return "nothing";
}

// Several times, as the second part may be stolen from a waiting fork or from one that is a call.
TEST(Exceptions, TheFirstOfTwoWins) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(thrown_by_two(true), "first");
}

TEST(Exceptions, TheFirstOfTwoWinsThoughItIsTheSecondPart) {
  if (jd_task_workers() < 2) GTEST_SKIP() << "needs two workers: one runs the parts in their order";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(thrown_by_two(false), "second");
}

std::atomic<long> alive;
struct Guard {
  Guard() { ++alive; }
  ~Guard() { --alive; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

// A full tree in which leaf `bad` throws; each frame has a destructor to run.
long tree(int depth, long bad) {
  Guard guard;
  if (depth == 0) {
    if (bad == 0) throw Boom("leaf");
    return 1;
  }
  const long half = 1L << (depth - 1);
  auto [x, y] = jd::par([=] { return tree(depth - 1, bad >= 0 && bad < half ? bad : -1); },
                        [=] { return tree(depth - 1, bad >= half ? bad - half : -1); });
  return x + y;
}

TEST(Exceptions, ComeFromAnyDepth) {
  constexpr int kDepth = 10;
  for (long i = 0; i < 300; ++i) {
    const long bad = i % 5 == 0 ? -1 : (i * 7919) % (1L << kDepth);
    bool threw = false;
    long leaves = 0;
    try {
      leaves = jd::run([=] { return tree(kDepth, bad); });
    } catch (const Boom&) {
      threw = true;
    }
    EXPECT_EQ(threw, bad >= 0);
    EXPECT_EQ(leaves, threw ? 0 : 1L << kDepth);
    EXPECT_EQ(alive.load(), 0);
  }
}

// A fork while an exception is being handled: the handler's exception is the same one afterwards,
// in whatever thread that is.
long fork_in_handler(int depth) {
  if (depth == 0) return plain_fib(12) > 0 ? 1 : 0;
  try {
    throw Boom(std::to_string(depth));
  } catch (const Boom& boom) {
    auto [x, y] = jd::par([=] { return fork_in_handler(depth - 1); },
                          [=] { return fork_in_handler(depth - 1); });
    if (boom.what() != std::to_string(depth)) return -1000000;
    try {
      throw;
    } catch (const Boom& again) {
      if (again.what() != std::to_string(depth)) return -1000000;
    }
    return x + y;
  }
}

TEST(Exceptions, TheOneBeingHandledGoesAlong) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(jd::run([] { return fork_in_handler(9); }), 1L << 9);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  }
}

// ---- Scopes ----

TEST(Scope, JoinsEverything) {
  std::atomic<int> sum{0};
  jd::run([&] {
    jd::scope scope;
    for (int i = 1; i <= 1000; ++i) scope.fork([&sum, i] { sum += i; });
    scope.join();
    EXPECT_EQ(sum.load(), 500500);
    for (int i = 1; i <= 10; ++i) scope.fork([&sum, i] { sum += i; });
  });
  EXPECT_EQ(sum.load(), 500555);
}

TEST(Scope, WorksInAThreadThatIsNoWorker) {
  std::atomic<int> sum{0};
  {
    jd::scope scope;
    for (int i = 1; i <= 100; ++i) scope.fork([&sum, i] { sum += i; });
    scope.join();
    EXPECT_EQ(sum.load(), 5050);
  }
}

TEST(Scope, TakesMoreTasksThanADequeHolds) {
  std::atomic<int> count{0};
  jd::run([&] {
    jd::scope scope;
    for (int i = 0; i < 30000; ++i) scope.fork([&count] { ++count; });
    scope.join();
  });
  EXPECT_EQ(count.load(), 30000);
}

long nested(int depth) {
  if (depth == 0) return 1;
  std::atomic<long> sum{0};
  jd::scope scope;
  for (int i = 0; i < 4; ++i) scope.fork([&sum, depth] { sum += nested(depth - 1); });
  sum += nested(depth - 1);
  scope.join();
  return sum.load();
}

TEST(Scope, Nests) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(jd::run([] { return nested(5); }), 5L * 5 * 5 * 5 * 5);
  }
}

TEST(Scope, TasksForkIntoTheirAncestorsScope) {
  std::atomic<int> count{0};
  jd::run([&] {
    jd::scope scope;
    for (int i = 0; i < 50; ++i) {
      scope.fork([&] {
        ++count;
        jd::par([&] { scope.fork([&] { ++count; }); }, [&] { scope.fork([&] { ++count; }); });
      });
    }
    scope.join();
  });
  EXPECT_EQ(count.load(), 150);
}

TEST(Scope, ThrowsWhatWasThrownFirstWhenAllHaveEnded) {
  std::atomic<int> ended{0};
  jd::run([&] {
    jd::scope scope;
    for (int i = 0; i < 100; ++i) {
      scope.fork([&ended, i] {
        ++ended;
        if (i == 50) throw Boom("fifty");
      });
    }
    EXPECT_THROW(scope.join(), Boom);
    EXPECT_EQ(ended.load(), 100);
    scope.fork([&ended] { ++ended; });
    scope.join();
  });
  EXPECT_EQ(ended.load(), 101);
}

TEST(Scope, CancelledTasksDoNotBegin) {
  std::atomic<int> begun{0};
  jd::run([&] {
    jd::scope scope;
    scope.cancel();
    EXPECT_TRUE(scope.cancelled());
    for (int i = 0; i < 100; ++i) scope.fork([&begun] { ++begun; });
    scope.join();
  });
  EXPECT_EQ(begun.load(), 0);
}

TEST(Scope, DestroysEachClosureOnce) {
  std::atomic<int> copies{0};
  struct Counted {
    explicit Counted(std::atomic<int>* n) : count(n) { ++*count; }
    Counted(const Counted& other) : count(other.count) { ++*count; }
    ~Counted() { --*count; }
    Counted& operator=(const Counted&) = delete;
    std::atomic<int>* count;
  };
  jd::run([&] {
    jd::scope scope;
    for (int i = 0; i < 100; ++i) {
      scope.fork([counted = Counted(&copies)] { static_cast<void>(counted); });
    }
    scope.cancel();
    scope.join();
  });
  EXPECT_EQ(copies.load(), 0);
}

// ---- Loops ----

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const int length : {0, 1, 2, 63, 1000, 100000}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(length));
    jd::parallel_for(0, length, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
    for (const auto& count : calls) ASSERT_EQ(count.load(), 1);
  }
}

TEST(ParallelFor, TakesNegativeBoundsAndRanges) {
  std::atomic<long> sum{0};
  jd::parallel_for(-10L, 11L, [&](long i) { sum += i; });
  EXPECT_EQ(sum.load(), 0);
  std::vector<int> numbers(1000, 1);
  jd::parallel_for(numbers, [](int& n) { n += 1; });
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 2000);
}

TEST(ParallelFor, ThrowsAndStopsWhenCancelled) {
  EXPECT_THROW(jd::parallel_for(0, 1000,
                                [](int i) {
                                  if (i == 500) throw Boom("loop");
                                }),
               Boom);
  jd::cancellation cancel;
  std::atomic<int> count{0};
  jd::parallel_for(0, 100000,
                   [&](int) {
                     if (++count == 100) cancel.cancel();
                   },
                   {.grain = 1, .cancel = &cancel});
  EXPECT_GE(count.load(), 100);
  EXPECT_LT(count.load(), 100000);
}

TEST(ParallelReduce, KeepsTheOrder) {
  const std::string text = jd::parallel_reduce(
      0, 1000, std::string(), [](int i) { return std::to_string(i % 10); },
      [](std::string a, const std::string& b) { return a += b; }, {.grain = 7});
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += std::to_string(i % 10);
  EXPECT_EQ(text, expected);
  EXPECT_EQ(jd::parallel_reduce(
                5, 5, 42, [](int i) { return i; }, std::plus<>()),
            42);
}

TEST(ParallelReduce, TakesARange) {
  std::vector<std::string> words;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    words.push_back(std::to_string(i));
    expected += words.back();
  }
  const auto joined = [](std::string a, const std::string& b) { return a += b; };
  EXPECT_EQ(jd::parallel_reduce(words, std::string(), [](const std::string& word) { return word; },
                                joined, {.grain = 7}),
            expected);
  EXPECT_EQ(jd::parallel_reduce(words, std::size_t{0}, &std::string::size, std::plus<>()),
            expected.size());
}

// What a range yields may be a value, into which the result of map refers.
TEST(ParallelReduce, ElementsLiveUntilTheyAreCombined) {
  const auto words = std::views::iota(0, 1000) | std::views::transform([](int i) {
                       return std::string(40, static_cast<char>('a' + i % 26));
                     });
  const std::string text = jd::parallel_reduce(
      words, std::string(), [](auto&& word) -> auto&& { return word; },
      [](std::string a, const std::string& b) { return a += b; }, {.grain = 7});
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += std::string(40, static_cast<char>('a' + i % 26));
  EXPECT_EQ(text, expected);
}

TEST(ParallelReduce, EndsEarlyWhenCancelled) {
  jd::cancellation cancel;
  std::atomic<int> count{0};
  const int reached = jd::parallel_reduce(0, 100000, 0,
                                          [&](int) {
                                            if (++count == 100) cancel.cancel();
                                            return 1;
                                          },
                                          std::plus<>(), {.grain = 1, .cancel = &cancel});
  EXPECT_EQ(reached, count.load());
  EXPECT_GE(reached, 100);
  EXPECT_LT(reached, 100000);
}

TEST(ParallelSort, Sorts) {
  for (const int kind : {0, 1, 2, 3}) {
    std::vector<unsigned> numbers(200000);
    unsigned x = 12345;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      x = x * 1664525u + 1013904223u;
      numbers[i] = kind == 0 ? x : kind == 1 ? x % 3 : static_cast<unsigned>(kind == 2 ? i : ~i);
    }
    auto expected = numbers;
    std::sort(expected.begin(), expected.end());
    jd::parallel_sort(numbers);
    EXPECT_EQ(numbers, expected);
    jd::parallel_sort(numbers, std::greater<>());
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(numbers, expected);
  }
}

// ---- Threads and processes ----

TEST(Threads, SeveralMayCallAtOnce) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) good += jd::run([] { return fib(15); }) == plain_fib(15) ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 80);
}

TEST(Blocking, GivesTheSlotAway) {
  // As many tasks as there are workers wait for something that one more has to do.
  const unsigned workers = jd_task_workers();
  std::atomic<bool> opened{false};
  std::atomic<unsigned> waiting{0};
  jd::run([&] {
    jd::scope scope;
    for (unsigned i = 0; i < workers; ++i) {
      scope.fork([&] {
        jd::blocking([&] {
          ++waiting;
          while (!opened) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
      });
    }
    // Blocking, too: a lone worker begins with this one.
    scope.fork([&] {
      jd::blocking([&] {
        while (waiting.load() < workers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
      opened = true;
    });
    scope.join();
  });
  EXPECT_TRUE(opened.load());
  EXPECT_EQ(jd::run([] { return fib(15); }), plain_fib(15));
}

TEST(Blocking, LeavesItsForksToOthers) {
  std::atomic<bool> opened{false};
  jd::run([&] {
    jd::par(
        [&] {
          jd::blocking([&] {
            while (!opened) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          });
        },
        [&] { opened = true; });
  });
  EXPECT_TRUE(opened.load());
}

TEST(Blocking, MayForkInside) {
  EXPECT_EQ(jd::run([] { return jd::blocking([] { return fib(12); }); }), plain_fib(12));
}

TEST(Workers, StopAndStartAgain) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(fib(12), plain_fib(12));
    jd_task_stop();
    EXPECT_EQ(jd_task_start(3), 3u);
    EXPECT_EQ(jd_task_workers(), 3u);
    EXPECT_EQ(fib(12), plain_fib(12));
    jd_task_stop();
  }
}

TEST(Workers, AreInTheChildOfAFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer can't start threads in such a child";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "AddressSanitizer's malloc may be locked in such a child, by a worker at the fork";
#endif
  EXPECT_EQ(fib(15), plain_fib(15));
  const pid_t child = fork();
  if (child == 0) _exit(fib(15) == plain_fib(15) && jd_task_workers() > 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fib(15), plain_fib(15));
}

TEST(Workers, ATaskMayFork) {
  const int status = jd::run([] {
    const pid_t child = fork();
    if (child == 0) _exit(fib(10) == plain_fib(10) ? 0 : 1);
    int result = -1;
    waitpid(child, &result, 0);
    return result;
  });
  EXPECT_EQ(status, 0);
}

TEST(CInterface, DoesTheSame) { EXPECT_STREQ(run_c_tests(), ""); }

}  // namespace

// Loops, reductions and sorts: what their pieces do, where they run, and every shape of input.
#include <gtest/gtest.h>

#include <jackdaw/task.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <jackdaw/task.hpp>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

// ---- Cancelling ----

// A loop that can be cancelled looks before each index, also within a piece.
TEST(Loops, APieceEndsAtTheIndexThatCancelsIt) {
  jd::cancellation cancel;
  int calls = 0;
  jd::parallel_for(0, 1000,
                   [&](int i) {
                     ++calls;
                     if (i == 9) cancel.cancel();
                   },
                   {.grain = 1000, .cancel = &cancel});
  EXPECT_EQ(calls, 10);
}

TEST(Loops, APieceOfAReductionEndsAtTheIndexThatCancelsIt) {
  jd::cancellation cancel;
  const int reached = jd::parallel_reduce(0, 1000, 0,
                                          [&](int i) {
                                            if (i == 9) cancel.cancel();
                                            return 1;
                                          },
                                          std::plus<>(), {.grain = 1000, .cancel = &cancel});
  EXPECT_EQ(reached, 10);
}

// ---- Reductions ----

// In a worker; and by another thread, which hands it over until it has proved short.
template <class Reduce>
void reduce_everywhere(Reduce reduce) {
  jd::run(reduce);
  for (int i = 0; i < 20; ++i) reduce();
}

// Only what combine returns can be assigned to it.
class Total {
 public:
  explicit Total(int total) : total_(total) {}
  Total(const Total&) = default;
  Total& operator=(const Total&) = delete;
  ~Total() = default;
  Total& operator=(std::string&& digits) {
    total_ = std::stoi(digits);
    return *this;
  }
  Total(const std::string& digits) : total_(std::stoi(digits)) {}  // NOLINT: converts
  int get() const { return total_; }

 private:
  int total_;
};
struct Sum {
  std::string operator()(Total a, int b) const { return std::to_string(a.get() + b); }
  std::string operator()(Total a, Total b) const { return std::to_string(a.get() + b.get()); }
};

TEST(Reductions, NeedNoMoreOfTheResultThanTheySay) {
  reduce_everywhere([] {
    const Total total =
        jd::parallel_reduce(0, 1000, Total(5), [](int i) { return i; }, Sum(), {.grain = 7});
    // The identity counts once for each piece.
    EXPECT_EQ(total.get() % 5, 1000 * 999 / 2 % 5);
    EXPECT_GE(total.get(), 1000 * 999 / 2 + 5);
  });
}

// Each of them is destroyed, and the range's order kept, whatever is thrown.
TEST(Reductions, ThrowWhatAMapOrACombinationThrows) {
  struct Counted {
    explicit Counted(std::string t) : text(std::move(t)) { ++alive(); }
    Counted(const Counted& other) : text(other.text) { ++alive(); }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --alive(); }
    static std::atomic<int>& alive() {
      static std::atomic<int> count{0};
      return count;
    }
    std::string text;
  };
  std::string all;
  for (int i = 0; i < 300; ++i) all += std::to_string(i);
  enum class Bad { Nothing, Map, Combination };
  const auto check = [&all](Bad what, int bad) {
    reduce_everywhere([&all, what, bad] {
      const auto map = [what, bad](int i) {
        if (what == Bad::Map && i == bad) throw std::runtime_error("map");
        return Counted(std::to_string(i));
      };
      // What contains that number's text is on the one side or on the other, whatever the pieces.
      const auto combine = [what, text = std::to_string(bad)](const Counted& a, const Counted& b) {
        if (what == Bad::Combination && (a.text + b.text).find(text) != std::string::npos) {
          throw std::runtime_error("combination");
        }
        return Counted(a.text + b.text);
      };
      const auto reduce = [&] { return jd::parallel_reduce(0, 300, Counted(""), map, combine); };
      if (what == Bad::Nothing) {
        EXPECT_EQ(reduce().text, all);
      } else {
        EXPECT_THROW(reduce(), std::runtime_error);
      }
    });
    EXPECT_EQ(Counted::alive(), 0);
  };
  check(Bad::Nothing, 0);
  for (const Bad what : {Bad::Map, Bad::Combination}) {
    for (const int bad : {0, 150, 299}) check(what, bad);
  }
}

// ---- Sorting ----

struct Pattern {
  const char* name;
  unsigned (*at)(unsigned i, unsigned count, unsigned random);
};
const Pattern patterns[] = {
    {"random", [](unsigned, unsigned, unsigned random) { return random; }},
    {"rising", [](unsigned i, unsigned, unsigned) { return i; }},
    {"falling", [](unsigned i, unsigned count, unsigned) { return count - i; }},
    {"rising to the middle, then falling",
     [](unsigned i, unsigned count, unsigned) { return std::min(i, count - i); }},
    {"falling to the middle, then rising",
     [](unsigned i, unsigned count, unsigned) { return std::max(i, count - i); }},
    {"nearly sorted",
     [](unsigned i, unsigned count, unsigned random) { return i % 100 == 0 ? random % count : i; }},
    {"sorted but for the last",
     [](unsigned i, unsigned count, unsigned) { return i + 1 == count ? 0 : i; }},
    {"all equal", [](unsigned, unsigned, unsigned) { return 7u; }},
    {"equal but for the last",
     [](unsigned i, unsigned count, unsigned) { return i + 1 == count ? 0u : 7u; }},
    {"two values", [](unsigned i, unsigned, unsigned) { return i % 2; }},
    {"ten values", [](unsigned, unsigned, unsigned random) { return random % 10; }},
    {"teeth", [](unsigned i, unsigned, unsigned) { return i % 1000; }},
};

std::vector<unsigned> make(const Pattern& pattern, unsigned count) {
  std::vector<unsigned> numbers(count);
  unsigned random = 12345;
  for (unsigned i = 0; i < count; ++i) {
    random = random * 1664525u + 1013904223u;
    numbers[i] = pattern.at(i, count, random >> 4);
  }
  return numbers;
}

int compare_counting(const void* a, const void* b, void* data) {
  static_cast<std::atomic<unsigned long>*>(data)->fetch_add(1, std::memory_order_relaxed);
  const unsigned x = *static_cast<const unsigned*>(a);
  const unsigned y = *static_cast<const unsigned*>(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

TEST(Sort, AgreesWithTheLibrarysInEveryPattern) {
  for (const Pattern& pattern : patterns) {
    for (const unsigned count : {0u, 1u, 2u, 3u, 17u, 129u, 2048u, 2049u, 50000u}) {
      SCOPED_TRACE(std::string(pattern.name) + ", " + std::to_string(count));
      const auto numbers = make(pattern, count);
      auto expected = numbers;
      std::sort(expected.begin(), expected.end());
      auto sorted = numbers;
      jd::parallel_sort(sorted);
      EXPECT_EQ(sorted, expected);
      sorted = numbers;
      std::atomic<unsigned long> comparisons{0};
      jd_task_sort(sorted.data(), count, sizeof(unsigned), compare_counting, &comparisons);
      EXPECT_EQ(sorted, expected);
      std::reverse(expected.begin(), expected.end());
      jd::parallel_sort(sorted, std::greater<>());
      EXPECT_EQ(sorted, expected);
    }
  }
}

// Structure made cuts bad: then heap sort, or one thread, did the work.
TEST(Sort, NoPatternTakesManyComparisons) {
  constexpr unsigned kCount = 200000;
  const double logarithmic = kCount * std::log2(kCount);
  for (const Pattern& pattern : patterns) {
    SCOPED_TRACE(pattern.name);
    std::atomic<unsigned long> comparisons{0};
    auto numbers = make(pattern, kCount);
    jd::parallel_sort(numbers, [&](unsigned a, unsigned b) {
      comparisons.fetch_add(1, std::memory_order_relaxed);
      return a < b;
    });
    EXPECT_LT(static_cast<double>(comparisons.load()), 2.5 * logarithmic);
    comparisons = 0;
    numbers = make(pattern, kCount);
    jd_task_sort(numbers.data(), kCount, sizeof(unsigned), compare_counting, &comparisons);
    EXPECT_LT(static_cast<double>(comparisons.load()), 2.5 * logarithmic);
  }
}

TEST(Sort, LooksOnceAtWhatIsSorted) {
  constexpr unsigned kCount = 100000;
  for (const char* name : {"rising", "all equal"}) {
    SCOPED_TRACE(name);
    const Pattern* pattern =
        std::find_if(std::begin(patterns), std::end(patterns),
                     [&](const Pattern& p) { return p.name == std::string(name); });
    unsigned long comparisons = 0;
    auto numbers = make(*pattern, kCount);
    jd::parallel_sort(numbers, [&](unsigned a, unsigned b) {
      ++comparisons;
      return a < b;
    });
    EXPECT_LT(comparisons, kCount);
  }
}

// Handing them to a worker took longer than sorting them.
TEST(Sort, OfFewElementsStaysInItsThread) {
  auto numbers = make(patterns[0], 2000);
  bool stays = true;
  jd::parallel_sort(numbers, [&, caller = std::this_thread::get_id()](unsigned a, unsigned b) {
    stays = stays && std::this_thread::get_id() == caller;
    return a < b;
  });
  EXPECT_TRUE(stays);
}

struct Refused {};

TEST(Sort, ThrowsWhatAComparisonThrows) {
  for (const unsigned count : {100u, 2000u, 100000u}) {
    // At the first, early, in the cuts, and in the pieces.
    for (const unsigned long last : {1ul, 50ul, 3ul * count, 6ul * count}) {
      for (const Pattern& pattern : {patterns[0], patterns[3], patterns[10]}) {
        SCOPED_TRACE(std::string(pattern.name) + ", " + std::to_string(last));
        auto numbers = make(pattern, count);
        std::atomic<unsigned long> comparisons{0};
        const auto sort = [&](unsigned long most) {
          jd::parallel_sort(numbers, [&, most](unsigned a, unsigned b) {
            if (comparisons.fetch_add(1, std::memory_order_relaxed) == most) throw Refused();
            return a < b;
          });
        };
        bool threw = false;
        try {
          sort(last);
        } catch (const Refused&) {
          threw = true;
        }
        EXPECT_EQ(threw, comparisons.load() > last);
        // What it leaves are numbers that can be sorted.
        comparisons = 0;
        sort(~0ul);
        EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
      }
    }
  }
}

TEST(Sort, TakesRangesWhoseEndIsOfAnotherType) {
  std::vector<unsigned> numbers;
  for (unsigned i = 0; i < 10000; ++i) numbers.push_back(i * 7919 % 9973);
  auto most = numbers | std::views::take_while([](unsigned n) { return n != 9972; });
  const auto sorted = static_cast<std::ptrdiff_t>(std::ranges::distance(most));
  ASSERT_GT(sorted, 4096);
  ASSERT_LT(sorted, 10000);
  std::vector<unsigned> expected = numbers;
  std::sort(expected.begin(), expected.begin() + sorted);
  jd::parallel_sort(most);
  EXPECT_EQ(numbers, expected);
}

// ---- What is thrown first ----

// Index 0 throws, then index 2, which another worker has, and then index 1 ends, whose join the
// first exception has to pass.
std::atomic<int> step;
void throw_in_order(int i) {
  struct Leave {
    int next;
    ~Leave() { step = next; }
  };
  const auto wait_for = [](int wanted) {
    while (step < wanted) std::this_thread::yield();
  };
  // Until the library has caught what left its frames, which nobody else can see.
  constexpr std::chrono::milliseconds kCaught(100);
  if (i == 0) {
    wait_for(1);
    const Leave leave{2};
    throw std::runtime_error("index 0");
  }
  if (i == 1) {
    wait_for(3);
    std::this_thread::sleep_for(kCaught);
  }
  if (i == 2) {
    step = 1;
    wait_for(2);
    std::this_thread::sleep_for(kCaught);
    const Leave leave{3};
    throw std::runtime_error("index 2");
  }
}

template <class Call>
std::string what_throws(Call call) {
  step = 0;
  try {
    jd::run(call);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Loops, ThrowWhatWasThrownFirstInAnyPiece) {
  if (jd_task_workers() < 2) GTEST_SKIP() << "needs two workers: one takes the pieces in order";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(what_throws([] { jd::parallel_for(0, 4, throw_in_order, {.grain = 1}); }), "index 0");
  }
}

TEST(Reductions, ThrowWhatWasThrownFirstInAnyPiece) {
  if (jd_task_workers() < 2) GTEST_SKIP() << "needs two workers: one takes the pieces in order";
  const auto map = [](int i) {
    throw_in_order(i);
    return i;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        what_throws([&] { return jd::parallel_reduce(0, 4, 0, map, std::plus<>(), {.grain = 1}); }),
        "index 0");
  }
}

}  // namespace

// Random fork trees: par, scopes and loops, results of several kinds, throws, cancelled scopes,
// blocking, deep frames, odd frames, collected data reachable only from frames of tasks
// (task.req.stack-roots), and
// collections in between. Each tree is computed twice, in parallel and by one thread.
//
//   JD_TASK_SEED   where to begin (default 1)
//   JD_TASK_FORKS  forks a case (default 200000)
#include <gc/gc.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Word = std::uint64_t;

Word mix(Word x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdu;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

long number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atol(text) : otherwise;
}

std::atomic<long> forks;
std::atomic<long> nodes_alive;
std::atomic<long> nodes_run;
std::atomic<long> damaged;

struct Boom : std::runtime_error {
  Boom() : std::runtime_error("boom") {}
};

struct Guard {
  Guard() {
    ++nodes_alive;
    ++nodes_run;
  }
  ~Guard() { --nodes_alive; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

// Collected data: a list that says what it should hold.
struct Cell {
  Cell* next;
  Word value;
};

Cell* make_list(Word seed, int length) {
  Cell* list = nullptr;
  for (int i = 0; i < length; ++i) {
    auto* cell = static_cast<Cell*>(GC_MALLOC(sizeof(Cell)));
    cell->next = list;
    cell->value = mix(seed + static_cast<Word>(i));
    list = cell;
  }
  return list;
}

void check_list(const Cell* list, Word seed, int length) {
  for (int i = length; i-- > 0; list = list->next) {
    if (list == nullptr || list->value != mix(seed + static_cast<Word>(i))) {
      ++damaged;
      return;
    }
  }
  if (list != nullptr) ++damaged;
}

[[gnu::noinline]] Word spin(Word seed) {
  const bool polls = seed % 4 == 0;
  for (Word i = seed % 64; i > 0; --i) {
    if (polls) jd::poll();
    seed = mix(seed);
  }
  return seed;
}

// How the tree is computed: in parallel, or not.
struct Parallel {
  template <class A, class B>
  static auto both(A&& a, B&& b) {
    forks.fetch_add(1, std::memory_order_relaxed);
    return jd::par(a, b);
  }
  template <class F>
  static Word several(int count, F f) {
    std::vector<Word> results(static_cast<std::size_t>(count));
    jd::scope scope;
    for (int i = 0; i < count; ++i) {
      forks.fetch_add(1, std::memory_order_relaxed);
      scope.fork([&results, &f, i] { results[static_cast<std::size_t>(i)] = f(i); });
    }
    scope.join();
    Word sum = 0;
    for (const Word r : results) sum = mix(sum + r);
    return sum;
  }
  template <class F>
  static Word loop(int count, F f) {
    return jd::parallel_reduce(
        0, count, Word{0}, [&](int i) { return f(i); }, [](Word a, Word b) { return a + b; },
        {.grain = 1});
  }
  // One of them cancels the scope, or its owner does at once. Those that begin end, and no other
  // begins from then on.
  static Word cancelled(Word seed, const Cell* list, int length) {
    const Word count = 2 + seed % 6;
    std::atomic<Word> begun{0};
    std::atomic<Word> ended{0};
    jd::scope scope;
    for (Word i = 0; i < count; ++i) {
      forks.fetch_add(1, std::memory_order_relaxed);
      scope.fork([&, i] {
        ++begun;
        if (i == seed / 8 % count) scope.cancel();
        const auto both = both_of_spins(seed + i);
        if (both.first != spin(seed + i) || both.second != spin(seed + i + 1)) ++damaged;
        check_list(list, seed, length);
        ++ended;
      });
    }
    if (seed % 3 == 0) scope.cancel();
    scope.join();
    if (begun != ended || begun > count || !scope.cancelled()) ++damaged;
    scope.fork([] { ++damaged; });
    scope.join();
    return seed;
  }
  static std::pair<Word, Word> both_of_spins(Word seed) {
    return both([=] { return spin(seed); }, [=] { return spin(seed + 1); });
  }
  template <class F>
  static Word blocking(F f) {
    return jd::blocking(f);
  }
  static void maybe_collect(Word seed) {
    if (seed % 1024 == 0) GC_gcollect();
  }
};
struct Alone {
  template <class A, class B>
  static auto both(A&& a, B&& b) {
    // As par() has it: the second part runs, whatever the first one throws.
    std::exception_ptr exception;
    decltype(a()) x{};
    try {
      x = a();
    } catch (...) {
      exception = std::current_exception();
    }
    auto y = b();
    if (exception) std::rethrow_exception(exception);
    return std::pair(x, y);
  }
  template <class F>
  static Word several(int count, F f) {
    std::exception_ptr exception;
    Word sum = 0;
    for (int i = 0; i < count; ++i) {
      try {
        sum = mix(sum + f(i));
      } catch (...) {
        if (!exception) exception = std::current_exception();
      }
    }
    if (exception) std::rethrow_exception(exception);
    return sum;
  }
  template <class F>
  static Word loop(int count, F f) {
    std::exception_ptr exception;
    Word sum = 0;
    for (int i = 0; i < count; ++i) {
      try {
        sum += f(i);
      } catch (...) {
        exception = std::current_exception();
      }
    }
    if (exception) std::rethrow_exception(exception);
    return sum;
  }
  static Word cancelled(Word seed, const Cell*, int) { return seed; }
  template <class F>
  static Word blocking(F f) {
    return f();
  }
  static void maybe_collect(Word) {}
};

template <class How>
Word node(Word seed, int depth);

// Frames of several shapes between two forks.
template <class How>
[[gnu::noinline]] Word through_large_frame(Word seed, int depth) {
  volatile char large[3000];
  large[seed % sizeof large] = static_cast<char>(seed);
  const Word result = node<How>(seed, depth);
  return result + static_cast<Word>(large[seed % sizeof large] == static_cast<char>(seed));
}
template <class How>
[[gnu::noinline]] Word through_aligned_frame(Word seed, int depth) {
  alignas(64) Word words[8];
  for (Word& word : words) word = seed;
  asm volatile("" : : "r"(words) : "memory");
  const Word result = node<How>(seed, depth);
  return result + (reinterpret_cast<std::uintptr_t>(words) % 64) + (words[7] - seed);
}
template <class How>
[[gnu::noinline]] Word through_variable_frame(Word seed, int depth) {
  const std::size_t length = seed % 100 + 1;
  auto* words = static_cast<Word*>(__builtin_alloca(length * sizeof(Word)));
  for (std::size_t i = 0; i < length; ++i) words[i] = seed;
  asm volatile("" : : "r"(words) : "memory");
  const Word result = node<How>(seed, depth);
  return result + (words[length - 1] - seed);
}
template <class How>
[[gnu::noinline]] Word through_many_frames(Word seed, int depth, int frames) {
  if (frames == 0) return node<How>(seed, depth);
  const Word result = through_many_frames<How>(seed, depth, frames - 1);
  asm volatile("" : : : "memory");
  return result + 1;
}

template <class How>
Word child(Word seed, int depth) {
  switch (seed % 16) {
    case 0:
      return through_large_frame<How>(seed, depth);
    case 1:
      return through_aligned_frame<How>(seed, depth);
    case 2:
      return through_variable_frame<How>(seed, depth);
    case 3:
      return through_many_frames<How>(seed, depth, static_cast<int>(seed / 16 % 40));
    default:
      return node<How>(seed, depth);
  }
}

template <class How>
Word node(Word seed, int depth) {
  const Guard guard;
  const Word here = mix(seed);
  if (here % 97 == 0) throw Boom();
  if (depth == 0) return spin(here);
  How::maybe_collect(here >> 8);
  const int length = static_cast<int>(here >> 20) % 4;
  Cell* list = make_list(here, length);
  Word result = 0;
  try {
    switch ((here >> 40) % 8) {
      case 0:
        result = How::several(2 + static_cast<int>(here % 4), [=](int i) {
          check_list(list, here, length);
          return child<How>(here + static_cast<Word>(i), depth - 1);
        });
        break;
      case 1:
        result = How::loop(2 + static_cast<int>(here % 3), [=](int i) {
          return child<How>(here * 3 + static_cast<Word>(i), depth - 1);
        });
        break;
      case 2: {
        // A result of collected data, which nothing else holds.
        auto both = How::both([=] { return make_list(here + 1, 3); },
                              [=] { return child<How>(here + 2, depth - 1); });
        check_list(both.first, here + 1, 3);
        result = both.second;
        break;
      }
      case 3: {
        // Results that fit in no register, closures that do not either.
        auto both = How::both([=] { return std::to_string(child<How>(here + 1, depth - 1)); },
                              [=] {
                                check_list(list, here, length);
                                return std::to_string(child<How>(here + 2, depth - 1));
                              });
        result = std::stoull(both.first) ^ std::stoull(both.second);
        break;
      }
      case 4:
        if (here % 64 == 0) {
          result = How::blocking([=] {
            usleep(100);
            return here;
          });
        }
        [[fallthrough]];
      case 5:
        if (here % 4 == 1) result = How::cancelled(here, list, length);
        [[fallthrough]];
      default: {
        auto both = How::both([=] { return child<How>(here + 1, depth - 1); },
                              [=] { return child<How>(here + 2, depth - 1); });
        result += both.first + 3 * both.second;
        break;
      }
    }
  } catch (const Boom&) {
    // From some child; which does not matter. Every other node passes it on.
    check_list(list, here, length);
    if (here % 2 == 0) throw;
    result = here;
  }
  check_list(list, here, length);
  return mix(result);
}

template <class How>
std::pair<bool, Word> tree(Word seed, int depth) {
  try {
    return {true, node<How>(seed, depth)};
  } catch (const Boom&) {
    return {false, 0};
  }
}

void run_trees(unsigned workers, int depth) {
  jd_task_stop();
  jd_task_start(workers);
  const Word first = static_cast<Word>(number("JD_TASK_SEED", 1));
  const long enough = number("JD_TASK_FORKS", 200000);
  forks = 0;
  damaged = 0;
  for (Word seed = first; forks < enough; ++seed) {
    nodes_run = 0;
    const auto expected = tree<Alone>(mix(seed), depth);
    const long nodes = nodes_run.exchange(0);
    const auto result = jd::run([=] { return tree<Parallel>(mix(seed), depth); });
    // None twice.
    ASSERT_EQ(nodes_run.load(), nodes) << "JD_TASK_SEED=" << seed << ", depth " << depth;
    ASSERT_EQ(result, expected) << "JD_TASK_SEED=" << seed << ", depth " << depth << ", " << workers
                                << " workers";
    ASSERT_EQ(damaged.load(), 0) << "JD_TASK_SEED=" << seed;
    ASSERT_EQ(nodes_alive.load(), 0) << "JD_TASK_SEED=" << seed;
  }
  jd_task_counters counters;
  jd_task_get_counters(&counters);
  std::printf(
      "%u workers: %ld forks, %lu steals (%lu from stacks), %lu requests, %lu polls, %lu barrier "
      "hits, %lu suspended, %lu given back, %lu stacks\n",
      workers, forks.load(), counters.steals, counters.stack_steals, counters.requests,
      counters.polls_answered, counters.barrier_hits, counters.joins_suspended, counters.given_back,
      counters.stacks_peak);
}

class Stress : public testing::TestWithParam<unsigned> {
 protected:
  static void SetUpTestSuite() { GC_INIT(); }
};

TEST_P(Stress, DeepTrees) { run_trees(GetParam(), 12); }
TEST_P(Stress, ShallowTrees) { run_trees(GetParam(), 5); }

INSTANTIATE_TEST_SUITE_P(Workers, Stress, testing::Values(2u, 3u, 5u, 16u));

}  // namespace

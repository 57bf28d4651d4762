// Forkers with frames of all kinds. Each forks a child that waits until the other part has begun in
// another worker, so that the fork is stolen for certain and its forker suspended or not, as it
// comes; then each looks at everything that it had.
#pragma once

#include <jackdaw/task.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace frames {

// Set by the part that a thief has to take.
inline std::atomic<int> begun;
inline std::atomic<int> given_up;
// While they wait, do the first parts poll?
inline std::atomic<bool> polling;

// The first part: returns when the second has begun.
template <class R>
R wait_and_return(R result) {
  for (long i = 0; begun.load() == 0; ++i) {
    if (polling.load(std::memory_order_relaxed)) jd::poll();
    if (i == 2000000000L) {  // seconds: nobody came
      ++given_up;
      break;
    }
  }
  return result;
}

inline long begin_and_return(long result, int linger) {
  begun = 1;
  // Sometimes the child is back first, sometimes this is.
  for (int i = 0; i < linger; ++i) asm volatile("" : : : "memory");
  return result;
}

[[gnu::noinline]] inline long many(long a, long b, long c, long d, long e, long f, long g, long h,
                                   double i) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + static_cast<long>(i);
}

[[gnu::noinline]] inline bool registers(long n, int linger) {
  const long a = n * 3, b = n ^ 77, c = n << 2, d = n + 9, e = n * n, f = n - 4, g = n | 8, h = ~n;
  const double i = static_cast<double>(n) * 0.5;
  auto [x, y] = jd::par([n] { return wait_and_return(n + 1); },
                        [n, linger] { return begin_and_return(n + 2, linger); });
  return x == n + 1 && y == n + 2 &&
         many(a, b, c, d, e, f, g, h, i) == many(n * 3, n ^ 77, n << 2, n + 9, n * n, n - 4, n | 8,
                                                 ~n, static_cast<double>(n) * 0.5);
}

[[gnu::noinline]] inline bool aligned(long n, int linger) {
  alignas(64) double values[16];
  for (int i = 0; i < 16; ++i) values[i] = static_cast<double>(n + i);
  asm volatile("" : : "r"(values) : "memory");
  auto [x, y] = jd::par([n] { return wait_and_return(static_cast<double>(n)); },
                        [n, linger] { return begin_and_return(n, linger); });
  bool good = x == static_cast<double>(n) && y == n;
  for (int i = 0; i < 16; ++i) good &= values[i] == static_cast<double>(n + i);
  return good && reinterpret_cast<std::uintptr_t>(values) % 64 == 0;
}

[[gnu::noinline]] inline bool variable(long n, int linger) {
  const std::size_t length = static_cast<std::size_t>(n % 100) + 3;
  auto* values = static_cast<long*>(__builtin_alloca(length * sizeof(long)));
  for (std::size_t i = 0; i < length; ++i) values[i] = n + static_cast<long>(i);
  auto [x, y] = jd::par([n] { return wait_and_return(n); },
                        [n, linger] { return begin_and_return(n, linger); });
  bool good = x == n && y == n;
  for (std::size_t i = 0; i < length; ++i) good &= values[i] == n + static_cast<long>(i);
  return good;
}

[[gnu::noinline]] inline bool large(long n, int linger) {
  char bytes[60000];
  for (std::size_t i = 0; i < sizeof bytes; ++i)
    bytes[i] = static_cast<char>(n + static_cast<long>(i));
  asm volatile("" : : "r"(bytes) : "memory");
  auto [x, y] = jd::par([n] { return wait_and_return(n); },
                        [n, linger] { return begin_and_return(n, linger); });
  bool good = x == n && y == n;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    good &= bytes[i] == static_cast<char>(n + static_cast<long>(i));
  }
  return good;
}

[[gnu::noinline]] inline bool objects(long n, int linger) {
  const std::string text(50, 'x');
  std::vector<long> numbers(100, n);
  auto [x, y] = jd::par([&] { return wait_and_return(text + "y"); },
                        [&, linger] {
                          begin_and_return(0, linger);
                          return std::vector<long>(numbers);
                        });
  numbers.push_back(7);
  return x == text + "y" && y == std::vector<long>(100, n) && numbers.size() == 101;
}

[[gnu::noinline]] inline bool nothing(long n, int linger) {
  long x = 0, y = 0;
  jd::par([&x, n] { x = wait_and_return(n); },
          [&y, n, linger] { y = begin_and_return(n, linger); });
  return x == n && y == n;
}

[[gnu::noinline]] inline bool first_throws(long n, int linger) {
  long y = 0;
  try {
    jd::par(
        [n]() -> long {
          wait_and_return(n);
          throw std::runtime_error(std::to_string(n));
        },
        [&y, n, linger] { y = begin_and_return(n, linger); });
  } catch (const std::runtime_error& error) {
    return error.what() == std::to_string(n) && y == n;
  }
  return false;
}

[[gnu::noinline]] inline bool second_throws(long n, int linger) {
  long x = 0;
  try {
    jd::par([&x, n] { x = wait_and_return(n); },
            [n, linger]() -> long {
              begin_and_return(n, linger);
              throw std::runtime_error(std::to_string(n));
            });
  } catch (const std::runtime_error& error) {
    return error.what() == std::to_string(n) && x == n;
  }
  return false;
}

// Forks inside forks: the oldest is taken first.
[[gnu::noinline]] inline bool nested(long n, int linger) {
  auto [x, y] = jd::par(
      [n] {
        auto [u, v] = jd::par([n] { return wait_and_return(n); }, [n] { return n + 1; });
        return u + v;
      },
      [n, linger] { return begin_and_return(n, linger); });
  return x == 2 * n + 1 && y == n;
}

#if defined(__AVX__)
[[gnu::noinline]] inline bool vectors(long n, int linger) {
  const __m256d a = _mm256_set1_pd(static_cast<double>(n));
  const __m256d b = _mm256_set_pd(1, 2, 3, 4);
  const __m256d before = _mm256_mul_pd(a, b);
  auto [x, y] = jd::par([n] { return wait_and_return(n); },
                        [n, linger] { return begin_and_return(n, linger); });
  alignas(32) double after[4];
  _mm256_store_pd(after, _mm256_add_pd(before, a));
  bool good = x == n && y == n;
  for (int i = 0; i < 4; ++i) good &= after[i] == static_cast<double>(n) * (4 - i + 1);
  return good;
}
#endif

struct Case {
  const char* name;
  bool (*function)(long n, int linger);
};
inline constexpr Case kCases[] = {
    {"registers", registers},
    {"aligned", aligned},
    {"variable", variable},
    {"large", large},
    {"objects", objects},
    {"nothing", nothing},
    {"first throws", first_throws},
    {"second throws", second_throws},
    {"nested", nested},
#if defined(__AVX__)
    {"vectors", vectors},
#endif
};

// An empty text, or what went wrong.
inline std::string run_cases(int rounds) {
  for (const Case& test : kCases) {
    for (int round = 0; round < rounds; ++round) {
      begun = 0;
      polling = round % 2 == 1;
      const long n = 1000 + round;
      const int linger = (round % 3) * 20000;
      if (!jd::run([&] { return test.function(n, linger); })) {
        return std::string(test.name) + " is damaged in round " + std::to_string(round);
      }
      if (given_up.load() != 0) return std::string("nobody stole from ") + test.name;
    }
  }
  return "";
}

}  // namespace frames

// The sequential program, counting its forks and how deep they nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#define BENCH_COUNTS_FORKS 1

namespace framework {

constexpr const char* kName = "counting";

inline std::uint64_t forks = 0;
inline std::uint64_t deepest = 0;

// One level of nesting.
class Nested {
 public:
  Nested() { deepest = std::max(deepest, ++depth); }
  ~Nested() { --depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  static inline std::uint64_t depth = 0;
};

inline void start(unsigned /*workers*/) {}
inline void stop() {}

template <class F>
auto run(F root) {
  return root();
}

template <class A, class B>
auto par(A a, B b) {
  ++forks;
  const Nested nested;
  if constexpr (std::is_void_v<std::invoke_result_t<A&>>) {
    a();
    b();
  } else {
    auto first = a();
    return std::pair(std::move(first), b());
  }
}

}  // namespace framework

// The sequential program, counting its forks.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#define BENCH_COUNTS_FORKS 1

namespace framework {

constexpr const char* kName = "counting";

inline std::uint64_t forks = 0;

inline void start(unsigned /*workers*/) {}
inline void stop() {}

template <class F>
auto run(F root) {
  return root();
}

template <class A, class B>
auto par(A a, B b) {
  ++forks;
  if constexpr (std::is_void_v<std::invoke_result_t<A&>>) {
    a();
    b();
  } else {
    auto first = a();
    return std::pair(std::move(first), b());
  }
}

}  // namespace framework

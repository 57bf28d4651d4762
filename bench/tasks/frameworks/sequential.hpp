// The sequential program: each fork is a call, which the compiler may inline.
#pragma once

#include <type_traits>
#include <utility>

namespace framework {

constexpr const char* kName = "sequential";

inline void start(unsigned /*workers*/) {}
inline void stop() {}

template <class F>
auto run(F root) {
  return root();
}

template <class A, class B>
auto par(A a, B b) {
  if constexpr (std::is_void_v<std::invoke_result_t<A&>>) {
    a();
    b();
  } else {
    auto first = a();
    return std::pair(std::move(first), b());
  }
}

}  // namespace framework

// OpenMP's tasks, by the compiler's own run-time.
#pragma once

#include <omp.h>

#include <type_traits>
#include <utility>

namespace framework {

constexpr const char* kName = "openmp";

inline unsigned threads = 1;

inline void start(unsigned workers) {
  threads = workers;
  omp_set_dynamic(0);
}
inline void stop() {}

template <class F>
auto run(F root) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
#pragma omp parallel num_threads(threads)
#pragma omp single
    root();
  } else {
    std::invoke_result_t<F&> result{};
#pragma omp parallel num_threads(threads) shared(result)
#pragma omp single
    result = root();
    return result;
  }
}

template <class A, class B>
auto par(A a, B b) {
  if constexpr (std::is_void_v<std::invoke_result_t<A&>>) {
#pragma omp task firstprivate(a)
    a();
    b();
#pragma omp taskwait
  } else {
    std::invoke_result_t<A&> first{};
#pragma omp task shared(first) firstprivate(a)
    first = a();
    auto second = b();
#pragma omp taskwait
    return std::pair(std::move(first), std::move(second));
  }
}

}  // namespace framework

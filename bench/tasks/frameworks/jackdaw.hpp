// Ours. JACKDAW_TASK_MODE chooses how tasks are stolen.
#pragma once

#include <jackdaw/task.hpp>

#define BENCH_IS_JACKDAW 1

namespace framework {

constexpr const char* kName = "jackdaw";

inline void start(unsigned workers) { jd_task_start(workers); }
inline void stop() { jd_task_stop(); }

template <class F>
auto run(F root) {
  return jd::run(root);
}

template <class A, class B>
auto par(A a, B b) {
  return jd::par(a, b);
}

}  // namespace framework

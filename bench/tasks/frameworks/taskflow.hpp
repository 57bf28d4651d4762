// Taskflow's task groups.
#pragma once

#include <optional>
#include <taskflow/taskflow.hpp>
#include <type_traits>
#include <utility>

namespace framework {

constexpr const char* kName = "taskflow";

inline std::optional<tf::Executor> executor;

inline void start(unsigned workers) { executor.emplace(workers); }
inline void stop() { executor.reset(); }

template <class F>
auto run(F root) {
  return executor->async(root).get();
}

template <class A, class B>
auto par(A a, B b) {
  tf::TaskGroup group = executor->task_group();
  if constexpr (std::is_void_v<std::invoke_result_t<A&>>) {
    group.silent_async(a);
    b();
    group.corun();
  } else {
    std::invoke_result_t<A&> first{};
    group.silent_async([&first, a] { first = a(); });
    auto second = b();
    group.corun();
    return std::pair(std::move(first), std::move(second));
  }
}

}  // namespace framework

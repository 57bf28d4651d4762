// oneTBB's task_group, in an arena of as many threads as asked for.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace framework {

constexpr const char* kName = "tbb";

inline std::optional<tbb::global_control> limit;
inline std::optional<tbb::task_arena> arena;

inline void start(unsigned workers) {
  limit.emplace(tbb::global_control::max_allowed_parallelism, workers);
  arena.emplace(static_cast<int>(workers));
}
inline void stop() {
  arena.reset();
  limit.reset();
}

template <class F>
auto run(F root) {
  return arena->execute(root);
}

template <class A, class B>
auto par(A a, B b) {
  tbb::task_group group;
  if constexpr (std::is_void_v<std::invoke_result_t<A&>>) {
    group.run(a);
    b();
    group.wait();
  } else {
    std::invoke_result_t<A&> first{};
    group.run([&first, a] { first = a(); });
    auto second = b();
    group.wait();
    return std::pair(std::move(first), std::move(second));
  }
}

}  // namespace framework

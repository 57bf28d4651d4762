// libfork, whose tasks are coroutines, on its pool whose idle workers sleep.
#pragma once

#include <libfork.hpp>
#include <optional>

namespace framework {

constexpr const char* kName = "libfork";

inline std::optional<lf::lazy_pool> pool;

inline void start(unsigned workers) { pool.emplace(workers); }
inline void stop() { pool.reset(); }

}  // namespace framework

#define BENCH_DECLARE(R, name, ...)                       \
  struct name##_task {                                    \
    template <class Self>                                 \
    lf::task<R> operator()(Self self, __VA_ARGS__) const; \
  };                                                      \
  inline constexpr name##_task name {}
#define BENCH_TASK(R, name, ...) \
  template <class Self>          \
  lf::task<R> name##_task::operator()([[maybe_unused]] Self self, __VA_ARGS__) const
#define BENCH_RETURN(value) co_return value
#define BENCH_RETURN_VOID co_return
#define BENCH_PAR(x, f, f_arguments, y, g, g_arguments) \
  do {                                                  \
    co_await lf::fork(&(x), f) f_arguments;             \
    co_await lf::call(&(y), g) g_arguments;             \
    co_await lf::join;                                  \
  } while (false)
#define BENCH_PAR_VOID(f, f_arguments, g, g_arguments) \
  do {                                                 \
    co_await lf::fork(f) f_arguments;                  \
    co_await lf::call(g) g_arguments;                  \
    co_await lf::join;                                 \
  } while (false)
#define BENCH_CALL_VOID(f, arguments) \
  do {                                \
    co_await lf::call(f) arguments;   \
    co_await lf::join;                \
  } while (false)
#define BENCH_RUN(f, ...) lf::sync_wait(*framework::pool, f, __VA_ARGS__)

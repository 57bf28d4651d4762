// The language that the task benchmarks are written in, so that one source of each is compiled for
// every framework:
//
//   BENCH_DECLARE(long, fib, long n);
//   BENCH_TASK(long, fib, long n) {
//     if (n < 2) BENCH_RETURN(n);
//     long x = 0;
//     long y = 0;
//     BENCH_PAR(x, fib, (n - 1), y, fib, (n - 2));
//     BENCH_RETURN(x + y);
//   }
//   long result = BENCH_RUN(fib, 42L);
//
// BENCH_PAR runs two tasks, maybe at the same time, and waits for both; BENCH_PAR_VOID is for tasks
// without results; BENCH_CALL_VOID calls one. Macros, because libfork's tasks are coroutines.
//
// Every other framework has a header in frameworks/ (BENCH_FRAMEWORK names it) with
//
//   namespace framework {
//   constexpr const char* kName;
//   void start(unsigned workers);       // once, before the first run
//   auto run(F root);                   // root() as a task; waits for it
//   auto par(A a, B b);                 // from a task: {a(), b()}, or nothing where they are void
//   void stop();
//   }
//
// BENCH_LEAF stands before a function that does a leaf's work: it is not inlined, and lies at a
// line's beginning, so that its code is the same in every program. Inlined, one compiler gave the
// same loop other registers in each, with differences of 6 to 18% that no fork had caused.
#pragma once

#include BENCH_FRAMEWORK

#if defined(__clang__)
#define BENCH_LEAF [[gnu::noinline, gnu::aligned(64)]] inline
#else
#define BENCH_LEAF [[gnu::noinline, gnu::noclone, gnu::aligned(64)]] inline
#endif

#if !defined(BENCH_TASK)

// Some frameworks' tasks are to be ordinary functions that are not inlined.
#if !defined(BENCH_TASK_ATTRIBUTE)
#define BENCH_TASK_ATTRIBUTE
#endif

#define BENCH_DECLARE(R, name, ...) BENCH_TASK_ATTRIBUTE static R name(__VA_ARGS__)
#define BENCH_TASK(R, name, ...) BENCH_TASK_ATTRIBUTE static R name(__VA_ARGS__)
#define BENCH_RETURN(value) return value
#define BENCH_RETURN_VOID return
#define BENCH_PAR(x, f, f_arguments, y, g, g_arguments)                                       \
  do {                                                                                        \
    auto both = framework::par([=] { return f f_arguments; }, [=] { return g g_arguments; }); \
    (x) = both.first;                                                                         \
    (y) = both.second;                                                                        \
  } while (false)
#define BENCH_PAR_VOID(f, f_arguments, g, g_arguments) \
  framework::par([=] { f f_arguments; }, [=] { g g_arguments; })
#define BENCH_CALL_VOID(f, arguments) f arguments
#define BENCH_RUN(f, ...) framework::run([&] { return f(__VA_ARGS__); })

#endif

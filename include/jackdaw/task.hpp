// Fork and join in C++: task.h with closures, results and exceptions.
//
//   long fib(long n) {
//     if (n < 2) return n;
//     auto [x, y] = jd::par([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
//     return x + y;
//   }
//
//   jd::parallel_for(0, rows, [&](int row) { blur(image, row); });
//
// A closure is called without arguments, once, maybe by another thread than the one that made it.
// What it refers to must live until the join; all that the caller of par() or join() has, does.
//
// Exceptions. What a task throws is thrown again by the call that joins it, once all its siblings
// have ended; of several, the first one thrown; what is not C++'s, as a foreign_exception.
// Meanwhile it lies in malloc's memory, where no collection looks for what only it refers to.
#pragma once
#if __cplusplus <= 201703L
#error "<jackdaw/task.hpp> needs C++20 (-std=c++20); for C and older C++ there is <jackdaw/task.h>"
#else

#include <jackdaw/task.h>
#include <jackdaw/task_short.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

// Sanitizers do not follow a fork that is a bare call, and SafeStack has a second stack for each
// thread; their programs run in deque mode anyway. In the large code model GCC has no name for the
// called function in code that may lie anywhere.
#if defined(__x86_64__) && !defined(__ILP32__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) &&                                                \
    !(defined(__code_model_large__) && defined(__PIC__) && !defined(__clang__))
#define JD_TASK_DIRECT_FORKS 1
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer) || __has_feature(safe_stack)
#undef JD_TASK_DIRECT_FORKS
#endif
#endif
#endif

#if defined(__cpp_exceptions)
// Of the Itanium C++ ABI (2.2.2); not every <cxxabi.h> declares it.
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;
}  // namespace __cxxabiv1
#endif

namespace jd {

// A task threw what is no exception of C++'s (another language's, or of another C++ run-time).
class foreign_exception : public std::exception {
 public:
  const char* what() const noexcept override { return "a task threw what is no C++ exception"; }
};

inline namespace [[gnu::visibility("hidden")]] JD_TASK_CODE {
namespace task_detail {

#if defined(__cpp_exceptions)
// What is being handled. Pre: something is.
inline std::exception_ptr caught() noexcept {
  std::exception_ptr exception = std::current_exception();
  return exception != nullptr ? exception : std::make_exception_ptr(foreign_exception());
}
#endif

// A result of a task; std::monostate for none.
template <class R>
using Value = std::conditional_t<std::is_void_v<R>, std::monostate, std::remove_cv_t<R>>;

// What a task's closure has to be. Where it is not, check_closure() says so, and nothing else is
// compiled that would.
template <class F>
concept TaskClosure = std::is_invocable_v<F&> && !std::is_reference_v<std::invoke_result_t<F&>>;
template <class F>
constexpr void check_closure() {
  constexpr bool is_called_without_arguments = std::is_invocable_v<F&>;
  static_assert(is_called_without_arguments,
                "a task is called without arguments: capture what it needs");
  if constexpr (is_called_without_arguments) {
    static_assert(TaskClosure<F>,
                  "a task returns a value or a pointer: what a reference names may be another "
                  "thread's");
  }
}
// The same of one whose result somebody wants.
template <class F>
concept TaskWithResult =
    TaskClosure<F> && std::is_move_constructible_v<Value<std::invoke_result_t<F&>>>;
template <class F>
constexpr void check_closure_and_result() {
  check_closure<F>();
  if constexpr (TaskClosure<F>) {
    static_assert(TaskWithResult<F>, "a task's result is moved to the one who joins it");
  }
}

template <class F>
auto call(F& f) -> Value<std::invoke_result_t<F&>> {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    std::invoke(f);
    return {};
  } else {
    return std::invoke(f);
  }
}

#if defined(__cpp_exceptions)
// Tells the library of the C++ run-time by which this program, or this library, throws.
class Exceptions {
 public:
  Exceptions() { jd_task_exceptions_are_of(globals()); }
  ~Exceptions() { jd_task_exceptions_are_no_more_of(globals()); }
  Exceptions(const Exceptions&) = delete;
  Exceptions& operator=(const Exceptions&) = delete;

 private:
  using Function = void* (*)();
  static Function globals() {
    return reinterpret_cast<Function>(reinterpret_cast<void*>(&::__cxxabiv1::__cxa_get_globals));
  }
};
// Each library has its own, and goes with it.
inline const Exceptions exceptions;
#endif

// How a task ended. Nothing is stored until it has: a fork that nobody steals does not pay for it.
template <class R>
class Outcome {
 public:
  Outcome() {}   // NOLINT(modernize-use-equals-default): the union stays as it is
  ~Outcome() {}  // NOLINT(modernize-use-equals-default)
  Outcome(const Outcome&) = delete;
  Outcome& operator=(const Outcome&) = delete;

  // Calls f and keeps what it returns or throws. Once.
  template <class F>
  void run(F& f) noexcept {
#if defined(__cpp_exceptions)
    try {
      ::new (place()) Value<R>(call(f));
      threw_ = false;
    } catch (...) {
      keep_exception(caught(), now());
    }
#else
    ::new (place()) Value<R>(call(f));
    threw_ = false;
#endif
  }
  // Thrown then: one that waited for the other part was thrown before this is called.
  void keep_exception(std::exception_ptr exception, std::int64_t when) {
    when_ = when;
    ::new (static_cast<void*>(&exception_)) std::exception_ptr(std::move(exception));
    threw_ = true;
  }
  void keep_value(Value<R>&& value) {
    ::new (place()) Value<R>(std::move(value));
    threw_ = false;
  }

  // Whoever ran the part has set it, which the analyzer can't see.
  bool threw() const { return threw_; }  // NOLINT(clang-analyzer-core.uninitialized.UndefReturn)
  std::int64_t when() const { return when_; }
  // Each takes what is there out; one of them, once.
  Value<R> take() {
    struct Destroy {  // also if moving it throws
      Value<R>* value;
      ~Destroy() { value->~Value<R>(); }
    } destroy{std::addressof(value_)};
    return std::move(value_);
  }
  std::exception_ptr take_exception() {
    std::exception_ptr exception = std::move(exception_);
    exception_.~exception_ptr();
    return exception;
  }
  void drop() {
    if (threw_) {
      exception_.~exception_ptr();
    } else {
      value_.~Value<R>();
    }
  }

 private:
  void* place() { return static_cast<void*>(std::addressof(value_)); }

  union {
    Value<R> value_;
    std::exception_ptr exception_;
  };
  std::int64_t when_;
  bool threw_;
};

// Both have ended: their results, or what was thrown first.
template <class RA, class RB>
std::pair<Value<RA>, Value<RB>> collect(Outcome<RA>& a, Outcome<RB>& b) {
  if (a.threw() && (!b.threw() || a.when() <= b.when())) {
    b.drop();
    std::rethrow_exception(a.take_exception());
  }
  if (b.threw()) {
    a.drop();
    std::rethrow_exception(b.take_exception());
  }
  struct Drop {  // b's, if taking a's throws
    Outcome<RB>* outcome;
    ~Drop() {
      if (outcome != nullptr) outcome->drop();
    }
  } drop{&b};
  Value<RA> left = a.take();
  drop.outcome = nullptr;
  return {std::move(left), b.take()};
}

template <class F>
inline constexpr bool kIsSmall =
    std::is_trivially_copyable_v<F> && std::is_constructible_v<F, F&> &&
    sizeof(F) <= 2 * sizeof(std::uint64_t);

// A fork of b while a runs. It is as the forker left it, but for `run` and the closure, until a
// thief comes. A small closure is kept in place: so it need not be in memory a second time.
template <class B>
struct Fork : jd_task {
  using Result = std::invoke_result_t<B&>;
  // The library fills the task in when it is stolen: a fork stores no more than it must.
  explicit Fork(B& second) : b(second) {
    run = [](jd_task* task) {  // NOLINT(clang-analyzer-optin.cplusplus.UninitializedObject)
      auto* fork = static_cast<Fork*>(task);
      fork->outcome.run(fork->b);
    };
  }
  std::conditional_t<kIsSmall<B>, B, B&> b;
  Outcome<Result> outcome;
};

#if defined(JD_TASK_DIRECT_FORKS)

using Word = std::uint64_t;

// What a child leaves in rax and rdx.
struct Returned {
  Word value;
  Word status;  // a sum of:
};
inline constexpr Word kThrew = 1;   // value is a std::exception_ptr
inline constexpr Word kStolen = 2;  // set by the return barrier: the other part has ended, too
inline constexpr unsigned kWhenShift = 2;  // above them, if it threw: when, in nanoseconds

template <class T>
inline constexpr bool kInRegister = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Word);

// What lies in the word. The type's own constructors are not for this: a default one may throw,
// say.
template <class T>
[[gnu::always_inline]] inline T from_word(Word word) {
  union Copy {
    Copy() {}  // NOLINT(modernize-use-equals-default)
    T value;
  } copy;
  std::memcpy(static_cast<void*>(std::addressof(copy.value)), &word, sizeof(T));
  return std::move(copy.value);
}

// A std::exception_ptr is one pointer, which can travel as a word that owns what it refers to.
static_assert(sizeof(std::exception_ptr) == sizeof(Word));
inline Word as_word(std::exception_ptr exception) {
  Word word = 0;
  std::memcpy(&word, static_cast<const void*>(&exception), sizeof word);
  // NOLINTNEXTLINE(bugprone-unused-return-value): its reference is the word's now
  ::new (static_cast<void*>(&exception)) std::exception_ptr();
  return word;
}
inline std::exception_ptr as_exception(Word word) {
  std::exception_ptr exception;
  std::memcpy(static_cast<void*>(&exception), &word, sizeof word);
  return exception;
}

#if defined(__cpp_exceptions)
// What is being handled. Apart, so that the compiler takes a child for as short as it mostly is,
// and calls it where it recurs.
[[gnu::noinline, gnu::cold]] inline Returned return_caught() {
  return {as_word(caught()), static_cast<Word>(now()) << kWhenShift | kThrew};
}
#endif

template <class F>
[[gnu::always_inline]] inline Returned run_child(F& f) {
  Returned returned{0, 0};
#if defined(__cpp_exceptions)
  try {
#endif
    auto value = call(f);
    std::memcpy(&returned.value, static_cast<const void*>(std::addressof(value)), sizeof value);
#if defined(__cpp_exceptions)
  } catch (...) {
    returned = return_caught();
  }
#endif
  return returned;
}

// The function that a fork calls: the closure comes in registers, or by its address. Nothing is
// thrown out of it, so nobody unwinds a frame that a thief has changed.
template <class F>
struct Child {
  [[gnu::noinline]] static Returned run(Word first, Word second) noexcept {
    if constexpr (kIsSmall<F>) {
      union Copy {
        Copy() {}  // NOLINT(modernize-use-equals-default)
        Word words[2];
        F f;
      } copy;
      copy.words[0] = first;
      copy.words[1] = second;
      return run_child(copy.f);
    } else {
      static_cast<void>(second);
      return run_child(*reinterpret_cast<F*>(first));
    }
  }
};

#if defined(__AVX512F__)
#define JD_TASK_CLOBBERS_512                                                                    \
  "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",     \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
      "k6", "k7",
#else
#define JD_TASK_CLOBBERS_512
#endif
#if defined(__APX_F__)
#define JD_TASK_CLOBBERS_APX                                                                 \
  "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", \
      "r29", "r30", "r31",
#else
#define JD_TASK_CLOBBERS_APX
#endif

// The fork: a call. Behind it, where it returns to, stands the mark by which a thief knows the
// place; the thief finds the task in r12. The function that this is inlined into makes other
// calls, too (jd_task_fork), so that it keeps the stack as a call needs it.
template <Returned (*kFunction)(Word, Word) noexcept>
[[gnu::always_inline]] inline Returned call_at_site(Word first, Word second, jd_task* task) {
  Returned returned;
  register jd_task* in_r12 asm("r12") = task;
  asm volatile(
      "call %P[function]\n\t"
      ".byte 0x0f, 0x1f, 0x84, 0x00\n\t"
      ".long %c[site]"
      : "=a"(returned.value), "=d"(returned.status), "+D"(first), "+S"(second)
      : [function] "i"(kFunction), [site] "i"(JD_TASK_SITE), "r"(in_r12)
      : JD_TASK_CLOBBERS_512 JD_TASK_CLOBBERS_APX "rcx", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)",
        "st(7)", "cc", "memory");
  return returned;
}

template <class F>
[[gnu::always_inline]] inline Returned call_child(F& f, jd_task* task) {
  Word words[2] = {0, 0};
  if constexpr (kIsSmall<F>) {
    std::memcpy(words, static_cast<const void*>(std::addressof(f)), sizeof(F));
  } else {
    words[0] = reinterpret_cast<Word>(std::addressof(f));
  }
  return call_at_site<&Child<F>::run>(words[0], words[1], task);
}

// What a child that does not return its result in a register is wrapped into.
template <class F>
struct Keeping {
  F* f;
  Outcome<std::invoke_result_t<F&>>* outcome;
  void operator()() const noexcept { outcome->run(*f); }
};

#endif  // JD_TASK_DIRECT_FORKS

// The way through the library: in deque mode, from other threads, and when somebody sleeps.
// (Shortness: task_short.hpp.)
template <class A, class B>
[[gnu::noinline]] auto par_slowly(A& a, B& b)
    -> std::pair<Value<std::invoke_result_t<A&>>, Value<std::invoke_result_t<B&>>> {
  struct First {
    A* a;
    Outcome<std::invoke_result_t<A&>> outcome;
  } first{&a, {}};
  Fork<B> fork(b);
  Shortness& past = shortness<std::pair<A, B>>;
  if (const ShortRun here(past); here.is_expected()) {
    first.outcome.run(a);
    if (!here.is_over()) {
      fork.outcome.run(b);
    } else {
      jd_task_run([](void* task) { static_cast<Fork<B>*>(task)->run(static_cast<Fork<B>*>(task)); },
                  &fork);
    }
    return collect(first.outcome, fork.outcome);
  }
  const int done = jd_task_fork(
      &fork,
      [](void* argument) {
        auto* f = static_cast<First*>(argument);
        f->outcome.run(*f->a);
      },
      &first);
  if (done == 0) fork.outcome.run(b);
  if (done == 2) past.note(fork.reserved);
  return collect(first.outcome, fork.outcome);
}

#if defined(JD_TASK_DIRECT_FORKS)
// The other part was stolen, or the child threw. Apart, so that what is usual has a small frame.
template <class RA, class B>
[[gnu::noinline]] auto join_unusual(Returned returned, Fork<B>* fork)
    -> std::pair<Value<RA>, Value<std::invoke_result_t<B&>>> {
  Outcome<RA> first;  // NOLINT(clang-analyzer-optin.cplusplus.UninitializedObject)
  if ((returned.status & kThrew) != 0) {
    first.keep_exception(as_exception(returned.value),
                         static_cast<std::int64_t>(returned.status >> kWhenShift));
  } else {
    first.keep_value(from_word<Value<RA>>(returned.value));
  }
  if ((returned.status & kStolen) == 0) fork->outcome.run(fork->b);
  return collect(first, fork->outcome);
}
#endif

template <class A, class B>
auto par_pair(A& a, B& b)
    -> std::pair<Value<std::invoke_result_t<A&>>, Value<std::invoke_result_t<B&>>> {
#if defined(JD_TASK_DIRECT_FORKS)
  using RA = std::invoke_result_t<A&>;
  if (__builtin_expect(jd_task_is_direct() != 0, 1)) {
    Fork<B> fork(b);
    if constexpr (kInRegister<Value<RA>>) {
      const Returned returned = call_child(a, &fork);
      if (__builtin_expect(returned.status == 0, 1)) {
        return {from_word<Value<RA>>(returned.value), call(fork.b)};
      }
      return join_unusual<RA>(returned, &fork);
    } else {
      Outcome<RA> first;
      Keeping<A> keeping{&a, &first};
      const Returned returned = call_child(keeping, &fork);
      if ((returned.status & kStolen) == 0) fork.outcome.run(b);
      return collect(first, fork.outcome);
    }
  }
  // Of what is small copies go there, so that on the fast way it need not be in memory.
  if constexpr (kIsSmall<A> && kIsSmall<B>) {
    A copy_of_a(a);
    B copy_of_b(b);
    return par_slowly(copy_of_a, copy_of_b);
  }
#endif
  return par_slowly(a, b);
}

// A function's address, which has a size, instead of the function.
template <class F>
decltype(auto) without_functions(F& f) {
  if constexpr (std::is_function_v<F>) {
    return &f;
  } else {
    return (f);
  }
}

}  // namespace task_detail

// Calls a and b, maybe at the same time, and returns both results: a pair, in which std::monostate
// stands for none; nothing if neither has one. Both are called, whatever is thrown. Of a closure of
// one or two words it may be a copy that is called.
template <class A, class B>
auto par(A&& a, B&& b) {
  using F = std::remove_reference_t<A>;
  using G = std::remove_reference_t<B>;
  task_detail::check_closure_and_result<F>();
  task_detail::check_closure_and_result<G>();
  if constexpr (!task_detail::TaskWithResult<F> || !task_detail::TaskWithResult<G>) {
    // It was said.
  } else if constexpr (std::is_function_v<F> || std::is_function_v<G>) {
    return par(task_detail::without_functions(a), task_detail::without_functions(b));
  } else if constexpr (std::is_void_v<std::invoke_result_t<A&>> &&
                       std::is_void_v<std::invoke_result_t<B&>>) {
    task_detail::par_pair(a, b);
  } else {
    return task_detail::par_pair(a, b);
  }
}

namespace task_detail {

// Calls f through a function of the library's, and returns its result or throws what it threw.
template <class F>
auto call_through(void (*entry)(void (*)(void*), void*), F& f) -> std::invoke_result_t<F&> {
  using R = std::invoke_result_t<F&>;
  struct Call {
    F* f;
    Outcome<R> outcome;
  } work{&f, {}};
  entry(
      [](void* argument) {
        auto* w = static_cast<Call*>(argument);
        w->outcome.run(*w->f);
      },
      &work);
  if (work.outcome.threw()) std::rethrow_exception(work.outcome.take_exception());
  if constexpr (std::is_void_v<R>) {
    work.outcome.drop();
  } else {
    return work.outcome.take();
  }
}

}  // namespace task_detail

// Runs f in a worker, where it may fork, and returns its result.
template <class F>
decltype(auto) run(F&& f) {
  task_detail::check_closure_and_result<std::remove_reference_t<F>>();
  if constexpr (task_detail::TaskWithResult<std::remove_reference_t<F>>) {
    return task_detail::call_through(jd_task_run, f);
  }
}

// Runs f, which may wait for long, and gives the worker's slot to another meanwhile.
template <class F>
decltype(auto) blocking(F&& f) {
  task_detail::check_closure_and_result<std::remove_reference_t<F>>();
  if constexpr (task_detail::TaskWithResult<std::remove_reference_t<F>>) {
    return task_detail::call_through(jd_task_blocking, f);
  }
}

// For code that runs long without a fork: see jd_task_poll.
inline void poll() { jd_task_poll(); }

}  // namespace JD_TASK_CODE
}  // namespace jd

#include <jackdaw/task_loops.hpp>
#include <jackdaw/task_scope.hpp>
#endif

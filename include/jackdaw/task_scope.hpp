// Scopes: any number of tasks. Included by task.hpp, which says what tasks may do.
#pragma once

#include <jackdaw/task.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

namespace jd {

// One type in all code, so that some may fork into what other code joins. What depends on
// exceptions is each kind's own, as task_short.hpp says.
#define JD_TASK_OWN [[gnu::abi_tag(JD_TASK_CODE_NAME), gnu::visibility("hidden")]]

// Any number of tasks that one function forks and joins. A fork is pushed to the worker's deque and
// may begin at once elsewhere, or as late as at the join.
class scope {
 public:
  scope() { jd_task_scope_begin(&scope_); }
  // Waits for what was not joined; what that threw is lost.
  ~scope() { jd_task_scope_join(&scope_); }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

  // The closure is copied or moved; it may use all that lives until the join.
  template <class F>
  JD_TASK_OWN void fork(F&& f) {
    using Closure = std::decay_t<F>;
    constexpr bool can_be_kept = std::is_constructible_v<Closure, F>;
    static_assert(can_be_kept,
                  "a forked closure is kept until it runs: it must be copyable, or moved from");
    task_detail::check_closure<Closure>();
    if constexpr (can_be_kept && task_detail::TaskClosure<Closure>) {
      push<Closure>(std::forward<F>(f));
    }
  }
  // Waits for all; throws what was thrown first.
  JD_TASK_OWN void join() {
    jd_task_scope_join(&scope_);
    if (thrown_.load(std::memory_order_acquire) == 0) return;
    std::exception_ptr first = std::move(exception_);
    exception_ = nullptr;
    thrown_.store(0, std::memory_order_relaxed);
    std::rethrow_exception(std::move(first));
  }
  // Tasks that have not begun will not, nor will those that are forked from now on: a scope stays
  // cancelled. Those that run may ask.
  void cancel() { jd_task_scope_cancel(&scope_); }
  bool cancelled() const { return jd_task_scope_cancelled(&scope_) != 0; }

 private:
  template <class Closure>
  struct Task : jd_task {
    class scope* scope;
    Closure closure;
  };

  template <class Closure, class F>
  JD_TASK_OWN void push(F&& f) {
    auto* memory = jd_task_allocate(sizeof(Task<Closure>), alignof(Task<Closure>));
    if (memory == nullptr) {
      // Without memory it is done here and now.
      if (cancelled()) return;
      Closure copy(std::forward<F>(f));
      guard(copy);
      return;
    }
    struct Release {  // if copying the closure throws
      void* memory;
      ~Release() {
        if (memory != nullptr) jd_task_release(memory);
      }
    } release{memory};
    auto* task = ::new (memory) Task<Closure>{{}, this, Closure(std::forward<F>(f))};
    release.memory = nullptr;
    // Nothing may leave it, not even what the closure's destructor throws.
    jd_task_scope_push(&scope_, task, [](jd_task* pushed, int cancelled) noexcept {
      auto* own = static_cast<Task<Closure>*>(pushed);
      if (cancelled == 0) own->scope->guard(own->closure);
      own->~Task<Closure>();
      jd_task_release(own);
    });
  }

  template <class F>
  JD_TASK_OWN void guard(F& f) noexcept {
#if defined(__cpp_exceptions)
    try {
      std::invoke(f);
    } catch (...) {
      // Written by the first; read by the join, after all have ended.
      if (thrown_.exchange(1, std::memory_order_acq_rel) == 0) {
        exception_ = task_detail::caught();
      }
    }
#else
    std::invoke(f);
#endif
  }

  jd_task_scope scope_;
  std::atomic<int> thrown_{0};
  std::exception_ptr exception_;
};

#undef JD_TASK_OWN

}  // namespace jd

// include/jackdaw/task.h: each entry a few lines over the room.
#include "alloc/allocate.hpp"
#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "os/cpu.hpp"
#include "task/blocking.hpp"
#include "task/joins.hpp"
#include "task/stacks.hpp"
#include "task/workers.hpp"
#include "world/thread.hpp"

using namespace jd::task;  // NOLINT(google-build-using-namespace): the C names are all global

namespace {

struct Call : jd_task {
  Call(void (*f)(void*), void* a) : function(f), argument(a) {
    // The rest is as every fork leaves it: a thief's to write.
    // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject)
    run = [](jd_task* task) {
      auto* call = static_cast<Call*>(task);
      call->function(call->argument);
    };
  }
  void (*function)(void*);
  void* argument;
};

}  // namespace

extern "C" {

unsigned jd_task_start(unsigned workers) { return start(workers); }
void jd_task_stop(void) { stop(); }
unsigned jd_task_workers(void) { return workers_to_be(); }
int jd_task_in_worker(void) { return current_at_work() != nullptr ? 1 : 0; }
int jd_task_set_mode(enum jd_task_mode mode) { return choose_mode(mode) ? 1 : 0; }
enum jd_task_mode jd_task_get_mode(void) { return mode_to_be(); }

void jd_task_run(void (*function)(void*), void* argument) {
  if (current_at_work() != nullptr || runtime.alone_in_child) return function(argument);
  Call call(function, argument);
  inject_and_wait(&call);
}

int jd_task_fork(jd_task* task, void (*a)(void*), void* argument) {
  if (Worker* worker = current_at_work(); worker != nullptr) {
    return fork_and_call(worker, task, a, argument) ? 1 : 0;
  }
  if (runtime.alone_in_child) {
    a(argument);
    return 0;
  }
  // Another thread: both are for the workers.
  struct Both {
    jd_task* task;
    void (*a)(void*);
    void* argument;
    std::uint64_t took;
  } both{task, a, argument, 0};
  jd_task_run(
      [](void* data) {
        auto* b = static_cast<Both*>(data);
        const std::uint64_t began = jd::os::now_ns();
        // A thief finds only tasks that lie in the forker's own stack.
        Call second(
            [](void* of_caller) {
              auto* task = static_cast<jd_task*>(of_caller);
              task->run(task);
            },
            b->task);
        if (jd_task_fork(&second, b->a, b->argument) == 0) second.run(&second);
        b->took = jd::os::now_ns() - began;
      },
      &both);
  constexpr std::uint64_t kMost = ~std::uint32_t{0};
  task->reserved = static_cast<std::uint32_t>(jd::base::min_of(both.took, kMost));
  return 2;
}

// A thief that asked, or a sleeper; where forks are pushed, whoever comes to an empty deque.
int jd_task_fork_is_wanted(void) {
  const Worker* worker = current_at_work();
  if (worker == nullptr) return 0;
  const bool wanted = with_stacks() ? worker->armed.load(std::memory_order_relaxed) != 0 ||
                                          __atomic_load_n(worker->wanted, __ATOMIC_RELAXED) != 0
                                    : worker->deque.looks_empty();
  return wanted ? 1 : 0;
}

int jd_task_may_run_here(void) {
  const jd::world::Thread* thread = jd::world::self();
  if (current() != nullptr || runtime.alone_in_child || thread == nullptr) return 0;
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  const auto bounds = thread->stack;
  // How far a stack reaches that the program has told of is not known (GC_set_stackbottom).
  if (bounds.low == nullptr) return 0;
  // A thread's stack of the same size is used in part.
  if (here < bounds.low || here >= bounds.high) return 0;
  return static_cast<std::size_t>(here - bounds.low) >= jd::cycle::options.task_stack / 2 ? 1 : 0;
}

void jd_task_par(void (*a)(void*), void* a_argument, void (*b)(void*), void* b_argument) {
  Call call(b, b_argument);
  if (jd_task_fork(&call, a, a_argument) == 0) b(b_argument);
}

void* jd_task_allocate(size_t size, size_t alignment) {
  jd::cycle::start();
  return alignment <= 16 ? jd::alloc::allocate(size, jd::heap::kUncollectable)
                         : jd::alloc::allocate_aligned(size, alignment, jd::heap::kUncollectable);
}

void jd_task_release(void* memory) { jd::alloc::free_object(memory, "jd_task_release"); }

void jd_task_scope_begin(jd_task_scope* scope) {
  Worker* const worker = current_at_work();
  scope->waiter = nullptr;
  scope->owner = worker != nullptr ? *running_task(worker) : nullptr;
  scope->outstanding = 1;
  scope->cancelled = 0;
}

void jd_task_scope_push(jd_task_scope* scope, jd_task* task,
                        void (*function)(jd_task* task, int cancelled)) {
  task->resume = reinterpret_cast<void*>(function);
  push_to_scope(scope, task);
}

void jd_task_scope_fork(jd_task_scope* scope, void (*function)(void*), void* argument) {
  void* memory = jd_task_allocate(sizeof(Call), alignof(Call));
  if (memory == nullptr) {
    // Without memory it is done here and now.
    if (jd_task_scope_cancelled(scope) == 0) function(argument);
    return;
  }
  auto* call = static_cast<Call*>(memory);
  call->function = function;
  call->argument = argument;
  jd_task_scope_push(scope, call, [](jd_task* task, int cancelled) {
    auto* own = static_cast<Call*>(task);
    if (cancelled == 0) own->function(own->argument);
    jd_task_release(own);
  });
}

void jd_task_scope_join(jd_task_scope* scope) { join_scope(scope); }

void jd_task_scope_cancel(jd_task_scope* scope) {
  __atomic_store_n(&scope->cancelled, 1, __ATOMIC_RELAXED);
}
int jd_task_scope_cancelled(const jd_task_scope* scope) {
  return __atomic_load_n(&scope->cancelled, __ATOMIC_RELAXED) != 0 ? 1 : 0;
}

void jd_task_blocking(void (*function)(void*), void* argument) {
  call_blocking(function, argument);
}

void jd_task_get_counters(jd_task_counters* counters) {
  *counters = {};
  const std::uint32_t count = runtime.count.load(std::memory_order_acquire);
  constexpr std::size_t kFields = sizeof(jd_task_counters) / sizeof(std::uint64_t);
  auto* sums = reinterpret_cast<std::uint64_t*>(counters);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto* parts = reinterpret_cast<const std::uint64_t*>(
        &runtime.workers[i].load(std::memory_order_relaxed)->counters);
    for (std::size_t k = 0; k < kFields; ++k) {
      sums[k] += __atomic_load_n(&parts[k], __ATOMIC_RELAXED);
    }
  }
  const StackCounts stacks = stack_counts();
  counters->stacks = stacks.made;
  counters->stacks_peak = stacks.peak;
}

}  // extern "C"

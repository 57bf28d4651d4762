// fork() in a program with workers.
//
// Requirement (docs/design/task.md): task.req.fork.
#include "task/process_fork.hpp"

#include "task/stacks.hpp"
#include "task/switch.hpp"
#include "task/worker.hpp"

namespace jd::task {
namespace {

// How often the forking thread was told of the fork: by the C library, by the collector, or by
// both.
thread_local unsigned forks_told = 0;

Stack* own_stack(const Worker* worker) {
  return worker != nullptr ? worker->stack.load(std::memory_order_relaxed) : nullptr;
}

}  // namespace

// Held, so that in the child nothing of ours is half done. The caller's stack comes last: a thief
// has it while it waits for an answer, which a signal's handler gives.
void before_fork() {
  if (forks_told++ != 0) return;
  runtime.lock.acquire();
  runtime.queue_lock.acquire();
  runtime.waiting_lock.acquire();
  ExceptionState::hold();
  stack_pool_lock().acquire();
  if (Stack* stack = own_stack(current())) stack->lock.acquire();
}

void after_fork_in_parent() {
  if (--forks_told != 0) return;
  if (Stack* stack = own_stack(current())) stack->lock.release();
  stack_pool_lock().release();
  ExceptionState::let_go();
  runtime.waiting_lock.release();
  runtime.queue_lock.release();
  runtime.lock.release();
}

// The child of a thread that is no worker starts workers of its own when it first needs them. That
// of a worker goes on alone in the task that called fork(): what was stolen from it is lost, so it
// should soon exec or exit; its forks are calls, and it takes nobody else's, which run in the
// parent.
void after_fork_in_child() {
  if (--forks_told != 0) return;
  Worker* worker = current();
  ExceptionState::reset_in_child();
  reset_stacks_in_child(own_stack(worker));
  runtime.queue_lock.reset_in_child();
  runtime.waiting_lock.reset_in_child();
  if (worker == nullptr) {
    // In a task's child they stay: the task may be the last that one of them waits for.
    runtime.waiting = nullptr;
    runtime.waiting_count.store(0, std::memory_order_relaxed);
  }
  runtime.lock.reset_in_child();
  runtime.queue_first = nullptr;
  runtime.queue_last = nullptr;
  runtime.queued.store(0, std::memory_order_relaxed);
  runtime.spilled = nullptr;
  runtime.spilled_count.store(0, std::memory_order_relaxed);
  runtime.roots.store(0, std::memory_order_relaxed);
  runtime.sleepers.store(0, std::memory_order_relaxed);
  runtime.markers.store(0, std::memory_order_relaxed);
  runtime.benched.store(0, std::memory_order_relaxed);
  runtime.called.store(0, std::memory_order_relaxed);
  runtime.without_stack.store(0, std::memory_order_relaxed);
  runtime.visitors.store(0, std::memory_order_relaxed);
  runtime.alive.store(0, std::memory_order_relaxed);
  runtime.count.store(0, std::memory_order_relaxed);
  runtime.running.store(false, std::memory_order_relaxed);
  // The C library may give the memory of threads that are not here back.
  for (const std::atomic<Worker*>& entry : runtime.workers) {
    Worker* other = entry.load(std::memory_order_relaxed);
    if (other != nullptr && other != worker) other->control_block = nullptr;
  }
  if (worker == nullptr) return;
  worker->away.store(true, std::memory_order_relaxed);
  // Whoever asked is in the parent.
  worker->request.store(kNone, std::memory_order_relaxed);
  worker->given.store(nullptr, std::memory_order_relaxed);  // and goes on there
  jd_task_wanted = 0;
  jd_task_direct = 0;
  runtime.alone_in_child = true;
}

}  // namespace jd::task

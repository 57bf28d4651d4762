#include "task/published.hpp"

#include "os/lock.hpp"
#include "task/idle.hpp"
#include "task/machine.hpp"
#include "task/switch.hpp"

#if JD_TASK_STACKS

namespace jd::task {

void publish(const Walk& walk, jd_task* newer) {
  jd_task* task = walk.task();
  task->slot = walk.slot();
  task->resume = *walk.slot();
  task->newer = newer;
  task->older = nullptr;
  __atomic_store_n(&task->join, kFresh, __ATOMIC_RELAXED);
  task->reserved = 0;
}

jd_task* publish_older(Worker* thief, const Stack& stack, const Registers& from, jd_task* newest) {
  jd_task* const beyond = newest->older;
  Walk walk(&thief->unwinder, stack, from, false);
  jd_task* oldest = newest;
  while (walk.next() == Walk::Result::Fork) {
    jd_task* task = walk.task();
    publish(walk, oldest);
    oldest->older = task;
    oldest = task;
  }
  oldest->older = beyond;
  return oldest;
}

jd_task* take_oldest(Stack* stack) {
  jd_task* task = stack->oldest.load(std::memory_order_relaxed);
  stack->oldest.store(task->newer, std::memory_order_relaxed);
  __atomic_store_n(&task->join, kRunning, __ATOMIC_RELAXED);
  return task;
}

namespace {

// Pre: the stack's lock is held.
void publish_all(Worker* worker, Stack* stack) {
  Registers registers{};
  jd_task_registers(&registers);
  Walk walk(&worker->unwinder, *stack, registers, false);
  if (walk.next() != Walk::Result::Fork) return;
  jd_task* newest = walk.task();
  jd_task* top = stack->top.load(std::memory_order_relaxed);
  publish(walk, nullptr);
  newest->older = top;
  jd_task* oldest = publish_older(worker, *stack, walk.registers(), newest);
  if (stack->oldest.load(std::memory_order_relaxed) == nullptr) {
    stack->oldest.store(oldest, std::memory_order_relaxed);
  } else {
    top->newer = oldest;
  }
  stack->top.store(newest, std::memory_order_relaxed);
  install_barrier(newest);
}

}  // namespace

void publish_own(Worker* worker, bool and_wake) {
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  const os::LockGuard guard(stack->lock);
  // Whoever wakes finds the lock taken, and looks again: it needs longer to come than publishing.
  if (and_wake) wake_one(Waker::RunsOn);
  publish_all(worker, stack);
}

void begin_to_wait(Stack* stack) {
  const os::LockGuard guard(runtime.waiting_lock);
  stack->next_waiting = runtime.waiting;
  runtime.waiting = stack;
  runtime.waiting_count.fetch_add(1, std::memory_order_relaxed);
}

void end_waiting(Stack* stack) {
  const os::LockGuard guard(runtime.waiting_lock);
  Stack** link = &runtime.waiting;
  while (*link != stack) link = &(*link)->next_waiting;
  *link = stack->next_waiting;
  runtime.waiting_count.fetch_sub(1, std::memory_order_relaxed);
}

jd_task* steal_from_waiting() {
  if (runtime.waiting_count.load(std::memory_order_relaxed) == 0) return nullptr;
  // Until it has one, none of them ends its wait.
  const os::LockGuard guard(runtime.waiting_lock);
  for (Stack* stack = runtime.waiting; stack != nullptr; stack = stack->next_waiting) {
    if (stack->oldest.load(std::memory_order_relaxed) == nullptr) continue;
    const os::LockGuard its_guard(stack->lock);
    if (stack->oldest.load(std::memory_order_relaxed) != nullptr) return take_oldest(stack);
  }
  return nullptr;
}

}  // namespace jd::task

#endif

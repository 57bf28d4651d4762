// The stacks that tasks run on: pooled, each above a guard page, and roots of the collector for as
// long as they are in use.
//
// Requirements (docs/design/task.md): task.req.stack-roots, task.req.stacks-bounded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jackdaw/task.h"
#include "os/lock.hpp"

namespace jd::task {

struct Worker;

struct Stack {
  char* low = nullptr;  // the lowest usable address
  char* high = nullptr;

  // Not null while the stack is suspended: what lies above it is live, the registers among it.
  // Stored by the worker that leaves, before it does; cleared by the one that is back on it. In a
  // task's child of a fork, also of stacks that the parent's other workers ran on.
  void* volatile saved_sp = nullptr;
  // The worker that left it last: stored by that one, before it does.
  Worker* left_by = nullptr;
  jd_task* first = nullptr;  // what runs on it, from its beginning
  // See running_task. By whoever runs on it.
  void* running = nullptr;

  // Held by a thief from before it looks at the stack until it has its task, and by the task's
  // worker when it returns into the barrier. Guards the two below, and jd_task's fields but join
  // and waiter of all tasks in this stack.
  os::Lock lock;
  // The newest published fork: the barrier stands in its slot. Older ones follow by
  // jd_task::older.
  std::atomic<jd_task*> top{nullptr};
  // The oldest that has not been stolen; newer ones follow by jd_task::newer. Null: none is left.
  std::atomic<jd_task*> oldest{nullptr};

  Stack* next_waiting = nullptr;  // Runtime::waiting
  Stack* next_free = nullptr;
  Stack* next_made = nullptr;
};

// Below each stack; more than a page, since what overflows is often an array.
inline constexpr std::size_t kStackGuard = 64 * 1024;

// A stack of the pool, or a new one; null if the system refuses.
Stack* take_stack();
void give_stack(Stack* stack);

struct StackCounts {
  std::uint64_t made;
  std::uint64_t peak;
};
StackCounts stack_counts();

// Before the first stack is made.
void prepare_stacks();
// No thread but the caller is left, and no lock is to be trusted.
void reset_stacks_in_child(const Stack* kept);
// Held across a fork().
os::Lock& stack_pool_lock();

}  // namespace jd::task

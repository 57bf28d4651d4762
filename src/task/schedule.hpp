// What a worker does all its life: finds a task, runs it, and goes on with whoever waits for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "task/worker.hpp"

namespace jd::task {

// The worker's life.
void schedule(Worker* worker);

// One look around: own deque, other threads' work, other workers.
jd_task* find_task(Worker* worker);

// Of tasks that fork others all the time, a deque is never empty: so often the queue comes first,
// for which other threads wait. A guess.
inline bool is_turn_of_queue(const Worker* worker) {
  constexpr unsigned kOwnInARow = 256;
  return worker->finds % kOwnInARow == kOwnInARow - 1;
}

// Runs a task that was taken, here and now, and tells whoever waits for it.
void run_here(jd_task* task);
// jd_task::run of a scope's tasks, which end otherwise than others.
void run_scope_task(jd_task* task);

// jd_task_scope::outstanding counts the scope's tasks that have not ended, and one for its owner
// until that suspends itself. The owner may sleep on the word; then this bit is set.
inline std::atomic<std::uint32_t>* outstanding(jd_task_scope* scope) {
  return as_atomic(&scope->outstanding);
}
inline constexpr std::uint32_t kOwnerAsleep = 0x80000000u;

inline jd_task_scope* scope_of(jd_task* task) { return static_cast<jd_task_scope*>(task->waiter); }

// The child of a fork() that a task called has come to where only workers of its parent could go
// on.
[[noreturn]] void end_child();

}  // namespace jd::task

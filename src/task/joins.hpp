// Forks through the library, and joins.
#pragma once

#include "task/worker.hpp"

namespace jd::task {

// jd_task_fork. True if the task was stolen, and has ended.
bool fork_and_call(Worker* worker, jd_task* task, void (*function)(void*), void* argument);
// The task was stolen: returns when it has ended.
void wait_for_task(jd_task* task);

// What tells the worker's running task from all others that live: an address where it began.
void** running_task(Worker* worker);

void push_to_scope(jd_task_scope* scope, jd_task* task);
void join_scope(jd_task_scope* scope);

}  // namespace jd::task

// Stealing from stacks: the thief's side.
#pragma once

#include "task/worker.hpp"

namespace jd::task {

// Takes the oldest fork from the victim's stack, or returns null. Modes with stacks.
// *how tells in which of jd_task_time's ways.
jd_task* steal_from_stack(Worker* thief, Worker* victim, jd_task_time* how);

}  // namespace jd::task

// Stealing from stacks: finding a victim's forks, publishing them, the return barrier.
#pragma once

#include "task/worker.hpp"

namespace jd::task {

// Whether the signal by which thieves stop victims is not the collector's (GC_set_suspend_signal).
bool has_signal_to_steal();
// Installs what thieves need in this process; false if the system refuses.
bool prepare_stealing();
// The same in the calling thread, a worker's.
void prepare_victim();

// Takes the oldest fork from the victim's stack, or returns null. Modes with stacks.
// *how tells in which of jd_task_time's ways.
jd_task* steal_from_stack(Worker* thief, Worker* victim, jd_task_time* how);

// While the task on the stack waits for a scope and nobody runs on it: its forks that are published
// are for everybody.
void begin_to_wait(Stack* stack);
void end_waiting(Stack* stack);
jd_task* steal_from_waiting();

// Publishes the calling worker's own forks: before it blocks where no thief may stop it, or for a
// worker that it wakes.
void publish_own(Worker* worker, bool and_wake);

}  // namespace jd::task

// The forks of a stack that are published: known to thieves, and to the barrier that stands in the
// slot of the newest (Stack::top). Pre of what doesn't say otherwise: the stack's lock is held.
#pragma once

#include "task/switch.hpp"
#include "task/walk.hpp"

namespace jd::task {

// Makes a fork that was found known to thieves and to jd_task_at_barrier. `newer`: the next newer
// one.
void publish(const Walk& walk, jd_task* newer);
// Behind the newest fork that is published: publishes the older ones up to the last barrier, and
// returns the oldest. In barrier mode the victim runs meanwhile; what is read here it has left
// behind.
jd_task* publish_older(Worker* thief, const Stack& stack, const Registers& from, jd_task* newest);

// Replaces the return address of the fork's child.
inline void install_barrier(jd_task* task) { *task->slot = const_cast<char*>(jd_task_barrier); }

// Marks the oldest as stolen. Pre: there is one.
jd_task* take_oldest(Stack* stack);

// Publishes the calling worker's own forks: before it blocks where no thief may stop it, or for a
// worker that it wakes. Pre: the stack's lock is not held by the caller.
void publish_own(Worker* worker, bool and_wake);

// While the task on the stack waits for a scope and nobody runs on it: its forks that are published
// are for everybody. Pre: the stack's lock is not held by the caller.
void begin_to_wait(Stack* stack);
void end_waiting(Stack* stack);
jd_task* steal_from_waiting();

}  // namespace jd::task

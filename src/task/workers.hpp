// Starting and stopping the workers, and giving them work from other threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "task/idle.hpp"
#include "task/worker.hpp"

namespace jd::task {

// Starts the runtime if it does not run. Any thread.
void ensure_running();
unsigned start(unsigned workers);
void stop();
// False if there are as many as there can be, or the system refuses one. Pre: the runtime's lock is
// held.
bool add_worker();
bool choose_mode(jd_task_mode mode);
jd_task_mode mode_to_be();
unsigned workers_to_be();

// Gives the workers a task. By a thread that is not one.
void inject(jd_task* task, Waker waker);
// The same, for one that is no scope's, and waits for its end.
void inject_and_wait(jd_task* task);
// The oldest task from another thread, or null.
jd_task* take_queued();
// Tasks for which a deque has no room, or which are in a join's way: linked by jd_task::older, the
// oldest first.
void spill(jd_task* oldest);
// The newest of them, or null.
jd_task* take_spilled();
// Sleeps while the word is `seen`, for something that workers do. They may have to collect first,
// so the thread can be stopped, whatever signals it blocks.
void wait_for_workers(std::atomic<std::uint32_t>* word, std::uint32_t seen);

}  // namespace jd::task

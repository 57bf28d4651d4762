// Workers without work: waiting for some, being woken for it, and marking meanwhile.
#pragma once

#include <cstdint>

#include "task/worker.hpp"

namespace jd::task {

// Waits for work (or for the end): spins, naps, sleeps. Null when the worker has to end, or was
// given a frame back (Worker::next).
jd_task* wait_for_work(Worker* worker);

// What the thread that wakes another does next: where it runs on, the other needs a processor of
// its own.
enum class Waker : std::uint8_t { RunsOn, Waits };
// Called by a fork of an armed worker, or whenever there is work for somebody: wakes one sleeper.
void wake_one(Waker waker);

// Lets the next forks of the calling worker be bare calls, unless somebody wants to hear of one.
// Pre: with_stacks(), and the worker is not away.
void make_direct(Worker* worker);
// The same, and no sleeper is to be woken by them any more.
void disarm(Worker* worker);
// To be called by a worker that begins to run tasks, or goes on with one.
void begin_to_fork(Worker* worker);

// Has collections call idle workers to mark. Before the first of so many workers.
void prepare_markers(unsigned workers);

}  // namespace jd::task

// The victim's side of a request: looking for a fork to give away, in a signal's handler or at a
// poll. Worker::request says whose turn it is.
#pragma once

#include <cstdint>

#include "task/worker.hpp"

namespace jd::task {

// How long a thief waits for a poll before it sends its signal, which takes 7 to 50 µs in a virtual
// machine: a little more than a leaf of heat, 30 µs (task.md, "The steal").
inline constexpr std::uint64_t kPollPatience = 40000;  // ns

// The signal by which a thief stops its victim: programs that do not know it ignore it.
extern const int steal_signal;

// Whether the signal by which thieves stop victims is not the collector's (GC_set_suspend_signal).
bool has_signal_to_steal();
// Installs what thieves need in this process; false if the system refuses.
bool prepare_stealing();
// The same in the calling thread, a worker's.
void prepare_victim();

// Whether the request is there, and the caller's to answer.
bool accept(Worker* worker);
// Answers it; in stop mode, once the thief is done.
void give(Worker* worker, Answer answer);

}  // namespace jd::task

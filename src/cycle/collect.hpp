// One collection, step by step.
#pragma once

#include <cstdint>

#include "cycle/partial.hpp"

namespace jd::cycle {

// What came of a collection.
enum class Outcome : std::uint8_t {
  Done,
  // In steps (cycle/incremental.hpp): as one with the program's limit does that is not done by
  // then, or is refused after the roots.
  GoesOn,
  // Nothing was collected: it is not allowed now, the roots cannot be known, this is a borrowed
  // process (vfork; asked where malloc is served), or the stop function said so.
  Abandoned,
  // Nothing was collected, either (world::try_to_stop_world).
  ThreadsDidNotStop,
};

// Collects. Pre: the heap's lock is held; the caller is in the middle of no allocation. Finalizers
// become due but do not run. stop_function (may be null) is asked before the world stops, when it
// stands, after the roots, and now and then while objects are marked (but not before the program's
// limit); never once everything is marked. What is not 0 is a refusal. (Where every collection
// copies, it is asked before the threads stop and once when they stand, and not after.)
Outcome collect_locked(int (*stop_function)() = nullptr, Extent extent = Extent::Full);

// Stops the world for the program, or lets it run again, and tells of each thread as a collection
// does. Pre: the heap's lock is held, from the one to the other.
void stop_for_program();
void resume_for_program();

}  // namespace jd::cycle

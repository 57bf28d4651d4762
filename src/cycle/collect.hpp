// One collection, step by step.
#pragma once

#include "cycle/partial.hpp"

namespace jd::cycle {

// Collects. Pre: the heap's lock is held; the caller is in the middle of no allocation. Finalizers
// become due but do not run. False if nothing was collected: collecting is not allowed now, the
// roots cannot be known, this is a borrowed process (vfork; asked where malloc is served), or
// stop_function (may be null) returned non-zero. It is asked before the world stops, when it
// stands, after the roots, and now and then while objects are marked (but not before the program's
// limit); never once everything is marked. False, too, if it goes on in steps, as a collection with
// such a limit does that was refused after the roots. (Where every collection copies, it is asked
// before the threads stop and once when they stand, and not after.)
bool collect_locked(int (*stop_function)() = nullptr, Extent extent = Extent::Full);
// Did the last call collect nothing since threads could not be stopped (world::try_to_stop_world)?
// Pre: the heap's lock is held since.
bool threads_did_not_stop();

// Stops the world for the program, or lets it run again, and tells of each thread as a collection
// does. Pre: the heap's lock is held, from the one to the other.
void stop_for_program();
void resume_for_program();

}  // namespace jd::cycle

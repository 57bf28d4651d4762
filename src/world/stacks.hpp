// Stacks that threads run on: their own, pieces of those, alternate ones, and ones of the program's
// making. Pre of every function: the heap's lock is held, the world is stopped.
#pragma once

#include "world/roots.hpp"
#include "world/thread.hpp"

namespace jd::world {

// Where the scan of the thread's own stack ends.
char* stack_high(const Thread& thread);

// Visits what the thread uses of the stack that sp is on, and the whole of its own if that is
// another. True if it is its own, all of which from sp on was visited.
bool visit_stack(RootVisitor* visitor, Thread* thread, char* sp);

}  // namespace jd::world

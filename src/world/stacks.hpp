// Stacks that threads run on: their own, pieces of those, alternate ones, and ones of the program's
// making. Pre of every function: the heap's lock is held; of those that visit, too: the world is
// stopped.
#pragma once

#include "world/roots.hpp"
#include "world/thread.hpp"

namespace jd::world {

// From where on the thread's frames count. own_stack_top: the collecting thread's, which may be in
// a blocking section that it has left by longjmp.
inline char* stack_pointer(const Thread& thread, char* own_stack_top) {
  if (&thread == self()) return own_stack_top;
  return thread.blocked ? thread.blocked_at : thread.stopped_at;
}

// Where the scan of the thread's own stack ends.
char* stack_high(const Thread& thread);

// Visits what the thread uses of the stack that sp is on, and the whole of its own if that is
// another. True if it is its own, all of which from sp on was visited.
bool visit_stack(RootVisitor* visitor, Thread* thread, char* sp);

// What a stop's handler on an alternate stack interrupted, beside the stack from the stack pointer
// on: the registers, in that handler's frames, and what the ABI lets a function keep below the
// stack pointer. Nothing of threads that are not in such a handler.
void visit_interrupted(RootVisitor* visitor, const Thread& thread);

}  // namespace jd::world

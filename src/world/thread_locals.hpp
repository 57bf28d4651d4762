// A thread's thread-local storage. Pre of every function: the heap's lock is held; of those that
// visit, too: the world is stopped.
#pragma once

#include "world/roots.hpp"
#include "world/thread.hpp"

namespace jd::world {

void visit_thread_locals(RootVisitor* visitor, const Thread& thread);
// Of a blocked thread, which runs: seldom. Pre: its stack was visited up to its end.
void visit_blocked_thread_locals(RootVisitor* visitor, Thread* thread);

// Is the address in the thread's, as far as it is known?
bool is_thread_local(const Thread& thread, const void* p);

}  // namespace jd::world

// Blocking sections: the thread promises not to touch the heap, and is not stopped. Pre of both:
// the heap's lock is not held.
#pragma once

namespace jd::world {

// Runs function with the calling thread not to be stopped; its frames above the call stay roots.
// However the thread leaves the function (by return, pthread_exit, cancellation, an exception), it
// waits for the end of a collection or a suspension that is under way.
void* call_blocking(void* (*function)(void*), void* argument);
// Inside call_blocking: runs function as an ordinary thread again.
void* call_active(void* (*function)(void*), void* argument);

// The calling thread, which is in such a section, asks for memory: it has left the section by
// longjmp, or breaks its promise. Ends the section.
void end_blocking();

}  // namespace jd::world

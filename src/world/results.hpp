// Threads that the program makes through the ABI, and their results, which are roots until the
// threads are joined. Pre of every function: the heap's lock is not held.
#pragma once

#include <pthread.h>

namespace jd::world {

struct Thread;

// pthread_create, with the new thread registered before its start routine runs.
int create_thread(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument);
// The record that holds a joinable thread's result, or will; null if there is none. To be asked
// before the thread is joined or detached: afterwards its handle may be another's.
Thread* find_result(pthread_t handle);
// The result of a joined, or the existence of a detached thread no longer matters. Pre: null, or
// from find_result; once.
void forget_result(Thread* thread);
// pthread_exit's value becomes a root until the thread is joined.
void note_result(void* result);

}  // namespace jd::world

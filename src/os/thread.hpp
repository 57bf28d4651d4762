// The calling thread and its peers as the system sees them: their ids and stacks, and how they are
// made.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "os/extent.hpp"

namespace jd::os {

// The kernel's id of the calling thread. A system call: keep the result.
int thread_id();
int process_id();
// Now, with nothing called on the way.
[[noreturn]] void end_process(int status);
// The process's threads, ended ones that are still waited for among them. 0 if it can't be told.
std::size_t count_threads();

// The calling thread's own stack, as it was created: from the lowest usable address to one past the
// first frame. For the main thread `low` is the lowest
// address that RLIMIT_STACK allows, but 64 MiB below `high` at most, where nothing else can be (a
// larger stack reaches further); it need not be mapped yet.
Extent own_stack();
// The same where libc may hold a lock that own_stack() would wait for: its pthread_getattr_np
// allocates with the thread's lock held. By the mapping in which the thread's control block lies,
// at the end of the stack; that may reach further down. Empty for a main thread, which needs no
// lock, and where the caller runs elsewhere.
Extent own_stack_by_mapping();
// Where the main thread's stack begins (its highest address), wherever the call comes from.
char* main_stack_high();
// The bytes from low to high on a stack; of the main thread's only up to its first frame, which the
// kernel puts anywhere in a page, so that the same program counts the same in every run.
std::size_t stack_bytes(const void* low, const void* high);

// Makes a thread, in which all signals are blocked, with a stack of its own of that size and a name
// (at most 15 characters) for debuggers and `top -H`. It is to be joined by what it is called in
// *to_join, or is detached. `guard`: bytes of the stack, at its low end, that fault; 0: a page.
// False if the system refuses. Allocates, with the C library's allocator.
bool start_thread(void* (*function)(void*), void* argument, std::size_t stack_size,
                  const char* name, pthread_t* to_join = nullptr, std::size_t guard = 0);
void join_thread(pthread_t thread);

}  // namespace jd::os

// The runtime's life: starting it, collecting, growing the heap.
#pragma once

#include <cstddef>

namespace jd::cycle {

// Reads the environment, makes the heap. Any number of calls, from any thread; no lock held.
void start_without_registering();
// The same, and registers the calling thread. Without memory for that, the program ends.
void start();
bool started();

// A full collection, with finalizers afterwards as the settings have it. False if collecting is
// disabled, or nothing was collected (collect_locked says why that may be, and when stop_function
// is asked). Pre: the lock is not held.
bool collect_now(int (*stop_function)());
// As above; afterwards all free memory goes back to the system.
void collect_and_return_memory(int (*stop_function)());
// Collections, three at most, that move all typed objects that may move where that makes blocks
// free; afterwards all free memory, and what tables need no more, goes back to the system.
void compact();
// A collection if one is due, or a step of it (incremental.hpp), unless the program's stop function
// asks to abandon it. True if more steps are to come. Pre: the lock is not held.
bool collect_if_due();
// A partial collection, or a step, where there are such (partial.hpp); nothing elsewhere. Pre: as
// above.
void collect_partially();

// Commits that many bytes more, rounded down to whole blocks, but at least one. False if the heap
// may not grow so far. Pre: the lock is held.
bool expand(std::size_t bytes);

}  // namespace jd::cycle

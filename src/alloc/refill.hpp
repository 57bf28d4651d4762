// Between the slow path and the holes. Not for other rooms.
#pragma once

#include "alloc/hole.hpp"

namespace jd::alloc {

// Gives the rest of a hole back and leaves its block. Pre: the heap's lock is held, and the hole's
// thread is the caller, stopped, or gone.
void retire(Hole* hole);

// A row for a kind that the thread has not used yet. Null when memory has run out. Pre: lock held.
HoleRow* make_row(ThreadCache* owner, KindNumber kind);

// Bytes of a hole that were counted as taken and are given back unused. Pre: the lock is held, and
// the counter of the hole's cache was moved into the totals.
void give_back_taken(std::size_t bytes);

// Moves the cache's counter into the totals. Pre: the lock is held.
void add_taken(ThreadCache* from);

}  // namespace jd::alloc

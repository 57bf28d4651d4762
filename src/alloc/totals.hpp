// How much was allocated and freed. A thread counts in its cache what it takes and frees
// (ThreadCache); from there it is moved into the totals, under the heap's lock.
#pragma once

#include <cstddef>

#include "alloc/cache.hpp"

namespace jd::alloc {

// What happened since the start, in bytes, exact up to the holes that threads are filling. Pre: the
// heap's lock is held.
struct Totals {
  std::size_t allocated_before_gc;  // until the last collection
  std::size_t allocated_since_gc;   // since then
  std::size_t freed_since_gc;       // explicitly
  std::size_t freed_total;
};
Totals totals();
// The same without the lock, for callbacks that hold it: what other threads took from their holes
// since they last changed blocks is missing.
Totals totals_unsynchronised();

// Does the program free by hand a good part of what it allocates? In this period and the last one,
// together; what other threads have counted in their caches is missing. Pre: the heap's lock is
// held.
bool program_frees_by_hand();

// Memory that did not come from here counts, too (GC_incr_bytes_allocd). Any thread, no lock.
void add_allocated(std::size_t bytes);
// What was freed. Any thread, no lock.
void add_freed_by_strangers(std::size_t bytes);  // who have no cache
inline void add_freed(std::size_t bytes) {
  if (__builtin_expect(cache->is_nobodys(), 0)) return add_freed_by_strangers(bytes);
  cache->count_freed(bytes);
}

// Bytes of uncollectable objects, which programs are told: the ABI's own variable
// (GC_non_gc_bytes), which they may set themselves, and to which a cache's count is added where the
// totals are.
extern std::size_t* const uncollectable_bytes;  // defined by cycle
// Wraps where it is less. Any thread, no lock.
void add_uncollectable_by_strangers(std::size_t bytes);
inline void add_uncollectable(std::size_t bytes) {
  if (__builtin_expect(cache->is_nobodys(), 0)) return add_uncollectable_by_strangers(bytes);
  cache->count_uncollectable(bytes);
}
// With what the calling thread has in its cache; what others have there is missing. 0 where that
// makes it less than nothing. No lock.
std::size_t uncollectable_now();
void set_uncollectable(std::size_t bytes);

// --- For this room. Pre of each: the lock is held ------------------------------------------------

// Moves the cache's counters into the totals.
void add_taken(ThreadCache* from);
// A large object was made.
void add_large_taken(std::size_t bytes);
// Bytes of a hole that were counted as taken and are given back unused. Pre: the counter of the
// hole's cache was moved into the totals.
void give_back_taken(std::size_t bytes);

}  // namespace jd::alloc

// The end of a collection: allocated := marked (heap.req.bits), block by block, from the records
// alone. Memory is not touched (heap.req.untouched): a block without a mark becomes free, and the
// holes in the others are found when somebody allocates from them (Boehm 2000, section 4: sweeping
// only where it is cheap).
//
// With JACKDAW_SWEEP=eager the free slots are found and cleared here, too, which is what the paper
// compares with.
//
// Differs from the paper: there is no reclaim list to build, because the bits are the free list.
#pragma once

#include <cstdint>

#include "heap/space.hpp"

namespace jd::heap {

// How sweeping and the search for free slots go. Set at the start.
struct SweepPolicy {
  bool eager = false;  // JACKDAW_SWEEP
  // A block is nearly full when fewer than slots / divisor are free; 0: none is
  // (JACKDAW_NEARLY_FULL).
  unsigned nearly_full_divisor = 16;
  // Gaps of mixed blocks are not allocated from (copy/, JD_MCC).
  bool keep_gaps = false;
};
extern SweepPolicy sweep_policy;
// Where gaps are kept, this part of the heap is for copies: the paper's third (copy/mcc.hpp).
inline constexpr BlockNumber kShareForCopies = 3;
// And this part of it at any rate, which small typed objects never get: a collection without a free
// block could copy nothing, so that it freed nothing, and nor would the next. A guess.
inline constexpr BlockNumber kLastShareForCopies = 16;

struct SweepCount {
  std::size_t live_objects = 0;
  std::size_t live_bytes = 0;         // all kinds
  std::size_t live_atomic_bytes = 0;  // those that are not scanned
  std::size_t live_typed_bytes = 0;   // those with layouts
  std::size_t freed_bytes = 0;        // allocated before, not reached
  // Of marked objects in the blocks put aside: disclaim_deferred adds them to those above.
  std::size_t deferred_bytes = 0;
  unsigned oldest_free = 0;  // the greatest age of a dirty free block
};

// Clears the mark bits of allocated slots, and sets those of free ones: the marker, which never
// marks a free slot (its stale words would keep other dead objects), has one bit to look at.
// Pre: the world is stopped.
void start_marks();

// Sweeps. Blocks of kinds with a disclaim function are put aside for disclaim_deferred.
// Pre: the world is stopped; slots in threads' holes are not allocated (alloc::hide_holes).
SweepCount sweep();

// Instead of a sweep, when not all marks were set: every object counts as reached. Pre: as for
// sweep().
void keep_everything();

// Asks the disclaim functions about the unreachable objects of the blocks put aside, and sweeps
// those. Pre: the lock is held; the world runs.
void disclaim_deferred(SweepCount* count);
// Is told of each object that its function lets go, before it is free; or null (checked
// allocation). Stored by any thread, read under the heap's lock (relaxed).
extern void (*on_disclaimed)(const Place& place);

}  // namespace jd::heap

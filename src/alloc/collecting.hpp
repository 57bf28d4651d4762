// What the rooms above do for allocation, and what allocation does for a collection.
#pragma once

#include <cstddef>

#include "alloc/hole.hpp"
#include "heap/runs.hpp"
#include "heap/sweep.hpp"

namespace jd::alloc {

// Defined by cycle. Pre of make_room: the heap's lock is held.
struct Pacer {
  // Starts the runtime; the thread is not registered. Any number of calls.
  void (*start)();
  // No free run is long enough for `blocks` blocks (one, for a small block): collects or grows the
  // heap. False if nothing more is to be had or, for one block, only what is kept: who gets that at
  // the first attempt tries once more with Kept::MayGo. The lock may have been released meanwhile.
  // `attempt`: how often it was called for the same allocation before.
  bool (*make_room)(BlockNumber blocks, unsigned attempt);
  // Would that give a block without more collections than the program's allocation calls for? Pre:
  // as there.
  bool (*has_room)();
  // Collects if that was put off and is not any more. Pre: collection_is_overdue; the heap's lock
  // is held, and may be released meanwhile.
  void (*catch_up)();
  // A slow path begins: the place for stress collections and for finalizers that are due. The lock
  // is not held.
  void (*on_slow_path)();
  // Memory has run out: what the client's out-of-memory function returns. The lock is not held.
  void* (*out_of_memory)(std::size_t bytes);
};
extern const Pacer pacer;

// The heap had to grow where a collection was due, since the program had switched it off: it is
// made up for before a thread takes blocks from the heap again (it may use its reserve first). Set
// and cleared by cycle, read by allocation, all under the heap's lock.
extern bool collection_is_overdue;

// For one-slot holes under stress, so that every allocation takes the slow path. Set at the start.
extern bool every_allocation_is_slow;
// bdwgc's byte of padding (JACKDAW_PAD_OBJECTS). Set at the start, together with
// every_allocation_is_slow: the fast path knows nothing of it.
extern std::size_t padding;

// Bytes that are cleared at a time ahead of the cursor (docs/design/alloc.md, "Clearing ahead").
// Set at the start.
extern std::size_t clear_ahead;

// Large objects of so many bytes or more get clear by giving old pages back to the system. Set at
// the start.
extern std::size_t clear_by_discarding_from;

// What the lazy part of the sweep took, in os::ticks: looking for free slots in a block, and
// clearing them. What reading the clock takes is left out. Counted if time_refills, which is set at
// the start. Every refilling thread adds, the statistics read (relaxed; only the sums matter).
struct RefillTicks {
  std::atomic<std::uint64_t> finding{0};
  std::atomic<std::uint64_t> clearing{0};
};
extern RefillTicks refill_ticks;
extern bool time_refills;
void start_timing_refills();  // at the start

// In a stopped world, before marking: slots in holes become unallocated, but for the one at the
// cursor, which may just have been handed out. Afterwards show_holes gives them back to their
// threads.
void hide_holes();
void show_holes();

// After marking, before the sweep: holes go back, so that threads don't keep blocks that they
// hardly use. But for holes whose slot at the cursor is marked: there a thread may have been
// stopped between loading the cursor and storing it. (If it was, the slot's address is in a
// register of its, and so the slot is marked.)
void retire_idle_holes();

// After marking and finalization: what was ready for threads that are gone, and what
// nothing leads to, was never handed out. It is free, not an object to disclaim or to report.
void drop_lost_slots();

// After marking: the bit where a mixed block's hole begins is no object's, though a word that is
// one past the last object may have set its mark.
void unmark_mixed_holes();

// In a stopped world: threads leave the holes in mixed blocks for which may_leave says so. Not
// those that a word leads into: their threads may have been stopped between loading the cursor and
// storing it.
void leave_mixed_holes(bool (*may_leave)(BlockNumber number));

// Ends the hole-making in blocks of kinds that disclaim: their sweep comes after the world runs.
void detach_disclaiming_holes();

// Adds what threads took from their holes to the totals. Pre: the lock is held.
void settle_totals();

// Bytes of the holes that living threads took since the last collection: all of them, and the one
// that took most. As of the last settle_totals. Pre: the lock is held.
struct Shares {
  std::size_t all;
  std::size_t largest;
};
Shares shares_since_gc();

// About how many bytes of the threads' holes nobody has been given yet. Pre: the lock is held.
std::size_t left_in_holes();

// The blocks of the objects of several blocks that were allocated since it was last called, and of
// the longest of them. Pre: the lock is held.
heap::KeptRuns ask_for_runs_taken();

// A collection is done: "since" begins anew.
void start_new_totals();

// Every hole, and every block in the reserve of one, for checks. Pre: the lock is held.
void visit_holes(void (*visit)(Hole* hole, KindNumber kind));
void visit_reserves(void (*visit)(const Hole* hole, KindNumber kind, BlockNumber number));

}  // namespace jd::alloc

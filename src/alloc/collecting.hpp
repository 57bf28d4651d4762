// What allocation does for a collection.
#pragma once

#include <cstddef>

#include "alloc/hole.hpp"

namespace jd::alloc {

// In a stopped world, before all else: slots in magazines become free for all to see. They are the
// magazines' again where the collection comes to nothing, and free for good where it does not.
void hide_magazines();
void show_magazines();
void empty_magazines();

// In a stopped world, before marking: slots in holes become unallocated, but for the one at the
// cursor, which may just have been handed out. Afterwards show_holes gives them back to their
// threads, and unmarks those in mixed blocks.
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

// What objects of several blocks take: all of them, and the longest.
struct RunDemand {
  BlockNumber blocks = 0;
  BlockNumber length = 0;
};
// Of those that were allocated since it was last called; it begins anew. Pre: the lock is held.
RunDemand take_run_demand();

// A collection is done: "since" begins anew.
void start_new_totals();

// Every hole, and every block in the reserve of one, for checks. Pre: the lock is held.
void visit_holes(void (*visit)(Hole* hole, KindNumber kind));
void visit_reserves(void (*visit)(const Hole* hole, KindNumber kind, BlockNumber number));
// Every slot in a magazine, and the hole of that.
void visit_magazines(void (*visit)(const Hole* hole, const char* slot));

}  // namespace jd::alloc

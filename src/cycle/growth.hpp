// How far the heap grows, and which of its free blocks are kept for copies and large objects
// (docs/design/cycle.md, "Growing the heap").
//
// Pre of each function: the heap's lock is held.
#pragma once

#include "heap/space.hpp"

namespace jd::cycle {

// May the heap grow by so many blocks, within GC_set_max_heap_size and the memory limit?
bool may_grow(heap::BlockNumber blocks);
// Could a run of so many ever be had?
bool fits_limits(heap::BlockNumber blocks);

// Grows by so many, and by what it is to grow beyond them, or else by no more. False if there is no
// room for that.
bool grow_heap(heap::BlockNumber least);

// Commits exactly so many blocks, for the program, which wants so much to be filled before anything
// is collected.
bool commit_as_asked(heap::BlockNumber blocks);
// Has the heap no more than the program asked for?
bool is_as_asked();

// Commits so many in a stopped world, without a word to anybody: the collection tells when it is
// over.
bool commit_quietly(heap::BlockNumber blocks);
void tell_of_growth(heap::BlockNumber blocks);
// Commits quietly for what a moving collection copies; as many blocks stay free after it, for as
// long as the program does not need more than it has.
bool commit_for_copies(heap::BlockNumber blocks);
// Some of them, instead of growing. False if there are none.
bool use_added_blocks();

// For an object of so many blocks there are free ones, and only no run of them is long enough.
bool only_a_run_is_missing(heap::BlockNumber blocks);

// May typed objects be moved for room?
bool can_compact();
// A collection is over: says which blocks are kept from now on. Where small objects have taken the
// last free block, the next large one needs a compaction.
void plan_kept_blocks();

}  // namespace jd::cycle

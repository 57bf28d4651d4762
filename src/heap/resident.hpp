// The account of resident memory: how many blocks have pages, how many may, and free pages that go
// back to the system. Pre of every function: the heap's lock is held.
#pragma once

#include "heap/space.hpp"

namespace jd::heap {

// How many blocks may have pages at the same time. Those whose pages went back to the system
// (below) do not count, so there may be more blocks than that; then take_run and take_run_at have
// what is idle discarded, or find nothing. Cycle's to set.
extern BlockNumber most_resident;
// Is there memory for so many blocks more in use?
bool has_memory_for(BlockNumber count);

// For runs.cpp. The same; what is idle is discarded for it.
bool make_memory_for(BlockNumber count);
// So many blocks became free, which may have pages.
void note_idle(BlockNumber count);
// No block is free.
void forget_idle();

// Where discard_idle stopped: in which run, before which block. Others may change the runs between
// two steps; then the next step begins anew.
struct DiscardPosition {
  BlockNumber run = kNoBlock;
  BlockNumber block = kNoBlock;
};
// Discards the pages of dirty free blocks that are `least_age` collections old or more, up to
// `most` bytes of them, from *position on if there is one; returns the bytes that went back to the
// system.
std::size_t discard_idle(unsigned least_age, std::size_t most = SIZE_MAX,
                         DiscardPosition* position = nullptr);

// Discards the pages of records that only blocks inside free runs have: what is there is stale.
void discard_stale_records();

// Bytes in free runs whose pages were given back and not used since; those of all other blocks; of
// these, in free runs; and the most that they were at any time. Pre: the lock is held, or a stale
// value will do.
std::size_t returned_bytes();
std::size_t resident_bytes();
std::size_t free_resident_bytes();
std::size_t peak_resident_bytes();

// The pages of blocks are about to be used, together. Returns how many of them hold old data.
// `filled`: the program is expected to touch all of them.
BlockNumber start_using(BlockNumber first, BlockNumber count = 1, bool filled = true);

// Do any of these blocks hold words of objects that a collection has freed (BlockExtra::dropped)?
bool has_dropped_words(BlockNumber first, BlockNumber count);
// Clears those that do. Pre: they are a large object's, or what one gains, that the caller is
// making; not that the lock is held.
void clear_dropped_words(BlockNumber first, BlockNumber count);

}  // namespace jd::heap

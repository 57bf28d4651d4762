// Free runs of blocks (heap.req.runs): segregated by length, coalesced at once; of a fitting bin
// the run that was freed last is taken. Pre of every function: the heap's lock is held.
#pragma once

#include "heap/block_list.hpp"
#include "heap/space.hpp"

namespace jd::heap {

// How many blocks may have pages at the same time. Those whose pages went back to the system
// (below) do not count, so there may be more blocks than that; then take_run and take_run_at have
// what is idle discarded, or find nothing. Cycle's to set.
extern BlockNumber most_resident;
// Is there memory for so many blocks more in use?
bool has_memory_for(BlockNumber count);

// Takes `count` neighbouring blocks out of a free run, the first of them at a block number that is
// a multiple of `alignment` (a power of two, in blocks, relative to address 0). kNoBlock when no
// run fits. The blocks' `dirty` flags tell which must be cleared; their records are stale.
BlockNumber take_run(BlockNumber count, BlockNumber alignment = 1);

// Takes these very blocks, if a free run begins at the first and is long enough.
[[nodiscard]] bool take_run_at(BlockNumber first, BlockNumber count);

// Makes blocks free, joining the free runs on both sides. `dirty` flags stay as the caller set
// them.
void give_run(BlockNumber first, BlockNumber count);

// Writes down blocks as one free run without looking at its neighbours or linking it.
void describe_free(BlockNumber first, BlockNumber count);

// Forgets all runs, for a sweep that finds them anew in address order and adds them, coalesced.
void forget_runs();
void add_run_in_order(BlockNumber first, BlockNumber count);

// Blocks in free runs.
BlockNumber free_blocks();

// Free runs of that length or longer are left to objects of several blocks, as long as they are no
// more than so many blocks: for a smaller object there is a collection first. Cycle's to set
// (docs/design/cycle.md, "Kept for large objects").
struct KeptRuns {
  BlockNumber blocks = 0;
  BlockNumber length = 0;
};
extern KeptRuns kept_runs;
// Is there no other free block?
bool only_kept_runs_left();

// For checks: the runs of a bin, by their first blocks, and the lengths of those that belong there.
struct Bin {
  const BlockList& runs;
  BlockNumber shortest;
  BlockNumber longest;
  bool in_use;  // as take_run sees it
};
unsigned bin_count();
Bin bin(unsigned number);

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
// these, in free runs; and the most that they were at any time. Pre of these and of free_blocks():
// the lock is held, or a stale value will do.
std::size_t returned_bytes();
std::size_t resident_bytes();
std::size_t free_resident_bytes();
std::size_t peak_resident_bytes();
// The pages of blocks are about to be used, together. Returns how many of them hold old data.
// `filled`: the program is expected to touch all of them.
BlockNumber start_using(BlockNumber first, BlockNumber count = 1, bool filled = true);

}  // namespace jd::heap

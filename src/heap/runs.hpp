// Free runs of blocks (heap.req.runs): segregated by length, coalesced at once; of a fitting bin
// the run that was freed last is taken. (Which blocks have pages: resident.hpp.) Pre of every
// function: the heap's lock is held.
#pragma once

#include "heap/block_list.hpp"
#include "heap/space.hpp"

namespace jd::heap {

// Takes `count` neighbouring blocks out of a free run, the first of them at a block number that is
// a multiple of `alignment` (a power of two, in blocks, relative to address 0). kNoBlock when no
// run fits. The blocks' `dirty` flags tell which must be cleared; their records are stale.
BlockNumber take_run(BlockNumber count, BlockNumber alignment = 1);

// Would take_run find so many?
[[nodiscard]] bool has_run(BlockNumber count);

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

// Blocks in free runs. Pre: the lock is held, or a stale value will do.
BlockNumber free_blocks();

// Free runs of that length or longer are left to objects of several blocks, as long as they are no
// more than so many blocks: for a smaller object there is a collection first. Cycle's to set
// (docs/design/cycle.md, "Kept for large objects").
struct KeptRuns {
  BlockNumber blocks = 0;
  BlockNumber length = 0;
};
extern KeptRuns kept_runs;
// Is there no other free block? (Among so few, a run of more than 32 blocks counts as one that is
// kept, though it may be shorter.)
bool only_kept_runs_left();
// Under JD_MCC: no more free blocks than copies are to have at any rate?
bool only_blocks_for_copies_left();

// The runs of a bin, by their first blocks, and the lengths of those that belong there.
struct Bin {
  const BlockList& runs;
  BlockNumber shortest;
  BlockNumber longest;
  bool in_use;  // as take_run sees it
};
unsigned bin_count();
unsigned bin_of(BlockNumber count);
Bin bin(unsigned number);

// Remembers one run, by its first block, for as long as it is linked: afterwards, what that block's
// record says may be of a run that is a part of another now. kNoBlock: none.
void remember_run(BlockNumber first);
BlockNumber remembered_run();

}  // namespace jd::heap

// Mixed blocks: objects of all sizes one behind another, in the order in which they were allocated.
//
// A mixed block has the geometry of a block of 16-byte slots, so that the marker's hot path takes
// it for one: the bit of an object's first granule is the object's. Its record's words mean
//
//   allocated  where an object begins (or will: a hole's cursor)
//   marks      what the marker was led to. A word into the middle of an object sets a bit of its
//              own, on the way to the object's (Marker::describe); the sweep drops such bits.
//   gaps       where free space begins; in a table beside the records
//
// Objects that were allocated since the block was last looked at have no bits yet: a fast path that
// set them would pay for every object, dead or alive. Where they begin is learnt from their first
// words, for a whole block at once, when a word first leads to one of them (heap.req.starts). Until
// then the block's `starts_known` is false. What lies between a bit and the next one is one object
// or one gap; in a block whose starts are not known, perhaps several objects.
#pragma once

#include "heap/space.hpp"

namespace jd::heap {

inline constexpr unsigned kMixedGranules = kMaxSlots;
// Larger objects share no block with smaller ones: they would waste what is left of a hole. An
// eighth of a block; not measured against others.
inline constexpr std::size_t kMostMixed = 2048;
// Smaller gaps are not allocated from: two lines, so that a hole is worth its slow path; not
// measured against others.
inline constexpr unsigned kLeastGap = 8;  // granules

// What a thread allocates from in a mixed block, which it owns: BlockExtra::owner is the hole. Its
// first two words are the public jd_hole. Written by its thread, in a NoStop section but for the
// cursor; read by the collector in a stopped world, and by whoever looks for an object (relaxed).
struct MixedHole {
  char* cursor;
  char* limit;  // up to here, the hole reads as zero
  char* end;
  BlockNumber block;  // kNoBlock: none
};

// A free block becomes a mixed one, all of it a gap. kNoBlock when none is free, or for lack of
// memory for the gaps. Pre: the heap's lock is held.
BlockNumber make_mixed_block(KindNumber kind, bool* clean);

// Discards the pages of the table of gaps that no mixed block has. Pre: the heap's lock is held.
void discard_unused_gaps();

// Granules [from, to) of a block.
struct Granules {
  unsigned from;
  unsigned to;
  [[nodiscard]] unsigned count() const { return to - from; }
};

// The first gap at or behind a granule with so many granules or more; false if there is none.
// By the block's owner, or in a stopped world.
[[nodiscard]] bool find_gap(BlockNumber number, unsigned from, unsigned least, Granules* gap);
// The gap becomes a hole's place, or a hole's rest a gap. By the block's owner.
void take_gap(BlockNumber number, unsigned first);
void give_gap(BlockNumber number, unsigned first);

// In a stopped world:
void unmark_hole(const MixedHole& hole);
void learn_starts(BlockNumber number);
// Granules that objects take, dead or alive.
unsigned used_granules(BlockNumber number);
// Calls of this are for marked objects, whose blocks' starts are known.
unsigned tile_end(BlockNumber number, unsigned first);
// Only what is marked stays; the rest becomes gaps. Leaves marks = allocated. Returns the granules
// of live objects; *free: those of gaps worth allocating from.
unsigned sweep_mixed(BlockNumber number, unsigned* free);
// Overwrites the gaps, but for what a hole's thread relies on.
void poison_gaps(BlockNumber number);
// Every object counts as marked, when a collection is abandoned.
void keep_mixed(BlockNumber number);
// A live object takes the gap's beginning (copy/).
void fill_gap(BlockNumber number, Granules gap, unsigned granules);

}  // namespace jd::heap

// Mixed blocks: objects of all sizes one behind another, in the order in which they were allocated;
// of one kind, so that their layouts are found in the same way; with pointers or without.
//
// A mixed block has the geometry of a block of 16-byte slots, so that the marker's hot path takes
// it for one: the bit of an object's first granule is the object's. Its record's words mean
//
//   allocated  where an object begins (or will: a hole's cursor)
//   marks      what the marker was led to. A word into the middle of an object sets a bit of its
//              own, on the way to the object's (Marker::pointers_at_granule); the sweep drops such
//              bits.
//   gaps       where free space begins; in a table beside the records
//
// Objects that were allocated since the block was last looked at have no bits yet. Behind a block's
// last granule there is room, which blocks of 16-byte slots have no bits for, for a byte a granule:
// allocation sets that of each object's first (jd_new does it inline), one store to a line that is
// in the cache. When a word first leads into the block, the bytes become bits, for the whole block
// at once (heap.req.starts). What lies between a bit and the next one is one object or one gap; in
// a block whose `starts` are Open, perhaps several objects.
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

// Start bytes, from this offset into the block on. Of the granules of gaps, and of a hole beyond
// its limit, they are anything. Written by the block's owner before its cursor passes the object,
// or in a stopped world; read there, and by whoever looks for an object (relaxed).
inline constexpr std::size_t kStartBytes = kMixedGranules * kGranule;
static_assert(kStartBytes + kMixedGranules <= kBlockSize);

// What a thread allocates from in a mixed block, which it owns: BlockExtra::owner is the hole. Its
// first three words are the public jd_hole. Written by its thread, in a NoStop section but for the
// cursor; read by the collector in a stopped world, and by whoever looks for an object (relaxed).
struct MixedHole {
  char* cursor;
  char* limit;   // up to here, the hole reads as zero, and so do its start bytes
  char* starts;  // the start byte of the granule at address 0 would be here
  char* end;
  BlockNumber block;  // kNoBlock: none
  // Where the cursor was when a long object went beside the hole, and how many have since then
  // (alloc/mixed.cpp).
  char* passed_at;
  unsigned passed;
};
// Of a thread: for each kind one, and behind these for each one beside it (alloc/mixed.cpp). The
// kinds: with headers or without, with pointers or without (typed/holes.hpp).
inline constexpr unsigned kMixedKinds = 4;
inline constexpr unsigned kMixedHoles = 2 * kMixedKinds;

// A free block becomes a mixed one, all of it a gap. kNoBlock when none is free, or for lack of
// memory for the gaps. Pre: the heap's lock is held.
BlockNumber make_mixed_block(KindNumber kind);

// Discards the pages of the table of gaps that no mixed block has. Pre: the heap's lock is held.
void discard_unused_gaps();

// Granules [from, to) of a block.
struct Granules {
  unsigned from;
  unsigned to;
  [[nodiscard]] unsigned count() const { return to - from; }
};

// Where an address lies in its block.
inline unsigned granule_of(BlockNumber number, const char* p) {
  return static_cast<unsigned>((base::as_word(p) - block_address(number)) / kGranule);
}

// The first gap at or behind a granule with so many granules or more; false if there is none.
// By the block's owner, or in a stopped world.
[[nodiscard]] bool find_gap(BlockNumber number, unsigned from, unsigned least, Granules* gap);
// The gap becomes a hole's place, or a hole's rest a gap. By the block's owner.
void take_gap(BlockNumber number, unsigned first);
void give_gap(BlockNumber number, unsigned first);
// Granules of gaps that are worth allocating from. Pre: nobody owns the block; the heap's lock is
// held.
[[nodiscard]] unsigned usable_granules(BlockNumber number);

// For MixedHole::starts.
char* starts_of(BlockNumber number);
// Before the granules are allocated from.
void clear_start_bytes(BlockNumber number, Granules granules);

// In a stopped world:
void unmark_hole(const MixedHole& hole);
void learn_starts(BlockNumber number);
// find_object, for where many words are looked at: what a mixed block's starts say is learnt once
// for the block, not for each word that leads there.
[[nodiscard]] inline bool find_object_in_stopped_world(Word word, Place* place) {
  if (!in_heap(word)) return false;
  const BlockNumber number = block_number(word);
  if (space.blocks[number].state == BlockState::Mixed) learn_starts(number);
  return find_object(word, place);
}
// Granules that objects take, dead or alive.
unsigned used_granules(BlockNumber number);
// Calls of these are for marked objects, whose blocks' starts are known.
unsigned live_granules(BlockNumber number);
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

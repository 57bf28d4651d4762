// The policy of Smith & Morrisett's MCC ("Comparing Mostly-Copying and Mark-Sweep Conservative
// Collection", 1998), after Bartlett (1988): every collection copies all that may move.
//
// In a stopped world, instead of marking:
//
//   pin: promote the blocks of all objects that an ambiguous word may mean, dead objects' words
//        included → one traversal from the roots: objects on promoted blocks are marked and queued,
//        others are copied, and what was copied is scanned as a queue itself (Cheney 1970) → repair
//        what finalization may still look at
//
// The sweep then frees the blocks from which everything was copied, and invalidates what is dead on
// promoted ones: it becomes a gap, which nobody allocates from until the block is free. A page of
// the paper is a block; a header is a word before each object.
//
// Differs in: objects of more than heap::kMostMixed bytes, and those without layouts, do not move
// and are marked in place; the mark queue is apart from the objects; where memory for copies runs
// out, objects stay where they are.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace jd::copy::mcc {

using base::Word;

// By the last collection.
struct Promoted {
  std::uint64_t blocks = 0;
  std::uint64_t dead_bytes = 0;  // on them
};
extern Promoted last_promoted;

// Prepares a collection; false if there is no memory for its tables: then nothing can move in it.
// For copies it commits so many blocks more, as far as the heap may grow; the room cycle's.
[[nodiscard]] bool begin(bool (*commit_more)(std::uint32_t blocks));
// The pin stage: an ambiguous word, and all those in objects without layouts.
void promote(Word word, bool past_end);
void promote_from_objects();
// Ends it: threads leave their holes in blocks that were not promoted.
void leave_holes();
// The roots of the traversal: ambiguous words, and words that are rewritten. Pre: the pin stage is
// over.
void reach(Word word, bool past_end);
void reach_slot(Word* slot);
// Copies and marks all that was reached, and what ephemerons hold; rewrites weak references.
void traverse();
// Has everything that the object leads to, which was not reached, mean copies instead of what was
// copied: somebody may mark from it now. An address that was copied itself needs nothing.
void repair_from(Word object);
void repair_from_disclaimable();
// Where the object is now.
[[nodiscard]] Word moved(Word word);
// After the sweep.
void end();

}  // namespace jd::copy::mcc

// Moving objects together, so that blocks become free (copy.req.*, docs/design/copy.md).
//
// In a stopped world, after everything is marked and before the sweep:
//
//   choose_sources → pin what ambiguous words mean → move_objects → fix words → (sweep) →
//   end_moving
//
// The steps are cycle's to call: it knows the roots. A source is a block to be emptied. Its live
// objects that nobody pinned are copied into free slots of other blocks of the same kind, mostly
// denser ones; the first word of what is left says where to.
//
// Sources: Smith & Morrisett, "Comparing Mostly-Copying and Mark-Sweep Conservative Collection"
// (1998), for a precise heap under ambiguous roots; Blackburn & McKinley, "Immix" (2008), for
// moving only what is sparse, after marking. Differs from both: docs/design/copy.md.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace jd::copy {

using base::Word;

enum class Wish : std::uint8_t { Automatic, Compact };

// How the heap grows in a stopped world; the room cycle's.
struct Growth {
  // Commits so many blocks more, as far as the heap may grow.
  bool (*commit_more)(std::uint32_t blocks);
  // May it grow by so many?
  bool (*may_grow)(std::uint32_t blocks);
};

// Chooses the blocks to be emptied. False: nothing is to be moved in this collection. If true,
// move_objects may call `growth`. Pre of all functions here: a stopped world, after marking.
[[nodiscard]] bool choose_sources(Wish wish, const Growth& growth);

// The word may be a pointer that nobody rewrites: what it means stays where it is. past_end: so
// does the object that ends there.
void pin_meaning_of(Word word, bool past_end);
// Pins what the objects without layouts mean, and the program's pins.
void pin_from_objects();

void move_objects();
// Rewrites the words of live typed objects, precise roots, weak references and stable hashes.
void fix_words();
// Where the object is now; the same word if it has not moved, or is no pointer.
[[nodiscard]] Word moved(Word word);

// After the sweep.
void end_moving();

}  // namespace jd::copy

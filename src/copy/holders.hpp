// What the program says of single objects: pins, precise roots, stable hashes. Pre of every
// function: the heap's lock is held.
#pragma once

#include <cstdint>

#include "base/bits.hpp"
#include "world/roots.hpp"

namespace jd::copy {

using base::Word;

// Pins, and holds, the object whose memory begins there, until it was unpinned as often. False when
// memory has run out; unpin: if it is not pinned.
[[nodiscard]] bool pin(Word memory);
[[nodiscard]] bool unpin(Word memory);

// A variable that is a root and is rewritten. Adding twice is adding once. False when memory has
// run out.
[[nodiscard]] bool add_root(Word* variable);
void remove_root(Word* variable);
[[nodiscard]] bool is_root(Word address);

// The object's number: made when first asked for, kept while the object lives. 0 when memory has
// run out.
std::uint64_t hash_of(Word memory);

// What the program's pins and precise roots hold, for marking and checking. Pre: the world is
// stopped.
void visit_held(world::RootVisitor* visitor);

// After marking: forgets the numbers of dead objects.
void forget_dead_hashes();
// After moving.
void visit_pinned(void (*visit)(Word memory));
void visit_root_variables(void (*visit)(Word* variable));
void rekey_hashes(Word (*new_address)(Word memory));

}  // namespace jd::copy

// What the program has hold single objects: its pins, and its precise roots. Pre of every function:
// the heap's lock is held.
#pragma once

#include "base/bits.hpp"
#include "os/extent.hpp"
#include "world/roots.hpp"

namespace jd::copy {

using base::Word;

// Pins, and holds, the object whose memory begins there, until it was unpinned as often. False when
// memory has run out; unpin: if it is not pinned.
[[nodiscard]] bool pin(Word memory);
[[nodiscard]] bool unpin(Word memory);

// A variable of which the program says that it holds a pointer: a root that is rewritten. Adding
// twice is adding once. False when memory has run out.
[[nodiscard]] bool add_precise_root(Word* variable);
void remove_precise_root(Word* variable);
[[nodiscard]] bool is_precise_root(Word address);
// Removes those that lie there (world::stacks_are_gone).
void forget_precise_roots_on(const os::Extent* stacks, std::size_t count);

// What the program's pins and precise roots hold, for marking and checking. Pre: the world is
// stopped.
void visit_held(world::RootVisitor* visitor);

// For pinning. Pre: the world is stopped.
void visit_program_pins(void (*visit)(Word memory));
// For rewriting, after moving.
void visit_precise_roots(void (*visit)(Word* variable));

}  // namespace jd::copy

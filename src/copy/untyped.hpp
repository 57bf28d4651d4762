// What objects without layouts lead to.
#pragma once

#include "heap/walk.hpp"

namespace jd::copy {

using base::Word;

// Calls visit for each word of such an object, and for what its mark procedure finds, which may
// make pointers of words that are none. Pre: the world is stopped.
void visit_ambiguous(const heap::Place& place, void (*visit)(Word word));

}  // namespace jd::copy

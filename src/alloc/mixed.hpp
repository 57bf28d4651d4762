// Allocation of typed objects in mixed blocks (heap/mixed.hpp): in the order of requests, whatever
// their sizes.
//
// An object exists from the moment on that the cursor has passed it, and must say by then how long
// it is. So its first words are written before the cursor is (alloc.req.first-words).
#pragma once

#include <cstddef>

#include "heap/kinds.hpp"
#include "heap/mixed.hpp"

namespace jd::alloc {

using heap::KindNumber;
using heap::MixedHole;
using heap::Word;

// What is written before an object exists. A count of 0 is not written.
struct FirstWords {
  Word first;
  std::size_t count_offset;
  Word count;
};

// Of the thread's hole for these kinds. Null when memory has run out. Thread rules: allocate.hpp.
// Pre: bytes is a multiple of the granule, at most heap::kMostMixed; `which` is less than
// kMixedKinds and always the same for the kind.
void* allocate_mixed(std::size_t bytes, unsigned which, KindNumber kind, const FirstWords& words);

}  // namespace jd::alloc

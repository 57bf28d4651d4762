// Stable hashes: numbers that objects keep where they move. Pre of every function: the heap's lock
// is held.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace jd::copy {

using base::Word;

// The number of the object whose memory begins there: made when first asked for, kept while the
// object lives. 0 when memory has run out.
std::uint64_t hash_of(Word memory);

// After marking: forgets the numbers of dead objects.
void forget_dead_hashes();
// After moving.
void rekey_hashes(Word (*new_address)(Word memory));

}  // namespace jd::copy

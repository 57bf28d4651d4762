// The marks that a partial collection begins with: those of the last collection, or of steps.
//
// Pre: the heap's lock is held, and the world stands.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/space.hpp"

namespace jd::heap {

// Instead of start_marks: what is marked stays marked. Noted: of what is marked, only what was
// there when steps began (heap/snapshot.hpp). Returns how many objects that are. Pre: there are no
// mixed blocks.
enum class Keep : std::uint8_t { All, Noted };
std::size_t keep_marks(Keep which);

// Of a word of a block's bits: what keep_marks has kept, whatever was marked since; or, if there
// was no memory to note that (0.8% of the heap), what is marked by now. Of blocks whose objects are
// scanned.
std::uint64_t kept_marks(const Block& block, unsigned word);

// Gives the memory of the note back; not within a collection.
void discard_kept_marks();

}  // namespace jd::heap

// The two layouts that do not fit into a descriptor's word: long bitmaps, and arrays of typed
// elements. Both are reached through mark procedure numbers that belong to us.
#pragma once

#include <cstddef>

#include "heap/kinds.hpp"

namespace jd::mark {

using base::Word;

inline constexpr unsigned kLongBitmapProcedure = 1;
inline constexpr unsigned kTypedArrayProcedure = 2;

constexpr Word procedure_descriptor(unsigned procedure, Word environment) {
  return (((environment << heap::kProcedureBits) | procedure) << 2) | heap::kTagProcedure;
}

// Keeps a bitmap of `bits` bits (bit 0 of word 0 is the object's first word). Its number goes into
// a procedure descriptor's environment. False when memory has run out. Pre: the heap's lock is
// held.
[[nodiscard]] bool keep_long_bitmap(const Word* bitmap, std::size_t bits, Word* number);

// What stands in the last words of a typed array's memory.
struct TypedArrayTail {
  std::size_t elements;
  std::size_t element_size;
  Word element_descriptor;
};

}  // namespace jd::mark

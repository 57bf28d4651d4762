// Descriptors of the ABI's four sorts (gc_mark.h), and what does not fit into a descriptor's word:
// long bitmaps, arrays of described elements, and objects with layouts. The latter are reached
// through mark procedure numbers that belong to us.
#pragma once

#include <cstddef>

#include "heap/kinds.hpp"

namespace jd::mark {

using base::Word;

inline constexpr unsigned kLongBitmapProcedure = 1;
inline constexpr unsigned kDescribedArrayProcedure = 2;
// Its environment is the number of the object's kind.
inline constexpr unsigned kLayoutProcedure = 3;

constexpr Word procedure_descriptor(unsigned procedure, Word environment) {
  return (((environment << heap::kProcedureBits) | procedure) << 2) | heap::kTagProcedure;
}

// Keeps a bitmap of `bits` bits (bit 0 of word 0 is the object's first word). Its number goes into
// a procedure descriptor's environment. False when memory has run out. Pre: the heap's lock is
// held.
[[nodiscard]] bool keep_long_bitmap(const Word* bitmap, std::size_t bits, Word* number);

// While set, pointers that mark procedures push go there instead of being marked. Used in a stopped
// world only.
extern void (*push_instead)(Word word);
// Calls the mark procedure that the object's descriptor names, if it names one of the program's.
void call_procedure(Word object, std::size_t size, Word descriptor);

// What stands in the last words of a described array's memory.
struct DescribedArrayTail {
  std::size_t elements;
  std::size_t element_size;
  Word element_descriptor;
};

}  // namespace jd::mark

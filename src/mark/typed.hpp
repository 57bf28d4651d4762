// What does not fit into a descriptor's word: long bitmaps, arrays of typed elements, and objects
// with layouts. All are reached through mark procedure numbers that belong to us.
#pragma once

#include <cstddef>

#include "heap/kinds.hpp"
#include "heap/layout.hpp"

namespace jd::mark {

using base::Word;

inline constexpr unsigned kLongBitmapProcedure = 1;
inline constexpr unsigned kTypedArrayProcedure = 2;
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

// The bits of an object's first words, the highest for the first.
constexpr Word first_bits(std::size_t words) {
  return words < 64 ? ~(~Word{0} >> words) : ~Word{0};
}

// What stands in the last words of a typed array's memory.
struct TypedArrayTail {
  std::size_t elements;
  std::size_t element_size;
  Word element_descriptor;
};

// The elements of an array, one behind the other.
struct Elements {
  Word first;
  std::size_t count;
  std::size_t size;  // of each, in bytes
  // Of each, the highest bit for the first word. 0: too long or too odd for that, and the layout
  // is to be asked, or the descriptor where there is none.
  Word pointer_bits;
  const heap::Layout* layout;
  Word descriptor;

  [[nodiscard]] Word at(std::size_t index) const { return first + index * size; }
};

// The elements of a typed array's memory.
Elements elements_of(Word object, std::size_t size);

}  // namespace jd::mark

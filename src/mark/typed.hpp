// What does not fit into a descriptor's word: long bitmaps, arrays of typed elements, and objects
// with layouts. All are reached through mark procedure numbers that belong to us.
#pragma once

#include <cstddef>

#include "heap/kinds.hpp"

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

// What stands in the last words of a typed array's memory.
struct TypedArrayTail {
  std::size_t elements;
  std::size_t element_size;
  Word element_descriptor;
};

// The elements of a typed array's memory.
struct TypedElements {
  Word first;
  Word end;
  std::size_t size;  // of each; 0: there are none
  Word descriptor;
};
inline TypedElements elements_of(Word object, std::size_t size) {
  const auto* tail =
      reinterpret_cast<const TypedArrayTail*>(object + size - sizeof(TypedArrayTail));
  // An array whose tail is not written yet has no elements. And programs write beyond their arrays.
  const std::size_t room = size - sizeof(TypedArrayTail);
  if (tail->element_size == 0) return {};
  const std::size_t elements = base::min_of(tail->elements, room / tail->element_size);
  return {object, object + elements * tail->element_size, tail->element_size,
          tail->element_descriptor};
}

}  // namespace jd::mark

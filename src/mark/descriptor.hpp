// Descriptors of the ABI's four sorts (gc_mark.h), and what does not fit into a descriptor's word:
// long bitmaps, arrays of described elements, and objects with layouts. The latter are reached
// through a mark procedure number that belongs to us.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/kinds.hpp"

namespace jd::mark {

using base::Word;

constexpr Word procedure_descriptor(unsigned procedure, Word environment) {
  return (((environment << heap::kProcedureBits) | procedure) << 2) | heap::kTagProcedure;
}

// What an object of ours with that procedure is; in the environment's lowest bits. The rest of it:
enum class OwnScan : std::uint8_t {
  LongBitmap,      // the bitmap's number
  DescribedArray,  // nothing
  Layout,          // the number of the object's kind
};
inline constexpr unsigned kOwnScanBits = 2;

constexpr Word own_descriptor(OwnScan scan, Word rest) {
  return procedure_descriptor(heap::kOwnProcedure, rest << kOwnScanBits | static_cast<Word>(scan));
}
constexpr OwnScan own_scan(Word environment) {
  return static_cast<OwnScan>(environment & ((1u << kOwnScanBits) - 1));
}

// What a descriptor comes to that only says where the object's own is; 0, of an object without
// pointers, where that is nowhere.
[[gnu::always_inline]] inline Word final_descriptor(Word object, std::size_t size,
                                                    Word descriptor) {
  // A kind's may lead to that in a described object's last word (libgc/described.cpp), and this,
  // which is the program's, to one more.
  constexpr unsigned kMaxDepth = 2;
  for (unsigned depth = 0; (descriptor & heap::kDescriptorTag) == heap::kTagPerObject; ++depth) {
    if (depth == kMaxDepth) return 0;
    if (static_cast<std::ptrdiff_t>(descriptor) >= 0) {
      const std::size_t offset = descriptor - heap::kTagPerObject;
      if (offset + sizeof(Word) > size) return 0;
      descriptor = *reinterpret_cast<const Word*>(object + offset);
    } else {
      // Through the first word, a pointer to static data of the program's; 0 in an object that is
      // not initialised yet.
      const Word first = *reinterpret_cast<const Word*>(object);
      if (first == 0) return 0;
      descriptor = *reinterpret_cast<const Word*>(
          first - (descriptor + (heap::kIndirectBias - heap::kTagPerObject)));
    }
  }
  return descriptor;
}

// Keeps a bitmap of `bits` bits (bit 0 of word 0 is the object's first word). Its number goes into
// a procedure descriptor's environment. False when memory has run out. Pre: the heap's lock is
// held.
[[nodiscard]] bool keep_long_bitmap(const Word* bitmap, std::size_t bits, Word* number);

// Calls the mark procedure that the object's descriptor names, if it names one of the program's;
// what it pushes goes to `visit` instead of being marked. Pre: the world is stopped.
void call_procedure(Word object, std::size_t size, Word descriptor, void (*visit)(Word word));
// `visit` of the call that is under way, or null: for what mark procedures call.
extern void (*push_instead)(Word word);

// What stands in the last words of a described array's memory.
struct DescribedArrayTail {
  std::size_t elements;
  std::size_t element_size;
  Word element_descriptor;
};

}  // namespace jd::mark

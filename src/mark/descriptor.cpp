// Objects that are not simply words: descriptors of the ABI's four sorts (gc_mark.h).
#include "heap/kinds.hpp"
#include "mark/marker.hpp"
#include "mark/typed.hpp"
#include "os/log.hpp"

namespace jd::mark {
namespace {

// A per-object descriptor may lead to another; one level is what the ABI allows.
constexpr unsigned kMaxDepth = 2;

}  // namespace

void Marker::scan_bitmap(Word object, std::size_t size, Word bitmap) {
  const Word* word = reinterpret_cast<const Word*>(object);
  const Word* end = word + size / sizeof(Word);
  for (Word bits = bitmap & ~heap::kDescriptorTag; bits != 0 && word < end; bits <<= 1, ++word) {
    if ((bits >> 63) != 0) queue_word(word);
  }
}

// A single word takes the way of a range, so that it passes through the ring.
void Marker::queue_word(const Word* word) {
  if (top_ == limit_ && !extend_stack()) {
    mark_word(*word);
  } else {
    *top_++ = {word, word + 1};
  }
}

void Marker::scan_descriptor(Word object, std::size_t size, Word descriptor, unsigned depth) {
  switch (descriptor & heap::kDescriptorTag) {
    case heap::kTagLength:
      push_range(base::as_pointer(object),
                 base::as_pointer(object + base::min_of(std::size_t{descriptor}, size)));
      return;
    case heap::kTagBitmap:
      scan_bitmap(object, size, descriptor);
      return;
    case heap::kTagProcedure: {
      const Word index = (descriptor >> 2) & (heap::kMaxProcedures - 1);
      const Word environment = descriptor >> (2 + heap::kProcedureBits);
      if (index == kTypedArrayProcedure) return scan_typed_array(object, size);
      if (index == kLongBitmapProcedure) return scan_long_bitmap(object, size, environment);
      const heap::MarkProcedure procedure = heap::mark_procedures[index];
      JD_CHECK(procedure != nullptr, "a descriptor names a mark procedure that does not exist");
      procedure(reinterpret_cast<Word*>(object), this, this + 1, environment);
      return;
    }
    case heap::kTagPerObject: {
      if (depth == kMaxDepth) return;
      Word inner = 0;
      const auto offset = static_cast<std::ptrdiff_t>(descriptor - heap::kTagPerObject);
      if (static_cast<std::ptrdiff_t>(descriptor) >= 0) {
        if (static_cast<std::size_t>(offset) + sizeof(Word) > size) return;
        inner = *reinterpret_cast<const Word*>(object + descriptor - heap::kTagPerObject);
      } else {
        // Through the first word, a pointer to static data of the program's; 0 in an object that
        // is not initialised yet.
        const Word first = *reinterpret_cast<const Word*>(object);
        if (first == 0) return;
        inner = *reinterpret_cast<const Word*>(
            first - (descriptor + (heap::kIndirectBias - heap::kTagPerObject)));
      }
      if (inner != 0) scan_descriptor(object, size, inner, depth + 1);
      return;
    }
  }
}

}  // namespace jd::mark

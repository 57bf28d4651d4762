// What of an object's memory is to be scanned: as its layout or its descriptor says. Inlined into
// the loop.
#pragma once

#include "heap/layout.hpp"
#include "heap/space.hpp"
#include "mark/elements.hpp"
#include "mark/marker.hpp"
#include "mark/visit.hpp"

namespace jd::mark {

// What an object without words to scan looks like.
inline constexpr Entry kNothing = {};

// What the descriptor of an object says is to be scanned. What a procedure finds is on the stack.
struct Marker::Described {
  Entry range = kNothing;
  Pointers pointers = {};
};

// The pointers of an object that says its layout itself. What a word's bits can't say is on the
// stack.
inline Marker::Pointers Marker::pointers_at(Word memory, const heap::Kind& kind) {
  const Word first = *reinterpret_cast<const Word*>(memory);
  if (__builtin_expect(first == 0, 0)) return {};
  const bool headed = kind.layout_from == heap::LayoutFrom::Header;
  const heap::Layout& layout =
      headed ? heap::layout_of_header(first, memory) : heap::layout_of_self(first, memory);
  if (__builtin_expect(!layout.is_short, 0)) return scan_mixed(memory, kind);
  return {reinterpret_cast<const Word*>(memory + (headed ? heap::kHeaderBytes : 0)), layout.bits};
}

inline Marker::Described Marker::describe(Word object) {
  const heap::Block& block = View().record_of(object);
  if (__builtin_expect(block.state != heap::BlockState::Small, 0)) {
    if (block.state == heap::BlockState::LargeBody || object % heap::kBlockSize != 0) {
      return {kNothing, waiting_elements(object)};
    }
    if (block.scan == heap::Scan::Words) {
      push_written_pages(object, heap::unmixed_size(block));
      return {};
    }
  }
  const heap::Kind& kind = heap::kinds[block.kind];
  if (kind.layout != nullptr && kind.layout->trace != nullptr) {
    queue_runs({kind.layout, object, heap::words_of_homogeneous(*kind.layout, object)});
    return {};
  }
  const std::size_t size = heap::unmixed_size(block);
  const auto* words = reinterpret_cast<const Word*>(object);
  const std::size_t count = size / sizeof(Word);
  Word descriptor = heap::descriptor_of(kind, size);
  if ((descriptor & heap::kDescriptorTag) != heap::kTagBitmap) {
    descriptor = final_descriptor(object, size, descriptor);
  }
  switch (descriptor & heap::kDescriptorTag) {
    case heap::kTagBitmap: {
      if (__builtin_expect(count > heap::kBitmapWords, 0) && kind.layout != nullptr &&
          kind.layout->element_pointers != nullptr) {
        scan_layout({kind.layout, object, count});
        return {};
      }
      return {kNothing, {words, descriptor & ~heap::kDescriptorTag & first_bits(count)}};
    }
    case heap::kTagLength:
      return {{words, words + base::min_of(count, descriptor / sizeof(Word))}, {}};
    default:
      scan_descriptor(object, size, descriptor);
      return {};
  }
}

}  // namespace jd::mark

// Layouts: where the pointers of a typed object are (include/jackdaw/layout.h).
//
// A kind says how the layout of its objects is found (LayoutFrom). Everything that reads or
// rewrites the pointers of typed objects goes through for_each_stretch, so that marking, moving and
// checking agree on which words those are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/kinds.hpp"
#include "heap/space.hpp"

namespace jd::heap {

struct Layout;

// What a trace procedure tells of its words. `visit` is the collector's.
struct Tracer {
  void (*visit)(Tracer* self, Word* slot);
  const Layout* layout;
  Word low;  // the object's memory
  Word high;
};
using TraceProcedure = void (*)(void* object, std::size_t size, Tracer* tracer);

// Begins with the fields of the public jd_layout. Written once, under the heap's lock, before
// anybody has an object of it.
struct Layout {
  const Layout* self;
  const char* name;
  Word header;
  std::uint32_t hole;
  std::uint32_t bytes;
  std::uint32_t offset;
  std::uint32_t source;  // a jd_source: LayoutFrom, less one
  std::uint32_t array_hole;
  std::uint32_t fixed;
  std::uint32_t element_bytes;  // 0: no variable part
  std::uint32_t count_offset;   // JD_SELF: of the number of elements
  std::uint32_t in_order;
  std::uint32_t most_inline;

  std::uint32_t number;       // index into `layouts`
  std::uint32_t fixed_words;  // of the object: without a header
  // All pointers are in the first 64 words of the fixed part: bit 63 of `bits` is the first word.
  bool is_short;
  bool element_is_pointers;  // every word of an element is one
  bool may_have_pointers;
  KindNumber kind;
  const std::uint64_t* pointers;          // null: the fixed part has none
  const std::uint64_t* element_pointers;  // null: elements have none
  TraceProcedure trace;
  Word bits;
  Word element_bits;  // as those, of an element; 0 if it is longer than 64 words
};

[[noreturn]] void broken_layout(const char* what, const Layout* layout, Word where);

// By number, from 1 on: a header word of zeros has none. Grown under the heap's lock, read by the
// marker in a stopped world, and by anybody who was told a number.
inline constexpr unsigned kMaxLayouts = 1u << 20;
extern const Layout** layouts;
extern unsigned layout_count;  // one more than the greatest number

// Gives the layout a number and keeps it. False when memory has run out, or for too many layouts.
// Pre: the lock is held.
[[nodiscard]] bool keep_layout(Layout* layout);

// A header word: | words of the object, 40 bits | the layout's number, 21 bits | 101 |. It is no
// address of the heap's, and no self-describing object's first word.
inline constexpr Word kHeaderTag = 5;
inline constexpr unsigned kHeaderNumberShift = 3;
inline constexpr unsigned kHeaderSizeShift = 24;
constexpr Word header_word(unsigned number, std::size_t words) {
  return (Word{words} << kHeaderSizeShift) | (Word{number} << kHeaderNumberShift) | kHeaderTag;
}
constexpr unsigned header_number(Word header) {
  return (header >> kHeaderNumberShift) & ((1u << (kHeaderSizeShift - kHeaderNumberShift)) - 1);
}
constexpr std::size_t header_words(Word header) { return header >> kHeaderSizeShift; }
inline constexpr std::size_t kHeaderBytes = sizeof(Word);

// A typed object: its layout, its first word as the program sees it, and how many words it has.
struct Typed {
  const Layout* layout;
  Word object;
  std::size_t words;
};

// The address that the program knows an object by whose memory begins there.
inline Word object_in(Word memory, const Kind& kind) {
  return kind.layout_from == LayoutFrom::Header ? memory + kHeaderBytes : memory;
}

// Words of a self-describing object with that layout and elements.
std::size_t words_with_elements(const Layout& layout, Word object);
// The layout that a self-describing object's first word leads to. Ends the program if that is none.
inline const Layout& layout_of_self(Word first, Word memory) {
  if (__builtin_expect((first & (sizeof(Word) - 1)) == 0, 1)) {
    const Layout* layout = *reinterpret_cast<const Layout* const*>(first);
    if (__builtin_expect(layout != nullptr && layout->self == layout, 1)) return *layout;
  }
  broken_layout("an object's first word leads to no layout", nullptr, memory);
}
inline std::size_t words_of_self(const Layout& layout, Word object) {
  if (layout.element_bytes == 0) return layout.fixed_words;
  return words_with_elements(layout, object);
}
// The layout that a header word names. As above.
inline const Layout& layout_of_header(Word header, Word memory) {
  const unsigned number = header_number(header);
  if (__builtin_expect((header & 7) == kHeaderTag && number - 1 < layout_count - 1, 1)) {
    return *layouts[number];
  }
  broken_layout("a header word was overwritten", nullptr, memory);
}

// Bytes of memory, from its first on, that an object takes which says its layout itself; 0 if it is
// in the making. Reads no more than is needed.
inline std::size_t memory_bytes(Word memory, LayoutFrom from) {
  const Word first = *reinterpret_cast<const Word*>(memory);
  if (first == 0) return 0;
  if (from == LayoutFrom::Header) {
    if (__builtin_expect((first & 7) != kHeaderTag, 0)) {
      broken_layout("a header word was overwritten", nullptr, memory);
    }
    return kHeaderBytes + header_words(first) * sizeof(Word);
  }
  return words_of_self(layout_of_self(first, memory), memory) * sizeof(Word);
}

// Words of an object whose block says its layout. Its elements, if it may have any, are as many as
// its memory has room for.
std::size_t words_with_homogeneous_elements(const Layout& layout, Word memory);
inline std::size_t words_of_homogeneous(const Layout& layout, Word memory) {
  if (layout.element_bytes == 0) return layout.fixed_words;
  return words_with_homogeneous_elements(layout, memory);
}

// The typed object in the memory that begins there. False if it is in the making: then nothing of
// it but zeros was written. Ends the program if its first word leads to no layout. Pre: the memory
// of an allocated object, of a kind with layouts.
[[nodiscard]] inline bool typed_at(Word memory, const Kind& kind, Typed* typed) {
  if (kind.layout_from == LayoutFrom::Block) {
    *typed = {kind.layout, memory, words_of_homogeneous(*kind.layout, memory)};
    return true;
  }
  const Word first = *reinterpret_cast<const Word*>(memory);
  if (first == 0) return false;
  if (kind.layout_from == LayoutFrom::Header) {
    *typed = {&layout_of_header(first, memory), memory + kHeaderBytes, header_words(first)};
  } else {
    const Layout& layout = layout_of_self(first, memory);
    *typed = {&layout, memory, words_of_self(layout, memory)};
  }
  return true;
}

// Bytes that an object with so many elements takes, with its header; SIZE_MAX if none can.
std::size_t bytes_for(const Layout& layout, std::size_t elements);

namespace detail {

// Calls visit(first word, count) for each stretch of set bits among `count`, from bit 0 of *bits
// on.
template <class Visit>
void for_each_bitmap_stretch(const std::uint64_t* bits, Word* words, std::size_t count,
                             Visit& visit) {
  std::size_t begin = 0;
  std::size_t length = 0;
  for (std::size_t w = 0; w * 64 < count; ++w) {
    for (std::uint64_t rest = bits[w]; rest != 0; rest &= rest - 1) {
      const std::size_t i = w * 64 + base::lowest_bit(rest);
      if (i >= count) break;
      if (length != 0 && begin + length == i) {
        ++length;
        continue;
      }
      if (length != 0) visit(words + begin, length);
      begin = i;
      length = 1;
    }
  }
  if (length != 0) visit(words + begin, length);
}

// Hands a trace procedure's words on, one by one.
template <class Visit>
struct ForwardingTracer : Tracer {
  Visit* forward;
  static void forward_slot(Tracer* self, Word* slot) {
    (*static_cast<ForwardingTracer*>(self)->forward)(slot, 1);
  }
};

}  // namespace detail

// The same as for_each_stretch for elements alone, of a layout whose elements are partly pointers:
// those from `element`, where one begins, to `end`.
template <class Visit>
void for_each_stretch_of_elements(const Layout& layout, Word* element, const Word* end,
                                  Visit visit) {
  const std::size_t step = layout.element_bytes / sizeof(Word);
  for (; element + step <= end; element += step) {
    detail::for_each_bitmap_stretch(layout.element_pointers, element, step, visit);
  }
}

// Calls visit(first, count) for stretches of pointer words, in the order of their addresses (a
// trace procedure's, in its own).
template <class Visit>
void for_each_stretch(const Typed& typed, Visit visit) {
  const Layout& layout = *typed.layout;
  if (!layout.may_have_pointers) return;
  auto* const words = reinterpret_cast<Word*>(typed.object);
  if (layout.trace != nullptr) {
    const std::size_t size = typed.words * sizeof(Word);
    detail::ForwardingTracer<Visit> tracer;
    tracer.visit = detail::ForwardingTracer<Visit>::forward_slot;
    tracer.layout = &layout;
    tracer.low = typed.object;
    tracer.high = typed.object + size;
    tracer.forward = &visit;
    layout.trace(words, size, &tracer);
    return;
  }
  if (layout.pointers != nullptr) {
    detail::for_each_bitmap_stretch(layout.pointers, words, layout.fixed_words, visit);
  }
  if (layout.element_pointers == nullptr || typed.words <= layout.fixed_words) return;
  Word* element = words + layout.fixed_words;
  Word* const end = words + typed.words;
  if (layout.element_is_pointers) {
    visit(element, static_cast<std::size_t>(end - element));
    return;
  }
  for_each_stretch_of_elements(layout, element, end, visit);
}

}  // namespace jd::heap

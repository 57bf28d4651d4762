// Spans: runs of a few blocks that are cut into slots of one size, for objects of more than half a
// block to two and a half, which would waste a good part of whole blocks. (Go's allocator has the
// name, and spans for all sizes.) The head's record has the slots' geometry and bits; the other
// blocks are bodies, which lead to it.
//
// A span is on its kind's list of blocks with free slots, as small blocks are, but no thread owns
// one: slots are taken and given back under the heap's lock. Pre of every function: it is held.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/size_class.hpp"
#include "heap/space.hpp"

namespace jd::heap {

struct SpanClass {
  std::uint16_t slot_size;
  std::uint8_t blocks;

  [[nodiscard]] constexpr std::size_t bytes() const { return std::size_t{blocks} * kBlockSize; }
  [[nodiscard]] constexpr unsigned slots() const {
    return static_cast<unsigned>(bytes() / slot_size);
  }
};

// By slot size: what a few blocks divide into, so that with whole blocks among them neighbours are
// a fifth apart at most. What takes five sixths of whole blocks or more has no class: it gets them.
inline constexpr std::array<SpanClass, kSpanClasses> kSpans = {{
    {9088, 5},
    {9824, 3},
    {10912, 2},
    {12288, 3},
    {13648, 5},
    {18720, 8},
    {20480, 5},
    {21840, 4},
    {24576, 3},
    {27296, 5},
    {36864, 9},
    {40960, 5},
}};

// The class in which a request wastes least, as a place in kSpans; kSpanClasses if that is none.
unsigned span_class_for(std::size_t bytes);

// What list_of and Block::size_class call the class. (They count as full ones, whose objects may
// end where another begins.)
constexpr unsigned size_class_of_span(unsigned span_class) { return kSizeClasses + span_class; }

// The listed span of this kind with the smallest free slots of so many bytes or more, up to `most`;
// null if there is none.
Block* find_span(KindNumber kind, std::size_t bytes, std::size_t most);

// What a free slot holds: zeroes, or words of objects of which a collection has freed the last one,
// or the program.
enum class OldWords : std::uint8_t { None, Dropped, Freed };

// A free slot becomes an object. Takes a span without another free slot off its list. Pre: there is
// one.
Place take_slot(Block* span, OldWords* words);

// An object becomes a free slot, and a span without objects a free run.
void give_slot(const Place& place);

}  // namespace jd::heap

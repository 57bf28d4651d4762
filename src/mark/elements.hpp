// The elements of an array, with a layout or described, and how a large one is marked in steps.
#pragma once

#include <cstddef>

#include "heap/layout.hpp"

namespace jd::mark {

using base::Word;

// The bits of an object's first words, the highest for the first.
constexpr Word first_bits(std::size_t words) {
  return words < 64 ? ~(~Word{0} >> words) : ~Word{0};
}

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

// The elements of a described array's memory.
Elements elements_of(Word object, std::size_t size);

}  // namespace jd::mark

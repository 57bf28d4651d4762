// What waits on a mark stack, and in the ring of objects.
#pragma once

#include "base/bits.hpp"

namespace jd::mark {

using base::Word;

// An entry of the mark stack: words that are still to be scanned, and, marked by an `end` that no
// range has, one word that was scanned but not looked at, or an object with a descriptor. Where
// that address lies within a large object, it stands for elements of its (Marker::next_elements).
// Entry{}, an object at address 0, stands for nothing.
struct Entry {
  const Word* next;
  const Word* end;

  static Entry word(Word word) { return tagged(word, kWordTag); }
  static Entry object(Word address) { return tagged(address, kObjectTag); }
  [[nodiscard]] bool is_word() const { return base::as_word(end) == kWordTag; }
  [[nodiscard]] bool is_object() const { return base::as_word(end) == kObjectTag; }
  [[nodiscard]] bool is_tagged() const { return base::as_word(end) <= kWordTag; }

 private:
  static constexpr Word kObjectTag = 0;
  static constexpr Word kWordTag = sizeof(Word);
  static Entry tagged(Word value, Word tag) {
    return {reinterpret_cast<const Word*>(value), reinterpret_cast<const Word*>(tag)};
  }
};

// What an object without words to scan looks like.
inline constexpr Entry kNothing = {};

}  // namespace jd::mark

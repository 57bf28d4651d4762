// The FIFO of candidate words.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace jd::mark {

class Ring {
 public:
  // 64: between the 16 that cover one miss and the 256 whose own lines start to hurt
  // (docs/design/mark.md, "Ring length").
  static constexpr unsigned kCapacity = 64;
  // A word leaves once this many others are waiting behind it: the time that its two lines have to
  // arrive.
  static constexpr unsigned kDistance = 16;

  [[nodiscard]] unsigned count() const { return tail_ - head_; }
  [[nodiscard]] bool full() const { return count() == kCapacity; }
  void put(base::Word word) { words_[tail_++ % kCapacity] = word; }
  base::Word take() { return words_[head_++ % kCapacity]; }

 private:
  base::Word words_[kCapacity];
  // Free-running; unsigned wrap-around is harmless because the capacity is a power of two.
  unsigned head_ = 0;
  unsigned tail_ = 0;
};

}  // namespace jd::mark

// Passes over words of static data four at a time: few lie in the heap. (Stacks are not filtered:
// roots.cpp.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::mark {

using base::Word;

// Looks at the upper halves of words, which for addresses in the heap are one number, or two that
// follow each other. A heap of more than 4 GiB is not told from anything else.
class HeapFilter {
 public:
  HeapFilter(Word begin, Word end) {
    const Word first = begin >> 32;
    const Word last = end >> 32;
    selective_ = last - first <= 1;
    first_ = Halves{} + static_cast<std::uint32_t>(first);
    last_ = Halves{} + static_cast<std::uint32_t>(last);
  }

  static constexpr std::size_t kBytes = 4 * sizeof(Word);

  // False if none of the four words there lies in [begin, end].
  [[nodiscard, gnu::no_sanitize_address]] bool may_hold([[maybe_unused]] Word four) const {
#if defined(__SSE2__)
    const Halves low = *reinterpret_cast<const Unaligned*>(four);
    const Halves high = *reinterpret_cast<const Unaligned*>(four + sizeof(Halves));
    const Halves upper = __builtin_shufflevector(low, high, 1, 3, 5, 7);
    const auto match = (upper == first_) | (upper == last_);
    return !selective_ || __builtin_ia32_movmskps(reinterpret_cast<Floats>(match)) != 0;
#else
    return true;
#endif
  }

 private:
  using Halves [[gnu::vector_size(16)]] = std::uint32_t;
  using Floats [[gnu::vector_size(16)]] = float;
  using Unaligned [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = std::uint32_t;

  Halves first_;
  Halves last_;
  bool selective_;
};

}  // namespace jd::mark

// Passes over words of static data and of long objects eight at a time: often few of them lie in
// the heap. (Stacks are not filtered: roots.cpp.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "heap/space.hpp"

namespace jd::mark {

using base::Word;

// Looks at the upper halves of words: those of addresses in the heap are a few that follow each
// other. What another mapping has within the same 4 GiB is not told from it.
class HeapFilter {
 public:
  // So many are looked at together: a line of them.
  static constexpr std::ptrdiff_t kWords = base::kLine / sizeof(Word);

  // Of the words in [begin, end].
  HeapFilter(Word begin, Word end)
      : offset_(Halves{} + static_cast<std::int32_t>((begin >> 32) + kLeast)),
        beyond_(Halves{} + static_cast<std::int32_t>((end >> 32) - (begin >> 32) + 1 + kLeast)) {}

  static HeapFilter of_heap() { return {heap::space.base, heap::space.base + heap::space.span}; }

  // The first of the words from `next` to `end` whose line may hold an address in the heap; or the
  // first of the last few, which fill no line.
  [[nodiscard, gnu::no_sanitize_address, gnu::no_sanitize_thread]] const Word* skip(
      const Word* next, const Word* end) const {
    for (; end - next >= kWords && !may_hold(next); next += kWords) fetch(next + kAhead);
    return next;
  }
  // The same from the end; with kFetches, what comes is fetched ahead.
  template <bool kFetches>
  [[nodiscard, gnu::no_sanitize_address, gnu::no_sanitize_thread]] const Word* skip_back(
      const Word* begin, const Word* end) const {
    for (; end - begin >= kWords && !may_hold(end - kWords); end -= kWords) {
      if (kFetches) fetch(end - kAhead);
    }
    return end;
  }

 private:
  using Halves [[gnu::vector_size(16)]] = std::int32_t;
  using Floats [[gnu::vector_size(16)]] = float;
  using Unaligned [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = std::int32_t;

  // False if none of the words of that line lies there.
  [[nodiscard, gnu::always_inline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool
  may_hold([[maybe_unused]] const Word* line) const {
#if defined(__SSE2__)
    const Halves match =
        (upper(line) - offset_ < beyond_) | (upper(line + kWords / 2) - offset_ < beyond_);
    return __builtin_ia32_movmskps(reinterpret_cast<Floats>(match)) != 0;
#else
    return true;
#endif
  }

  // Of four words.
  [[gnu::always_inline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] static Halves upper(
      const Word* words) {
    const Halves low = *reinterpret_cast<const Unaligned*>(words);
    const Halves high = *reinterpret_cast<const Unaligned*>(words + 2);
    return __builtin_shufflevector(low, high, 1, 3, 5, 7);
  }

  // So far ahead, what is read has arrived (docs/design/mark-measured.md, "Numbers"). Beyond the
  // words' end, too, where the next object may be.
  static constexpr std::ptrdiff_t kAhead = 64 * kWords;
  static void fetch(const Word* word) { __builtin_prefetch(word, 0, 3); }

  // The instruction compares numbers with a sign.
  static constexpr Word kLeast = Word{1} << 31;

  Halves offset_;
  Halves beyond_;
};

}  // namespace jd::mark

// Sets of a block's slots (of a mixed one's granules) by their bits. Words are numbers with the
// block's first slot as the lowest bit.
#pragma once

#include "heap/block.hpp"

namespace jd::heap {

namespace detail {

inline std::uint64_t add(std::uint64_t a, std::uint64_t b, bool* carry) {
  std::uint64_t sum = 0;
  const bool first = __builtin_add_overflow(a, b, &sum);
  const bool second = __builtin_add_overflow(sum, std::uint64_t{*carry}, &sum);
  *carry = first || second;
  return sum;
}
inline std::uint64_t subtract(std::uint64_t a, std::uint64_t b, bool* borrow) {
  std::uint64_t difference = 0;
  const bool first = __builtin_sub_overflow(a, b, &difference);
  const bool second = __builtin_sub_overflow(difference, std::uint64_t{*borrow}, &difference);
  *borrow = first || second;
  return difference;
}

}  // namespace detail

// All slots from each of `firsts` up to the next of `boundaries`, which it is one of, or to the
// block's end: added to what is no boundary, the slot behind a first one carries up to the next
// boundary; and the powers of two from one slot up to another are their difference.
inline BlockBits tiles(const BlockBits& firsts, const BlockBits& boundaries) {
  BlockBits all;
  std::uint64_t behind = 0;
  bool carry = false;
  bool borrow = false;
  for (unsigned w = 0; w < kBitWords; ++w) {
    const std::uint64_t seconds = firsts.words[w] << 1 | behind;
    behind = firsts.words[w] >> 63;
    const std::uint64_t ends =
        detail::add(seconds, ~boundaries.words[w], &carry) & boundaries.words[w];
    all.words[w] = detail::subtract(ends, firsts.words[w], &borrow);
  }
  return all;
}

inline unsigned count(const BlockBits& bits) {
  unsigned ones = 0;
  for (const std::uint64_t word : bits.words) ones += base::count_ones(word);
  return ones;
}

// Those slots of the set that are in it together with the one so far behind. Pre: 0 < distance
// < 64.
inline BlockBits with_behind(const BlockBits& bits, unsigned distance) {
  BlockBits both;
  for (unsigned w = 0; w < kBitWords; ++w) {
    const std::uint64_t above = w + 1 < kBitWords ? bits.words[w + 1] : 0;
    both.words[w] = bits.words[w] & (bits.words[w] >> distance | above << (64 - distance));
  }
  return both;
}

// The first slots of the set's stretches.
inline BlockBits first_of_stretches(const BlockBits& bits) {
  BlockBits firsts;
  std::uint64_t before = 0;
  for (unsigned w = 0; w < kBitWords; ++w) {
    firsts.words[w] = bits.words[w] & ~(bits.words[w] << 1 | before);
    before = bits.words[w] >> 63;
  }
  return firsts;
}

// How many slots are in stretches of eight or more.
inline unsigned count_in_stretches_of_eight(const BlockBits& bits) {
  constexpr unsigned kEight = 8;
  const BlockBits eight = with_behind(with_behind(with_behind(bits, 1), 2), 4);
  return count(eight) + (kEight - 1) * count(first_of_stretches(eight));
}

}  // namespace jd::heap

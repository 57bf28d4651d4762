// Visiting every block and every object. Pre: the heap's lock is held; for exact results, the
// world is stopped.
#pragma once

#include "heap/space.hpp"

namespace jd::heap {

// A block of its own, not a run's.
inline bool is_alone(const Block& block) {
  return block.state == BlockState::Small || block.state == BlockState::Mixed;
}
// How many blocks it is, or its run has. Pre: not a body.
inline BlockNumber length_of(const Block& block) { return is_alone(block) ? 1 : block.run; }

// Calls visit(block number, block) for each small or mixed block, head of a large object or a span,
// and first block of a free run, in address order. visit may change what it is given.
template <class Visit>
void for_each_block(Visit visit) {
  for (BlockNumber b = 1; b < space.committed;) {
    Block& block = space.blocks[b];
    const BlockNumber length = length_of(block);
    visit(b, block);
    b += length;
  }
}

// Calls visit(slot) for each set bit of a word array that belongs to a block of `slots` slots.
template <class Visit>
void for_each_bit(const std::uint64_t* words, unsigned slots, Visit visit) {
  for (unsigned w = 0; w * 64 < slots; ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      visit(w * 64 + base::lowest_bit(bits));
    }
  }
}

// Calls visit(slot) for each marked object of a block.
template <class Visit>
void for_each_marked(const Block& block, Visit visit) {
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    // While marking, the marks of free slots are set too (start_marks).
    const std::uint64_t marked = block.marks[w] & block.allocated[w];
    for_each_bit(&marked, 64, [&](unsigned bit) { visit(w * 64 + bit); });
  }
}

// Calls visit(slot) for each object of a block that is allocated and not marked. visit may mark it.
template <class Visit>
void for_each_unmarked(const Block& block, Visit visit) {
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    // A program that runs beside a lazy sweep may be freeing one.
    const std::uint64_t allocated = __atomic_load_n(&block.allocated[w], __ATOMIC_RELAXED);
    const std::uint64_t unmarked = allocated & ~block.marks[w];
    for_each_bit(&unmarked, 64, [&](unsigned bit) { visit(w * 64 + bit); });
  }
}

// The bits [from, to) of word w, for a range of slots.
constexpr std::uint64_t bits_between(unsigned word, unsigned from, unsigned to) {
  const unsigned low = word * 64;
  std::uint64_t bits = ~std::uint64_t{0};
  if (from >= low + 64 || to <= low) return 0;
  if (from > low) bits &= ~std::uint64_t{0} << (from - low);
  if (to < low + 64) bits &= ~(~std::uint64_t{0} << (to - low));
  return bits;
}

// The free slots of a block among the 64 of a word. Of a block from which others allocate, or whose
// objects they free, as of some moment.
inline std::uint64_t free_slots(const Block& block, unsigned word) {
  const unsigned left = block.slots - word * 64;
  const std::uint64_t all = left < 64 ? (std::uint64_t{1} << left) - 1 : ~std::uint64_t{0};
  return ~__atomic_load_n(&block.allocated[word], __ATOMIC_RELAXED) & all;
}

// Acquire: whoever finds that a block has no object any more may release it, and what others did to
// its objects before they freed them (GC_free's release) is to come before its next use.
inline unsigned count_bits(const std::uint64_t* words, unsigned slots) {
  unsigned count = 0;
  for (unsigned w = 0; w * 64 < slots; ++w) {
    count += base::count_ones(__atomic_load_n(&words[w], __ATOMIC_ACQUIRE));
  }
  return count;
}
// By the bits. Of a block with an owner, or whose objects others free, as of some moment.
inline std::uint16_t count_free_slots(const Block& block) {
  return static_cast<std::uint16_t>(block.slots - count_bits(block.allocated, block.slots));
}

}  // namespace jd::heap

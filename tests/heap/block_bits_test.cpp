// Sets of slots by whole words, against the same one by one.
#include "heap/block_bits.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>
namespace jd::heap {
namespace {

using Set = std::vector<bool>;  // kMaxSlots of them

BlockBits bits_of(const Set& set) {
  BlockBits bits{};
  for (unsigned i = 0; i < kMaxSlots; ++i) {
    if (set[i]) bits.words[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return bits;
}

Set set_of(const BlockBits& bits) {
  Set set(kMaxSlots);
  for (unsigned i = 0; i < kMaxSlots; ++i) set[i] = ((bits.words[i / 64] >> (i % 64)) & 1) != 0;
  return set;
}

// From sparse sets to dense ones, some with long stretches of either.
template <class Check>
void with_random_sets(Check check) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 2000; ++round) {
    const std::uint64_t density = 1 + round % 40;
    Set set(kMaxSlots);
    bool in = false;
    for (unsigned i = 0; i < kMaxSlots; ++i) {
      if (random() % density == 0) in = random() % 2 == 0;
      set[i] = in;
    }
    check(set, &random);
  }
}

TEST(BlockBits, TilesReachFromTheirFirstSlotToTheNextBoundary) {
  with_random_sets([](const Set& boundaries, std::mt19937* random) {
    Set firsts = boundaries;
    for (unsigned i = 0; i < kMaxSlots; ++i) firsts[i] = boundaries[i] && (*random)() % 2 == 0;
    Set expected(kMaxSlots);
    bool in = false;
    for (unsigned i = 0; i < kMaxSlots; ++i) {
      if (boundaries[i]) in = firsts[i];
      expected[i] = in;
    }
    ASSERT_EQ(set_of(tiles(bits_of(firsts), bits_of(boundaries))), expected);
  });
}

// heap.req.line: geometry, kind and the first six mark words, which are all for slots of 48 bytes.
TEST(BlockBits, WhatTheMarkerNeedsIsInTheFirstLine) {
  constexpr std::size_t kLine = 64;
  EXPECT_EQ(alignof(Block) % kLine, 0u);
  EXPECT_EQ(sizeof(Block) % kLine, 0u);
  EXPECT_LE(offsetof(Block, marks) + 6 * sizeof(std::uint64_t), kLine);
  EXPECT_LE(kBlockSize / 48, std::size_t{6} * 64);
  for (const std::size_t offset :
       {offsetof(Block, state), offsetof(Block, kind), offsetof(Block, magic),
        offsetof(Block, slot_size), offsetof(Block, slots)}) {
    EXPECT_LT(offset, offsetof(Block, marks));
  }
}

TEST(BlockBits, StretchesAreCounted) {
  with_random_sets([](const Set& set, std::mt19937* random) {
    const auto distance = static_cast<unsigned>(1 + (*random)() % 63);
    Set both(kMaxSlots);
    Set firsts(kMaxSlots);
    unsigned ones = 0;
    unsigned in_eights = 0;
    unsigned length = 0;
    for (unsigned i = 0; i < kMaxSlots; ++i) {
      both[i] = set[i] && i + distance < kMaxSlots && set[i + distance];
      firsts[i] = set[i] && length == 0;
      length = set[i] ? length + 1 : 0;
      ones += set[i] ? 1 : 0;
      if (length == 8) in_eights += 8;
      if (length > 8) ++in_eights;
    }
    ASSERT_EQ(set_of(with_behind(bits_of(set), distance)), both);
    ASSERT_EQ(set_of(first_of_stretches(bits_of(set))), firsts);
    ASSERT_EQ(count(bits_of(set)), ones);
    ASSERT_EQ(count_in_stretches_of_eight(bits_of(set)), in_eights);
  });
}

}  // namespace
}  // namespace jd::heap

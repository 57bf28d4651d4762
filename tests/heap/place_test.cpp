// From addresses to objects: exact inside, and never outside, whatever the word.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/space.hpp"

namespace {

using namespace jd::heap;

void make_space() {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(256));
}

TEST(Place, EveryByteOfASmallBlockLeadsToItsSlot) {
  make_space();
  for (unsigned c = 0; c < kSizeClasses; ++c) {
    const BlockNumber number = make_small_block(kNormal, c);
    ASSERT_NE(number, kNoBlock);
    EXPECT_TRUE(space.extras[number].zeroed);
    const Word start = block_address(number);
    for (Word offset = 0; offset < kBlockSize; ++offset) {
      Place place{};
      const bool found = find_place(start + offset, &place);
      const std::size_t slot = offset / slot_size_of(c);
      ASSERT_EQ(found, slot < slots_in_block(c));
      if (!found) continue;
      ASSERT_EQ(place.slot, slot);
      ASSERT_EQ(place.address(), start + slot * slot_size_of(c));
      ASSERT_FALSE(place.allocated());
    }
  }
}

TEST(Place, InteriorOfALargeObjectLeadsToItsHead) {
  make_space();
  BlockNumber dirty = 0;
  Block* block = make_large(kNormal, 5 * kBlockSize + 48, 1, &dirty);
  ASSERT_NE(block, nullptr);
  const Word start = block_address(number_of(block));
  for (const Word offset : {Word{0}, Word{1}, Word{kBlockSize}, Word{5 * kBlockSize + 47}}) {
    Place place{};
    ASSERT_TRUE(find_object(start + offset, &place)) << offset;
    EXPECT_EQ(place.address(), start);
    EXPECT_EQ(place.size(), 5 * kBlockSize + 48);
  }
  Place place{};
  EXPECT_FALSE(find_place(start + 5 * kBlockSize + 48, &place));
}

TEST(Place, BodiesOfAFreedLargeObjectLeadNowhere) {
  make_space();
  BlockNumber dirty = 0;
  Block* block = make_large(kNormal, 8 * kBlockSize, 1, &dirty);
  const BlockNumber number = number_of(block);
  const Word start = block_address(number);
  release_block(number);
  Place place{};
  for (Word offset = 0; offset < 8 * kBlockSize; offset += 4096) {
    EXPECT_FALSE(find_place(start + offset, &place));
  }
  // A shorter object in the same place: the old bodies behind it still lead nowhere.
  Block* shorter = make_large(kNormal, 3 * kBlockSize, 1, &dirty);
  ASSERT_EQ(number_of(shorter), number);
  EXPECT_TRUE(find_place(start + 2 * kBlockSize, &place));
  EXPECT_FALSE(find_place(start + 4 * kBlockSize, &place));
}

// heap.req.hostile
TEST(Place, HostileWordsFindNothing) {
  make_space();
  const std::uint64_t seed = std::random_device{}();
  std::printf("JD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  Place place{};
  for (const Word word : {Word{0}, Word{1}, ~Word{0}, space.base - 1, space.base,
                          space.base + space.span, ~Word{0} << 47, space.base ^ (Word{1} << 63)}) {
    EXPECT_FALSE(find_place(word, &place)) << std::hex << word;
  }
  for (int i = 0; i < 2000000; ++i) {
    // Anywhere in the reservation, committed or not, and anywhere at all.
    Word word = random();
    if (i % 2 == 0) word = space.base + word % (Word{space.reserved} << kBlockShift);
    EXPECT_FALSE(find_place(word, &place));
  }
}

}  // namespace

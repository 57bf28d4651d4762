// Large objects that change their size in place.
#include <gtest/gtest.h>

#include "heap/blocks.hpp"
#include "heap/runs.hpp"

namespace {

using namespace jd::heap;

class Resize : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reserve_space(64u << 20));
    ASSERT_TRUE(grow(64));
    head_ = make(4);
  }
  static Block* make(BlockNumber blocks) {
    BlockNumber dirty = 0;
    return make_large(kNormal, blocks * kBlockSize, 1, &dirty);
  }
  // Every byte leads to the object, and the next one does not.
  void expect_object(std::size_t bytes) const {
    const Word start = block_address(number_of(head_));
    Place place{};
    for (Word offset = 0; offset < bytes; offset += kGranule) {
      ASSERT_TRUE(find_object(start + offset, &place)) << offset;
      ASSERT_EQ(place.address(), start);
      ASSERT_EQ(place.size(), bytes);
    }
    EXPECT_FALSE(find_object(start + bytes, &place) && place.address() == start);
  }
  Block* head_ = nullptr;
};

TEST_F(Resize, GivesBlocksBack) {
  const BlockNumber before = free_blocks();
  ASSERT_TRUE(resize_large(head_, 2 * kBlockSize - kGranule));
  EXPECT_EQ(free_blocks(), before + 2);
  expect_object(2 * kBlockSize - kGranule);
}

TEST_F(Resize, TakesTheBlocksBehindIt) {
  const BlockNumber before = free_blocks();
  ASSERT_TRUE(resize_large(head_, 10 * kBlockSize));
  EXPECT_EQ(free_blocks(), before - 6);
  expect_object(10 * kBlockSize);
  ASSERT_TRUE(resize_large(head_, (before + 4) * kBlockSize)) << "all there are";
  EXPECT_EQ(free_blocks(), 0u);
  EXPECT_FALSE(resize_large(head_, (before + 5) * kBlockSize));
  expect_object((before + 4) * kBlockSize);
}

TEST_F(Resize, TakesNoBlockOfANeighbours) {
  Block* neighbour = make(2);
  ASSERT_EQ(number_of(neighbour), number_of(head_) + 4);
  EXPECT_FALSE(resize_large(head_, 5 * kBlockSize));
  expect_object(4 * kBlockSize);
  // Within its own blocks it may.
  ASSERT_TRUE(resize_large(head_, 4 * kBlockSize - 5 * kGranule));
  expect_object(4 * kBlockSize - 5 * kGranule);
  ASSERT_TRUE(resize_large(head_, 4 * kBlockSize));
  release_block(number_of(neighbour));
  ASSERT_TRUE(resize_large(head_, 6 * kBlockSize));
  expect_object(6 * kBlockSize);
}

}  // namespace

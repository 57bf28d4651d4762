// Huge pages are asked for as blocks come into use, never for a page that is in use already.
#include "heap/huge_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "heap/blocks.hpp"
#include "heap/resident.hpp"
#include "heap/space.hpp"
#include "os/memory.hpp"

namespace {

using namespace jd::heap;

constexpr BlockNumber kBlocks = 3 * kHugePagesFrom;

class HugePages : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reserve_space(256u << 20));
    ASSERT_TRUE(grow(kBlocks));
    start_huge_pages();
  }
  // Other tests of this process have spaces of their own.
  void TearDown() override { next_without_huge_page = kNoBlock; }

  static char* memory(BlockNumber number) {
    return static_cast<char*>(jd::base::as_pointer(block_address(number)));
  }
};

TEST_F(HugePages, AreNotForSmallHeaps) {
  for (BlockNumber b = 1; b < kHugePagesFrom; ++b) start_using(b);
  EXPECT_EQ(next_without_huge_page, kHugePagesFrom);
}

TEST_F(HugePages, AreAskedForAheadOfUseOrNoMore) {
  for (BlockNumber b = kHugePagesFrom; b < kBlocks; ++b) {
    start_using(b);
    if (next_without_huge_page == kNoBlock) GTEST_SKIP() << "huge pages come slowly here";
    ASSERT_GT(next_without_huge_page, b);
    ASSERT_LE(next_without_huge_page, b + 9 * kHugePageBlocks);
    ASSERT_EQ(next_without_huge_page % kHugePageBlocks, 0u);
  }
}

TEST_F(HugePages, MemoryInUseKeepsWhatItHolds) {
  // Every third block, so that most are first used when others in their huge page hold data.
  for (BlockNumber start = 1; start <= 3; ++start) {
    for (BlockNumber b = start; b < kBlocks; b += 3) {
      start_using(b);
      ASSERT_EQ(memory(b)[0], 0) << "block " << b;
      std::memset(memory(b), 0x5a, 64);
    }
  }
  for (BlockNumber b = 1; b < kBlocks; ++b) {
    ASSERT_EQ(memory(b)[0], 0x5a) << "block " << b;
    ASSERT_EQ(memory(b)[63], 0x5a) << "block " << b;
  }
}

bool is_present(char* p) {
  unsigned char present = 0;
  EXPECT_EQ(mincore(p, jd::os::page_size(), &present), 0);
  return (present & 1) != 0;
}

// What lies before it may be there already, which would be no measure of a huge page.
TEST_F(HugePages, TheFirstTouchIsOfWhatWasAskedFor) {
  const BlockNumber first = kHugePagesFrom - 3;
  ask_for_huge_pages(first, kHugePagesFrom + 2, true);
  EXPECT_FALSE(is_present(memory(first)));
  EXPECT_TRUE(is_present(memory(kHugePagesFrom)));
}

// Nobody touches the pages behind it, which would be half as much memory again.
TEST_F(HugePages, AreNotForObjectsOfAPartOfABlock) {
  BlockNumber dirty = 0;
  std::vector<BlockNumber> blocks;
  while (Block* head = make_large(kNormal, kBlockSize / 2 + kGranule, 1, &dirty)) {
    blocks.push_back(number_of(head));
    memory(blocks.back())[0] = 1;
  }
  EXPECT_GT(blocks.size(), kHugePagesFrom);
  for (const BlockNumber number : blocks) {
    ASSERT_FALSE(is_present(memory(number) + kBlockSize - 4096)) << "block " << number;
  }
}

TEST_F(HugePages, AreNotForLargeObjects) {
  BlockNumber dirty = 0;
  std::vector<BlockNumber> last_blocks;
  while (Block* head = make_large(kNormal, kBlockSize + kGranule, 1, &dirty)) {
    last_blocks.push_back(number_of(head) + 1);
  }
  EXPECT_EQ(dirty, 0u);
  EXPECT_GT(last_blocks.size(), kHugePagesFrom / 2);
  for (const BlockNumber last : last_blocks) {
    *memory(last) = 1;
    ASSERT_FALSE(is_present(memory(last) + jd::os::page_size())) << "block " << last;
  }
}

TEST_F(HugePages, ALargeObjectIsNotTouched) {
  BlockNumber dirty = 0;
  const Block* head = make_large(kAtomic, (kBlocks - 8) * kBlockSize, 1, &dirty);
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(dirty, 0u);
  EXPECT_GE(next_without_huge_page, kBlocks - 8);
  for (BlockNumber b = number_of(head); b < kBlocks - 8; ++b) {
    ASSERT_FALSE(is_present(memory(b))) << "block " << b;
  }
}

TEST_F(HugePages, TheEndOfTheReservationIsNotPassed) {
  ASSERT_TRUE(grow(space.reserved - space.committed));
  start_using(space.reserved - 1);
  EXPECT_EQ(memory(space.reserved - 1)[0], 0);
  EXPECT_TRUE(next_without_huge_page == kNoBlock || next_without_huge_page >= space.reserved);
}

}  // namespace

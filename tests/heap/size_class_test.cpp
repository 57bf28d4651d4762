// Size classes and the reciprocal that finds slots.
#include "heap/size_class.hpp"

#include <gtest/gtest.h>

namespace {

using namespace jd::heap;

TEST(SizeClass, EveryRequestFitsAndNoSmallerClassDoes) {
  for (std::size_t bytes = 0; bytes <= kMaxSmall; ++bytes) {
    const unsigned size_class = class_for(bytes);
    ASSERT_LT(size_class, kSizeClasses);
    EXPECT_GE(kSlotSizes[size_class], bytes);
    if (size_class > 0) {
      EXPECT_LT(kSlotSizes[size_class - 1], bytes);
    }
  }
}

TEST(SizeClass, SlotsAreGranulesAndFitTheBlock) {
  for (unsigned c = 0; c < kSizeClasses; ++c) {
    EXPECT_EQ(kSlotSizes[c] % kGranule, 0u);
    EXPECT_LE(std::size_t{slots_in_block(c)} * kSlotSizes[c], kBlockSize);
    EXPECT_LE(slots_in_block(c), kMaxSlots);
    EXPECT_GE(slots_in_block(c), 2u);
  }
}

TEST(SizeClass, WasteIsBounded) {
  // What size_class.hpp promises: an eighth of a slot, or of a block.
  for (unsigned c = 1; c < kSizeClasses; ++c) {
    const double slot = kSlotSizes[c];
    const double least = kSlotSizes[c - 1] + 1.0;
    if (slot > 256) {
      EXPECT_LE((slot - least) / slot, 0.34) << slot;
    }
    const double used = static_cast<double>(slots_in_block(c)) * slot;
    EXPECT_GE(used / static_cast<double>(kBlockSize), 0.875) << slot;
  }
}

TEST(SizeClass, ReciprocalFindsEverySlotOfEveryClass) {
  for (unsigned c = 0; c < kSizeClasses; ++c) {
    Block block{};
    block.magic = magic_for(kSlotSizes[c]);
    for (std::size_t offset = 0; offset < kBlockSize; ++offset) {
      ASSERT_EQ(block.slot_of(offset), offset / kSlotSizes[c]) << kSlotSizes[c] << " " << offset;
    }
  }
}

}  // namespace

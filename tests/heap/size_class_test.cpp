// Size classes and the reciprocal that finds slots.
#include "heap/size_class.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace {

using namespace jd::heap;

TEST(SizeClass, EveryRequestFitsAndNoSmallerSlotDoes) {
  for (std::size_t bytes = 0; bytes <= kMaxSmall; ++bytes) {
    const unsigned size_class = class_for(bytes);
    ASSERT_LT(size_class, kSizeClasses);
    EXPECT_GE(slot_size_of(size_class), bytes);
    if (size_class % kFirstFullClass > 0) {
      EXPECT_LT(slot_size_of(size_class - 1), bytes);
    }
  }
}

TEST(SizeClass, OnlyFullClassesHoldObjectsThatEndWhereTheSlotEnds) {
  for (std::size_t bytes = 1; bytes <= kMaxSmall; ++bytes) {
    if (bytes == slot_size_of(class_for(bytes))) {
      EXPECT_TRUE(is_full_class(class_for(bytes)));
    }
    if (bytes + sizeof(Word) <= slot_size_of(class_for(bytes))) {
      EXPECT_FALSE(is_full_class(class_for(bytes)));
    }
  }
}

TEST(SizeClass, OneClassForEachSizeIsTheFullOneOfTheSameSize) {
  for (std::size_t words = 0; words < kClassOfWords.size(); ++words) {
    EXPECT_TRUE(is_full_class(kJoinedClassOfWords[words]));
    EXPECT_EQ(slot_size_of(kJoinedClassOfWords[words]), slot_size_of(kClassOfWords[words]));
  }
}

TEST(SizeClass, FewClassesServeSmallHeapsAndNoRequestIsTooLarge) {
  for (const auto& [coarse, fine] : {std::pair{&kCoarseClassOfWords, &kClassOfWords},
                                     std::pair{&kCoarseJoinedClassOfWords, &kJoinedClassOfWords}}) {
    std::set<unsigned> used;
    for (std::size_t words = 0; words < coarse->size(); ++words) {
      const unsigned size_class = (*coarse)[words];
      EXPECT_GE(slot_size_of(size_class), slot_size_of((*fine)[words]));
      if (!is_full_class(size_class)) {
        EXPECT_GT(slot_size_of(size_class), words * sizeof(Word));
      }
      if (words > 4 && words < 63) used.insert(size_class);
    }
    EXPECT_EQ(used.size(), 11U);
  }
}

TEST(SizeClass, SlotsAreGranulesAndFitTheBlock) {
  for (unsigned c = 0; c < kSizeClasses; ++c) {
    EXPECT_EQ(slot_size_of(c) % kGranule, 0u);
    EXPECT_LE(std::size_t{slots_in_block(c)} * slot_size_of(c), kBlockSize);
    EXPECT_LE(slots_in_block(c), kMaxSlots);
    EXPECT_GE(slots_in_block(c), 2u);
  }
}

TEST(SizeClass, WasteIsBounded) {
  // What size_class.hpp promises: an eighth of a slot, or of a block.
  for (unsigned c = 1; c < kFirstFullClass; ++c) {
    const double slot = slot_size_of(c);
    const double least = slot_size_of(c - 1) + 1.0;
    if (slot > 256) {
      EXPECT_LE((slot - least) / slot, 0.34) << slot;
    }
    const double used = static_cast<double>(slots_in_block(c)) * slot;
    EXPECT_GE(used / static_cast<double>(kBlockSize), 0.875) << slot;
  }
}

// heap.req.resolve: one multiplication finds the slot.
TEST(SizeClass, ReciprocalFindsEverySlotOfEveryClass) {
  for (unsigned c = 0; c < kSizeClasses; ++c) {
    Block block{};
    block.magic = magic_for(slot_size_of(c));
    for (std::size_t offset = 0; offset < kBlockSize; ++offset) {
      ASSERT_EQ(block.slot_of(offset), offset / slot_size_of(c))
          << slot_size_of(c) << " " << offset;
      ASSERT_EQ(is_slot_begin(offset * block.magic, block.magic), offset % slot_size_of(c) == 0)
          << slot_size_of(c) << " " << offset;
    }
  }
}

}  // namespace

// Lists, of which nothing waits on the mark stack, and arrays, of which little does
// (docs/design/mark-team.md, "When marking is shared").
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/sweep.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"

namespace {

using namespace jd::heap;
using jd::base::MarkStrategy;
using jd::mark::Marker;
using jd::mark::team;

// A list of 16-byte cells that fill their blocks, the last of which is its first.
class List {
 public:
  explicit List(unsigned blocks) {
    Word next = 0;
    for (unsigned b = 0; b < blocks; ++b) {
      const BlockNumber number = make_small_block(kNormal, class_for(2 * sizeof(Word)));
      if (number == kNoBlock) return;
      Block& block = space.blocks[number];
      for (unsigned slot = 0; slot < block.slots; ++slot) {
        block.allocated[slot / 64] |= std::uint64_t{1} << (slot % 64);
        cells_.push_back({&block, slot});
        auto* words = reinterpret_cast<Word*>(cells_.back().address());
        words[0] = next;
        words[1] = 0;
        next = cells_.back().address();
      }
    }
  }
  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  [[nodiscard]] Word head() const { return cells_.back().address(); }
  [[nodiscard]] std::size_t marked() const {
    std::size_t count = 0;
    for (const Place& cell : cells_) count += cell.marked() ? 1 : 0;
    return count;
  }

 private:
  std::vector<Place> cells_;
};

constexpr unsigned kBlocks = 100;
constexpr std::uint64_t kPatience = 100;

class ListsTest : public testing::TestWithParam<MarkStrategy> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reserve_space(64u << 20));
    ASSERT_TRUE(grow(4 * kBlocks));
    team.configure({.markers = 2, .patience = kPatience, .turn_entries = 0});
    ASSERT_GE(team.start_helpers(), 1u);
    ASSERT_TRUE(marker_.initialise(0));
    marker_.set_strategy(GetParam());
  }
  void mark(const std::vector<Word>& roots) {
    start_marks();
    team.begin_collection(false);
    marker_.push_range(roots.data(), roots.data() + roots.size());
    marker_.drain();
  }
  Marker marker_;
};

TEST_P(ListsTest, TwoAreWorkForTwoMarkers) {
  const List one(kBlocks);
  const List other(kBlocks);
  for (unsigned round = 1; round <= 20; ++round) {
    mark({one.head(), other.head()});
    EXPECT_TRUE(team.had_choice());
    EXPECT_GE(team.counts().packets, round);
    ASSERT_EQ(one.marked(), one.size());
    ASSERT_EQ(other.marked(), other.size());
  }
}

TEST_P(ListsTest, AsManyAsAreInTheRingsAreShared) {
  std::vector<List> lists;
  std::vector<Word> roots;
  for (unsigned i = 0; i < 12; ++i) {
    lists.emplace_back(kBlocks / 4);
    roots.push_back(lists.back().head());
  }
  for (unsigned round = 1; round <= 20; ++round) {
    mark(roots);
    EXPECT_GE(team.counts().packets, round);
    for (const List& list : lists) ASSERT_EQ(list.marked(), list.size());
  }
}

// Numbers lead nowhere, and reading them takes its time all the same.
TEST_P(ListsTest, AnArrayOfNumbersIsWorkForTwoMarkers) {
  BlockNumber dirty = 0;
  Block* const block = make_large(kNormal, kBlocks * kBlockSize, 1, &dirty);
  ASSERT_NE(block, nullptr);
  extra_of(block).filled = true;
  const Word array = block_address(number_of(block));
  std::memset(reinterpret_cast<void*>(array), 3, kBlocks * kBlockSize);
  for (unsigned round = 1; round <= 20; ++round) {
    mark({array});
    EXPECT_TRUE(team.had_choice());
    EXPECT_GE(team.counts().packets, round);
  }
}

// Without the rings a list's cells pass over the stack, so the marker can't know.
TEST(Lists, NobodyIsWokenForOne) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(2 * kBlocks));
  team.configure({.markers = 2, .patience = kPatience, .turn_entries = 0});
  ASSERT_GE(team.start_helpers(), 1u);
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  marker.set_strategy(MarkStrategy::Ring);
  const List list(kBlocks);
  team.begin_collection(false);
  start_marks();
  marker.mark_word(list.head());
  marker.drain();
  EXPECT_FALSE(team.had_choice());
  EXPECT_EQ(team.counts().waits, 0u);
  EXPECT_EQ(list.marked(), list.size());
}

INSTANTIATE_TEST_SUITE_P(Of, ListsTest,
                         testing::Values(MarkStrategy::None, MarkStrategy::Grey,
                                         MarkStrategy::OnGrey, MarkStrategy::Ring));

}  // namespace

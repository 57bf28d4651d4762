// Long ranges of words of which few lead into the heap (docs/design/mark.md, "Numbers").
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/sweep.hpp"
#include "mark/filter.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"

namespace {

using namespace jd::heap;
using jd::base::MarkStrategy;
using jd::mark::HeapFilter;
using jd::mark::Marker;
using jd::mark::team;

constexpr Word kUpper = Word{1} << 32;

struct Heap {
  const char* name;
  Word begin;
  Word end;
};

class FilterTest : public testing::TestWithParam<Heap> {
 protected:
  [[nodiscard]] bool holds(Word word) const {
    return word >= GetParam().begin && word <= GetParam().end;
  }
  // Of the same upper halves as the heap, for which the filter may stop.
  [[nodiscard]] bool is_near(Word word) const {
    return word / kUpper >= GetParam().begin / kUpper && word / kUpper <= GetParam().end / kUpper;
  }
  Word far_word() {
    const Word sorts[] = {0,
                          random_() % 4096,
                          random_(),
                          ~Word{0},
                          GetParam().begin - kUpper,
                          GetParam().end + kUpper,
                          GetParam().begin ^ (Word{1} << 63)};
    const Word word = sorts[random_() % std::size(sorts)];
    return is_near(word) ? 0 : word;
  }
  Word near_word() {
    const Word size = GetParam().end - GetParam().begin;
    const Word sorts[] = {GetParam().begin, GetParam().end, GetParam().begin + random_() % size};
    return sorts[random_() % std::size(sorts)];
  }
  std::mt19937_64 random_{11};
};

TEST_P(FilterTest, PassesNothingOfTheHeap) {
  const HeapFilter filter(GetParam().begin, GetParam().end);
  for (int round = 0; round < 20000; ++round) {
    std::vector<Word> words(1 + random_() % 100);
    for (Word& word : words) word = random_() % 64 == 0 ? near_word() : far_word();
    // At any address a word may have.
    const Word* const begin = words.data() + (words.size() > 1 ? random_() % 2 : 0);
    const Word* const end = words.data() + words.size();
    const auto holds_any = [this](const Word* from, const Word* to) {
      return std::any_of(from, to, [this](Word word) { return holds(word); });
    };
    const Word* const next = filter.skip(begin, end);
    ASSERT_FALSE(holds_any(begin, next));
    const Word* const last = filter.skip_back<true>(begin, end);
    ASSERT_FALSE(holds_any(last, end));
#if defined(__SSE2__)
    // And it stops only for what is near, or too short.
    const auto is_short = [](const Word* from, const Word* to) {
      return to - from < HeapFilter::kWords;
    };
    const auto near_any = [this](const Word* from, const Word* to) {
      return std::any_of(from, to, [this](Word word) { return is_near(word); });
    };
    ASSERT_TRUE(is_short(next, end) || near_any(next, next + HeapFilter::kWords));
    ASSERT_TRUE(is_short(begin, last) || near_any(last - HeapFilter::kWords, last));
#endif
  }
}

INSTANTIATE_TEST_SUITE_P(Of, FilterTest,
                         testing::Values(Heap{"small", 0x7f12'4000'0000, 0x7f12'4010'0000},
                                         Heap{"across", 0x7f12'ffff'0000, 0x7f13'0001'0000},
                                         Heap{"large", 0x7000'1234'0000, 0x7012'1234'0000},
                                         Heap{"low", 0x1000'0000, 0x2000'0000},
                                         Heap{"low_and_large", 0x1000'0000, 0x18'2000'0000}),
                         [](const testing::TestParamInfo<Heap>& info) { return info.param.name; });

struct Case {
  MarkStrategy strategy;
  unsigned markers;
};

class NumbersTest : public testing::TestWithParam<Case> {};

TEST_P(NumbersTest, HideNoPointer) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(300));
  constexpr BlockNumber kArrayBlocks = 100;
  constexpr std::size_t kWords = kArrayBlocks * kBlockSize / sizeof(Word);
  BlockNumber dirty = 0;
  Block* const block = make_large(kNormal, kArrayBlocks * kBlockSize, 1, &dirty);
  ASSERT_NE(block, nullptr);
  auto* const words = reinterpret_cast<Word*>(block_address(number_of(block)));
  const BlockNumber number = make_small_block(kNormal, class_for(32));
  Block& leaves = space.blocks[number];
  for (unsigned slot = 0; slot < leaves.slots; ++slot) {
    leaves.allocated[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }
  std::fill_n(reinterpret_cast<Word*>(block_address(number)), kBlockSize / sizeof(Word), 0);
  team.configure({.markers = GetParam().markers, .patience = 1, .turn_entries = 0});
  ASSERT_GE(team.start_helpers(), GetParam().markers - 1);
  Marker marker;
  ASSERT_TRUE(marker.initialise(0));
  marker.set_strategy(GetParam().strategy);
  std::mt19937_64 random(5);
  // From arrays of pointers to such as have none for many lines.
  for (const std::size_t pointers : {kWords, kWords / 8, kWords / 100, std::size_t{40}}) {
    for (int round = 0; round < 10; ++round) {
      // Numbers of the heap's own 4 GiB, too.
      std::generate_n(words, kWords, [&random] {
        return random() % 16 == 0 ? (space.base + space.span + random() % 4096) : random() % 4096;
      });
      for (std::size_t i = 0; i < pointers; ++i) {
        words[random() % kWords] =
            block_address(number) + random() % leaves.slots * leaves.slot_size;
      }
      // From and to any word: what is shared ends anywhere, too.
      const Word* const first = words + random() % 64;
      const Word* const end =
          round % 2 == 0 ? words + kWords - random() % 64 : first + random() % 200;
      std::vector<bool> expected(leaves.slots, false);
      for (const Word* at = first; at < end; ++at) {
        if (*at - block_address(number) < kBlockSize) {
          expected[(*at - block_address(number)) / leaves.slot_size] = true;
        }
      }
      start_marks();
      team.begin_collection(false);
      if (round % 4 == 3) {
        marker.scan_roots(first, end);
      } else {
        marker.push_range(first, end);
      }
      marker.drain();
      for (unsigned slot = 0; slot < leaves.slots; ++slot) {
        ASSERT_EQ(leaves.marked(slot), expected[slot]) << pointers << " pointers, slot " << slot;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, NumbersTest,
                         testing::Values(Case{MarkStrategy::None, 1}, Case{MarkStrategy::Grey, 1},
                                         Case{MarkStrategy::OnGrey, 1}, Case{MarkStrategy::Ring, 1},
                                         Case{MarkStrategy::Grey, 2}, Case{MarkStrategy::OnGrey, 3},
                                         Case{MarkStrategy::Ring, 2}));

}  // namespace

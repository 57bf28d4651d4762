// Which strategy is used where both were measured (src/mark/choice.hpp), on made-up times.
#include "mark/choice.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace jd::mark {
namespace {

// Nanoseconds an object with each.
struct Times {
  double none;
  double ring;
};

// So many collections that mark so many objects; how many of them used the ring.
int collect(StrategyChoices* choices, int collections, std::size_t objects, Times times,
            std::size_t bytes = base::kMiB) {
  int rings = 0;
  for (int i = 0; i < collections; ++i) {
    const MarkStrategy strategy = choices->next(objects, bytes, base::kMiB);
    const bool ring = strategy == MarkStrategy::Ring;
    rings += ring ? 1 : 0;
    const double each = ring ? times.ring : times.none;
    choices->note(objects, static_cast<std::uint64_t>(each * static_cast<double>(objects)));
  }
  return rings;
}

constexpr std::size_t kSmall = 5000;
constexpr std::size_t kLarge = 200000;

TEST(StrategyChoice, TakesTheQuickerOfTheTwo) {
  for (const std::size_t objects : {kSmall, kLarge}) {
    StrategyChoices choices;
    collect(&choices, 30, objects, {4, 8});
    EXPECT_LE(collect(&choices, 100, objects, {4, 8}), 10) << objects;
    StrategyChoices others;
    collect(&others, 30, objects, {20, 8});
    EXPECT_GE(collect(&others, 100, objects, {20, 8}), 90) << objects;
  }
}

TEST(StrategyChoice, FollowsAProgramThatChanges) {
  StrategyChoices choices;
  collect(&choices, 500, kLarge, {4, 8});
  collect(&choices, 300, kLarge, {20, 8});
  EXPECT_GE(collect(&choices, 100, kLarge, {20, 8}), 90);
}

TEST(StrategyChoice, IsMadeForEachSizeOfTheLiveData) {
  StrategyChoices choices;
  for (int i = 0; i < 50; ++i) {
    collect(&choices, 4, kSmall, {4, 8});
    collect(&choices, 4, kLarge, {20, 8});
  }
  EXPECT_LE(collect(&choices, 20, kSmall, {4, 8}), 4);
  EXPECT_GE(collect(&choices, 20, kLarge, {20, 8}), 16);
}

TEST(StrategyChoice, TriesALosingOneSeldom) {
  StrategyChoices choices;
  EXPECT_GE(collect(&choices, 1000, kLarge, {80, 8}), 985);
}

// A trial may look quick once, because what it is compared with was measured while the thread had
// no processor.
TEST(StrategyChoice, IsNotMovedByASingleMeasurement) {
  StrategyChoices choices;
  int rings = 0;
  int trials = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool ring = choices.next(kLarge, base::kMiB, 0) == MarkStrategy::Ring;
    rings += ring ? 1 : 0;
    // Of the trials of *grey* every second one is lucky.
    const bool lucky = !ring && ++trials % 2 == 1;
    choices.note(kLarge, (ring ? 8 : lucky ? 1 : 20) * kLarge);
  }
  EXPECT_GE(trials, 4);
  EXPECT_GE(rings, 970);
}

TEST(StrategyChoice, OfWhatFitsNoCacheIsTheRing) {
  StrategyChoices choices;
  EXPECT_EQ(collect(&choices, 100, kLarge, {1, 8}, StrategyChoices::kMostLive + 1), 100);
}

TEST(StrategyChoice, OfAlmostNothingIsNeverTried) {
  StrategyChoices choices;
  EXPECT_EQ(collect(&choices, 100, 0, {8, 1}), 0);
  EXPECT_EQ(collect(&choices, 100, Choice::kLeastObjects - 1, {8, 1}), 0);
}

// All of one logarithm. Where many objects are marked each takes longer, with either; trials fall
// on collections that mark few.
TEST(StrategyChoice, ComparesOnlyLikeWithLike) {
  StrategyChoices choices;
  for (int i = 0; i < 1000; ++i) {
    const bool ring = choices.next(40000, base::kMiB, 0) == MarkStrategy::Ring;
    const std::uint64_t objects = ring ? 60000 : 33000;
    choices.note(objects, (ring ? 20 : 5) * objects);
  }
  EXPECT_GE(collect(&choices, 100, 40000, {20, 16}), 90);
}

TEST(StrategyChoice, OfAFirstCollectionOfALargeHeapIsTheRing) {
  StrategyChoices choices;
  EXPECT_EQ(choices.next(0, 0, StrategyChoices::kMostInUse + 1), MarkStrategy::Ring);
  EXPECT_EQ(choices.next(0, 0, base::kMiB), MarkStrategy::Grey);
}

// ---- In company or alone ----

// So many collections that mark so many objects, in so many nanoseconds an object in company or
// alone; how many of them were alone.
int collect(CompanyChoices* choices, int collections, std::size_t objects, double company,
            double alone) {
  int counted = 0;
  std::uint64_t last = 0;
  for (int i = 0; i < collections; ++i) {
    const bool is_alone = choices->next(objects, last, 2, true);
    counted += is_alone ? 1 : 0;
    last = static_cast<std::uint64_t>((is_alone ? alone : company) * static_cast<double>(objects));
    choices->note(objects, last);
  }
  return counted;
}

TEST(CompanyChoice, IsTheQuickerOfTheTwo) {
  CompanyChoices choices;
  collect(&choices, 30, kLarge, 10, 7);
  EXPECT_GE(collect(&choices, 100, kLarge, 10, 7), 90);
  // The other processors are free again.
  collect(&choices, 300, kLarge, 5, 7);
  EXPECT_LE(collect(&choices, 100, kLarge, 5, 7), 10);
}

TEST(CompanyChoice, IsSeldomDoubtedWhereItPays) {
  CompanyChoices choices;
  EXPECT_LE(collect(&choices, 1000, kLarge, 5, 9), 10);
}

TEST(CompanyChoice, IsNoTrialBesideAnother) {
  CompanyChoices choices;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(choices.next(kLarge, 0, 2, false));
    EXPECT_FALSE(choices.is_trial());
    choices.note(kLarge, 10 * kLarge);
  }
  EXPECT_TRUE(choices.next(kLarge, 0, 2, true));
  EXPECT_TRUE(choices.is_trial());
}

// Nor is company given up where it takes long; but it is gone back to.
TEST(CompanyChoice, IsNotLeftForALongPause) {
  constexpr std::size_t kHuge = 10000000;
  CompanyChoices choices;
  EXPECT_EQ(collect(&choices, 1000, kHuge, 10, 1), 0);
  constexpr std::size_t kLess = CompanyChoices::kLongest / 25;
  EXPECT_GE(collect(&choices, 100, kLess, 10, 1), 50);
  collect(&choices, 200, kLess, 2, 20);  // alone, which takes longer than it might as a trial
  EXPECT_LE(collect(&choices, 100, kLess, 2, 20), 10);
}

}  // namespace
}  // namespace jd::mark

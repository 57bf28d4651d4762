#include "cycle/partial_worth.hpp"

#include <gtest/gtest.h>

namespace jd::cycle {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
// That many pages have changed; none of them was watched.
constexpr mark::Changed kMany = {true, PartialWorth::kLeastPages, 0};
constexpr mark::Changed kFew = {true, PartialWorth::kLeastPages - 1, 0};

TEST(PartialWorth, PaysAtFirst) { EXPECT_TRUE(PartialWorth().pays()); }

TEST(PartialWorth, PaysWhileItTakesLess) {
  PartialWorth worth;
  worth.note_full(20 * kMs);
  for (int i = 0; i < 10; ++i) {
    worth.note_partial(14 * kMs, kMany);
    EXPECT_TRUE(worth.pays());
  }
}

TEST(PartialWorth, WaitsTwiceAsLongEachTimeThatItDoesNot) {
  PartialWorth worth;
  worth.note_full(20 * kMs);
  for (const int waits : {1, 3, 7, 15, 31, 31}) {
    worth.note_partial(16 * kMs, kMany);
    for (int i = 0; i < waits; ++i) {
      EXPECT_FALSE(worth.pays()) << i << " of " << waits;
      worth.note_full(20 * kMs);
    }
    EXPECT_TRUE(worth.pays()) << waits;
  }
  worth.note_partial(kMs, kMany);
  EXPECT_TRUE(worth.pays());
  worth.note_partial(16 * kMs, kMany);
  worth.note_full(20 * kMs);
  EXPECT_TRUE(worth.pays()) << "it waits for one again";
}

TEST(PartialWorth, FaultsCount) {
  PartialWorth worth;
  worth.note_full(20 * kMs);
  worth.note_partial(kMs, {true, 100'000, 20 * kMs / PartialWorth::kFaultNs});
  EXPECT_FALSE(worth.pays());
}

TEST(PartialWorth, FewPagesAreNoLoss) {
  PartialWorth worth;
  worth.note_full(kMs);
  worth.note_partial(18 * kMs, kFew);
  EXPECT_TRUE(worth.pays());
}

}  // namespace
}  // namespace jd::cycle

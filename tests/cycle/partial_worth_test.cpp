#include "cycle/partial_worth.hpp"

#include <gtest/gtest.h>

namespace jd::cycle {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::size_t kPages = PartialWorth::kLeastPages;

TEST(PartialWorth, PaysAtFirst) { EXPECT_TRUE(PartialWorth().pays()); }

TEST(PartialWorth, PaysWhileLittleIsWritten) {
  PartialWorth worth;
  worth.note_full(20 * kMs, 1'000'000);
  for (int i = 0; i < 10; ++i) {
    worth.note_partial(kMs, kPages, 1'000'000);
    EXPECT_TRUE(worth.pays());
  }
}

TEST(PartialWorth, WaitsTwiceAsLongEachTimeThatItDoesNot) {
  PartialWorth worth;
  const auto full = [&worth] { worth.note_full(20 * kMs, 1'000'000); };
  full();
  for (const int waits : {1, 3, 7, 15, 31, 31}) {
    worth.note_partial(18 * kMs, kPages, 1'000'000);
    for (int i = 0; i < waits; ++i) {
      EXPECT_FALSE(worth.pays()) << i << " of " << waits;
      full();
    }
    EXPECT_TRUE(worth.pays()) << waits;
  }
  worth.note_partial(kMs, 0, 1'000'000);
  EXPECT_TRUE(worth.pays());
  worth.note_partial(18 * kMs, kPages, 1'000'000);
  full();
  EXPECT_TRUE(worth.pays()) << "it waits for one again";
}

TEST(PartialWorth, FaultsCount) {
  PartialWorth worth;
  worth.note_full(20 * kMs, 1'000'000);
  worth.note_partial(kMs, 20 * kMs / PartialWorth::kFaultNs, 1'000'000);
  EXPECT_FALSE(worth.pays());
}

TEST(PartialWorth, AFullOneIsReckonedByWhatIsAlive) {
  PartialWorth worth;
  worth.note_full(20 * kMs, 1'000'000);
  worth.note_partial(18 * kMs, kPages, 3'000'000);
  EXPECT_TRUE(worth.pays());
  worth.note_partial(18 * kMs, kPages, 1'100'000);
  EXPECT_FALSE(worth.pays());
}

TEST(PartialWorth, FewPagesAreNoLoss) {
  PartialWorth worth;
  worth.note_full(kMs, 1000);
  worth.note_partial(18 * kMs, kPages - 1, 1000);
  EXPECT_TRUE(worth.pays());
}

TEST(PartialWorth, NoProductOverflows) {
  PartialWorth worth;
  worth.note_full(100'000 * kMs, 10'000'000'000);
  worth.note_partial(1000 * kMs, 100'000'000, 10'000'000'000);
  EXPECT_TRUE(worth.pays());
  worth.note_partial(90'000 * kMs, 100'000'000, 10'000'000'000);
  EXPECT_FALSE(worth.pays());
}

}  // namespace
}  // namespace jd::cycle

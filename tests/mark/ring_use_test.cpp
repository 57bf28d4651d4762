// When a marker uses its rings (src/mark/ring_use.hpp), on made-up times.
#include "mark/ring_use.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace jd::mark {
namespace {

constexpr std::uint64_t kTurn = 1024;

// Nanoseconds an object, with the rings and without.
struct Times {
  double with;
  double without;
};

void note(RingUse* use, std::uint64_t objects, double each) {
  use->note(objects, static_cast<std::uint64_t>(each * static_cast<double>(objects)));
}

// Marks so many objects in the collection that has begun, in turns without the rings or else all at
// once. How many were marked with the rings.
std::uint64_t mark(RingUse* use, std::uint64_t objects, Times times) {
  while (objects != 0 && !use->with_rings()) {
    const std::uint64_t turn = objects < kTurn ? objects : kTurn;
    note(use, turn, times.without);
    objects -= turn;
  }
  if (objects != 0) note(use, objects, times.with);
  return objects;
}

std::uint64_t collect(RingUse* use, std::uint64_t objects, Times times) {
  use->begin();
  return mark(use, objects, times);
}

std::uint64_t collect(RingUse* use, int collections, std::uint64_t objects, Times times) {
  std::uint64_t with_rings = 0;
  for (int i = 0; i < collections; ++i) with_rings += collect(use, objects, times);
  return with_rings;
}

constexpr std::uint64_t kObjects = 1'000'000;
constexpr Times kInOrder = {7, 5};
constexpr Times kScattered = {15, 130};

TEST(RingUse, TheFirstCollectionHasThemSinceNothingIsKnown) {
  RingUse use;
  EXPECT_EQ(collect(&use, kObjects, kInOrder), kObjects);
}

TEST(RingUse, TheyAreLeftOutWhereTheyAreSlower) {
  RingUse use;
  collect(&use, kObjects, kInOrder);
  EXPECT_EQ(collect(&use, 20, kObjects, kInOrder), 0u);
  // One in so many sees what they take now.
  EXPECT_LE(collect(&use, 10 * static_cast<int>(RingUse::kRefresh), kObjects, kInOrder),
            10 * kObjects);
}

TEST(RingUse, LittleIsLostWhereTheyAreQuicker) {
  RingUse use;
  collect(&use, kObjects, kScattered);
  const std::uint64_t without = kObjects - collect(&use, kObjects, kScattered);
  EXPECT_LE(static_cast<double>(without) * kScattered.without,
            4 * static_cast<double>(RingUse::kMostLost));
  // Less and less often.
  int tried = 0;
  for (int i = 0; i < 500; ++i) tried += collect(&use, kObjects, kScattered) < kObjects ? 1 : 0;
  EXPECT_GE(tried, 5);
  EXPECT_LE(tried, 15);
}

TEST(RingUse, APartInOrderIsMarkedWithoutAndTheRestWith) {
  RingUse use;
  collect(&use, kObjects, kScattered);
  use.begin();
  EXPECT_EQ(mark(&use, kObjects / 2, {15, 5}), 0u);
  EXPECT_GE(mark(&use, kObjects / 2, kScattered), kObjects / 2 - 4 * kTurn);
  // It was worth while, so the next begins without them again.
  use.begin();
  EXPECT_FALSE(use.with_rings());
}

TEST(RingUse, AColdBeginningIsForgiven) {
  RingUse use;
  collect(&use, kObjects, kInOrder);
  use.begin();
  note(&use, kTurn, 40);
  EXPECT_EQ(mark(&use, kObjects, kInOrder), 0u);
}

TEST(RingUse, AProgramThatChangesIsFollowed) {
  RingUse use;
  collect(&use, 100, kObjects, kScattered);
  // Both ways: after so many that are skipped, and at once.
  collect(&use, 2 * static_cast<int>(RingUse::kMostSkipped), kObjects, kInOrder);
  EXPECT_LE(collect(&use, 10, kObjects, kInOrder), kObjects);
  EXPECT_GE(collect(&use, 10, kObjects, kScattered), 9 * kObjects);
}

TEST(RingUse, AFewObjectsTellNothing) {
  RingUse use;
  collect(&use, RingUse::kLeastObjects - 1, {500, 5});
  use.begin();
  EXPECT_TRUE(use.with_rings());
}

}  // namespace
}  // namespace jd::mark

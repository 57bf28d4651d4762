// Free runs against a model: a plain array of which block is free (heap.req.runs).
#include "heap/runs.hpp"
#include "heap/resident.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "heap/space.hpp"

namespace {

using namespace jd::heap;

constexpr BlockNumber kBlocks = 4096;

std::uint64_t seed() {
  const char* given = std::getenv("JD_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

struct Piece {
  BlockNumber first;
  BlockNumber count;
};

// The longest run of free blocks in the model.
BlockNumber longest(const std::vector<bool>& taken) {
  BlockNumber best = 0;
  BlockNumber now = 0;
  for (BlockNumber b = 1; b <= kBlocks; ++b) {
    now = taken[b] ? 0 : now + 1;
    best = std::max(best, now);
  }
  return best;
}

// Blocks in use look like small blocks to their neighbours.
void mark_used(const Piece& piece) {
  for (BlockNumber b = piece.first; b < piece.first + piece.count; ++b) {
    space.blocks[b].state = BlockState::Small;
    space.blocks[b].slots = 1;
    start_using(b);
  }
}

TEST(Runs, RandomTakesAndGivesAgreeWithAModel) {
  const std::uint64_t s = seed();
  RecordProperty("seed", std::to_string(s));
  std::printf("JD_SEED=%llu\n", static_cast<unsigned long long>(s));
  std::mt19937_64 random(s);
  ASSERT_TRUE(reserve_space(256u << 20));
  ASSERT_TRUE(grow(kBlocks));
  std::vector<bool> taken(kBlocks + 1, false);
  std::vector<Piece> pieces;
  BlockNumber used = 0;
  for (int step = 0; step < 40000; ++step) {
    if (pieces.empty() || random() % 5 < 3) {
      const auto count = static_cast<BlockNumber>(1 + random() % (random() % 8 == 0 ? 300 : 6));
      const BlockNumber alignment = random() % 4 == 0 ? BlockNumber{1} << (random() % 5) : 1;
      const BlockNumber first = take_run(count, alignment);
      if (first == kNoBlock) {
        // It may only fail when an aligned run can't be promised.
        ASSERT_LT(longest(taken), count + alignment - 1);
        continue;
      }
      ASSERT_EQ((block_address(first) >> kBlockShift) % alignment, 0u);
      for (BlockNumber b = first; b < first + count; ++b) {
        ASSERT_FALSE(taken[b]) << "block " << b << " was given out twice";
        taken[b] = true;
      }
      pieces.push_back({first, count});
      mark_used(pieces.back());
      used += count;
    } else {
      const std::size_t i = random() % pieces.size();
      const Piece piece = pieces[i];
      pieces[i] = pieces.back();
      pieces.pop_back();
      for (BlockNumber b = piece.first; b < piece.first + piece.count; ++b) {
        taken[b] = false;
        space.blocks[b].state = BlockState::Free;
        space.blocks[b].slots = 0;
      }
      give_run(piece.first, piece.count);
      used -= piece.count;
    }
    ASSERT_EQ(free_blocks(), kBlocks - used);
  }
  for (const Piece& piece : pieces) give_run(piece.first, piece.count);
  EXPECT_EQ(free_blocks(), kBlocks);
  EXPECT_EQ(space.blocks[1].run, kBlocks) << "the free runs did not all join";
}

void use(BlockNumber first, BlockNumber count) {
  for (BlockNumber b = first; b < first + count; ++b) {
    start_using(b);
    space.blocks[b].state = BlockState::Small;
  }
}

TEST(Runs, DiscardedBlocksAreCleanAndReadAsZero) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(64));
  const BlockNumber first = take_run(8);
  ASSERT_NE(first, kNoBlock);
  for (BlockNumber b = first; b < first + 8; ++b) EXPECT_EQ(start_using(b), 0u) << "fresh: clean";
  auto* bytes = reinterpret_cast<unsigned char*>(block_address(first));
  bytes[5] = 77;
  give_run(first, 8);
  EXPECT_EQ(discard_idle(1), 0u) << "too young";
  EXPECT_EQ(discard_idle(0), 8 * kBlockSize);
  EXPECT_EQ(returned_bytes(), 8 * kBlockSize);
  EXPECT_EQ(bytes[5], 0);
  const BlockNumber again = take_run(64);
  ASSERT_NE(again, kNoBlock);
  for (BlockNumber b = again; b < again + 64; ++b) EXPECT_EQ(start_using(b), 0u);
  EXPECT_EQ(returned_bytes(), 0u);
}

// The ends of a run say how long it is; nothing else in the table of records is read of it.
TEST(Runs, RecordsOfFreeBlocksMayBeDiscarded) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(256));
  const BlockNumber all = take_run(256);
  ASSERT_EQ(all, 1u);
  for (BlockNumber b = 1; b <= 256; ++b) {
    space.blocks[b].state = BlockState::Small;
    space.blocks[b].slots = 7;
  }
  give_run(1, 100);
  give_run(102, 155);
  discard_stale_records();
  EXPECT_EQ(space.blocks[101].slots, 7) << "in use";
  EXPECT_EQ(space.blocks[50].slots, 0) << "within a free run";
  for (const BlockNumber end : {1u, 100u}) EXPECT_EQ(space.blocks[end].run, 100u);
  for (const BlockNumber end : {102u, 256u}) EXPECT_EQ(space.blocks[end].run, 155u);
  give_run(101, 1);
  EXPECT_EQ(space.blocks[1].run, 256u);
  EXPECT_EQ(take_run(256), 1u);
}

TEST(Runs, DiscardingMayGoInSteps) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(64));
  const BlockNumber first = take_run(9);
  for (BlockNumber b = first; b < first + 9; ++b) start_using(b);
  give_run(first, 9);
  EXPECT_EQ(discard_idle(0, 4 * kBlockSize), 4 * kBlockSize);
  EXPECT_EQ(discard_idle(0, 4 * kBlockSize), 4 * kBlockSize);
  EXPECT_EQ(discard_idle(0, 4 * kBlockSize), kBlockSize);
  EXPECT_EQ(discard_idle(0, 4 * kBlockSize), 0u);
  EXPECT_EQ(returned_bytes(), 9 * kBlockSize);
  use(first, 9);
}

TEST(Runs, StepsGoOnWhereTheLastOneStopped) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(64));
  const BlockNumber first = take_run(20);
  use(first, 20);
  give_run(first, 9);
  DiscardPosition position;
  EXPECT_EQ(discard_idle(0, 4 * kBlockSize, &position), 4 * kBlockSize);
  EXPECT_EQ(position.run, first);
  EXPECT_EQ(position.block, first + 4);
  // What became idle before it is for another time.
  start_using(first);
  EXPECT_EQ(discard_idle(0, 4 * kBlockSize, &position), 4 * kBlockSize);
  EXPECT_EQ(position.block, first + 8);
  give_run(first + 9, 11);
  ASSERT_TRUE(take_run_at(first, 1));
  space.blocks[first].state = BlockState::Small;
  EXPECT_EQ(discard_idle(0, SIZE_MAX, &position), 12 * kBlockSize)
      << "no run begins there any more, so all are looked at";
  give_run(first, 1);
  EXPECT_EQ(discard_idle(0), kBlockSize);
  use(first, 20);
}

// Regression: each step looked for its place from the first run on, which took quadratic time.
TEST(Runs, StepsDoNotPassThroughRunsBeforeThem) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(64));
  const BlockNumber first = take_run(12);
  use(first, 12);
  for (BlockNumber b = first; b < first + 12; b += 2) give_run(b, 1);
  DiscardPosition position;
  ASSERT_EQ(discard_idle(0, 2 * kBlockSize, &position), 2 * kBlockSize);
  // Here it would end that looked from the first run on, and begin anew with one that is idle.
  const BlockNumber before = space.extras[position.run].previous;
  ASSERT_NE(before, kNoBlock);
  const BlockNumber link = space.extras[before].next;
  space.extras[before].next = kNoBlock;
  start_using(before);
  EXPECT_EQ(discard_idle(0, 2 * kBlockSize, &position), 2 * kBlockSize);
  EXPECT_TRUE(space.extras[before].dirty);
  space.extras[before].next = link;
  // It stops where it has found enough: the run that follows leads to itself.
  const BlockNumber last = space.extras[position.run].next;
  ASSERT_NE(last, kNoBlock);
  const BlockNumber last_link = space.extras[last].next;
  space.extras[last].next = last;
  EXPECT_EQ(discard_idle(0, kBlockSize, &position), kBlockSize);
  space.extras[last].next = last_link;
  EXPECT_EQ(discard_idle(0, 2 * kBlockSize, &position), kBlockSize);
  // The first run that was used meanwhile.
  EXPECT_EQ(discard_idle(0), kBlockSize);
  use(1, 64);
}

// With more blocks than there is memory, what was given back makes room for others.
TEST(Runs, NoMoreAreUsedThanThereIsMemoryFor) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(64));
  const BlockNumber first = take_run(40);
  use(first, 40);
  give_run(first, 20);
  most_resident = 40;
  // 20 are in use, 20 have pages, 24 have none.
  const BlockNumber second = take_run(20);
  ASSERT_NE(second, kNoBlock);
  EXPECT_EQ(returned_bytes() >> kBlockShift, 20u);
  use(second, 20);
  EXPECT_EQ(take_run(1), kNoBlock);
  EXPECT_FALSE(take_run_at(second + 20, 1));
  give_run(second, 20);
  EXPECT_NE(take_run(20), kNoBlock);
  use(1, 64);
  most_resident = UINT32_MAX;
}

// Regression: only what a collection returned was noted, not what is returned to make room.
TEST(Runs, ThePeakIsKnownWhoeverReturnsPages) {
  constexpr BlockNumber kMany = 6000;  // more than other tests have
  ASSERT_TRUE(reserve_space(256u << 20));
  ASSERT_TRUE(grow(kMany));
  const BlockNumber first = take_run(40);
  use(first, 40);
  give_run(first, 20);
  most_resident = 40;
  const BlockNumber second = take_run(20);
  ASSERT_NE(second, kNoBlock);
  EXPECT_EQ(resident_bytes(), (kMany - 20) * kBlockSize);
  EXPECT_EQ(peak_resident_bytes(), kMany * kBlockSize);
  use(1, kMany);
  most_resident = UINT32_MAX;
}

TEST(Runs, TheReservationIsTheLimit) {
  ASSERT_TRUE(reserve_space(8u << 20));
  EXPECT_FALSE(grow(space.reserved));
  EXPECT_TRUE(grow(space.reserved - space.committed));
  EXPECT_FALSE(grow(1));
}

}  // namespace

// What sweeps touch, and sweeps beside threads that free objects: what a collection does not stop.
#include "heap/sweep.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "heap/blocks.hpp"
#include "heap/size_class.hpp"

namespace {

using namespace jd::heap;

// Clears the bits of slots 1 and up one by one, as their frees would.
void clear_all_but_first(Block* block) {
  for (unsigned slot = 1; slot < block->slots; ++slot) {
    __atomic_fetch_and(&block->allocated[slot / 64], ~(std::uint64_t{1} << (slot % 64)),
                       __ATOMIC_RELEASE);
  }
}

void set_bits(std::uint64_t* words, const Block& block) {
  for (unsigned slot = 0; slot < block.slots; ++slot) {
    words[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }
}

// Without sleeping, so that both threads are at work at the same time, if they have a processor
// each.
template <class Condition>
void spin_until(Condition condition) {
  for (unsigned tries = 1; !condition(); ++tries) {
    if (tries % 100000 == 0) std::this_thread::yield();
  }
}

// heap.req.untouched: who touched such a block would fault.
TEST(Sweep, TouchesNoBlockThatHasNoMark) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(16));
  std::vector<BlockNumber> blocks;
  for (const KindNumber kind : {kAtomic, kNormal}) {
    for (const std::size_t size : {16, 400}) {
      const BlockNumber number = make_small_block(kind, class_for(size));
      ASSERT_NE(number, kNoBlock);
      set_bits(space.blocks[number].allocated, space.blocks[number]);
      blocks.push_back(number);
    }
    BlockNumber dirty = 0;
    Block* const large = make_large(kind, 3 * kBlockSize, 1, &dirty);
    ASSERT_NE(large, nullptr);
    blocks.push_back(number_of(large));
  }
  char* const low = reinterpret_cast<char*>(block_address(1));
  constexpr std::size_t kSize = std::size_t{16} * kBlockSize;
  ASSERT_EQ(mprotect(low, kSize, PROT_NONE), 0);
  start_marks();
  const SweepCount count = sweep();
  EXPECT_EQ(count.live_objects, 0u);
  for (const BlockNumber number : blocks) {
    EXPECT_EQ(space.blocks[number].state, BlockState::Free) << number;
  }
  ASSERT_EQ(mprotect(low, kSize, PROT_READ | PROT_WRITE), 0);
}

TEST(Sweep, BesideDisclaimingAFreeIsForGood) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(16));
  const unsigned kind = add_kind(0, true, true);
  ASSERT_LT(kind, kMaxKinds);
  kinds[kind].disclaim = [](void*) { return 1; };
  const BlockNumber number = make_small_block(static_cast<KindNumber>(kind), class_for(16));
  ASSERT_NE(number, kNoBlock);
  Block& block = space.blocks[number];
  // A round begins with an even number; the thread answers with the next.
  std::atomic<unsigned> round{1};
  std::atomic<bool> finish{false};
  std::thread freer([&] {
    for (unsigned mine = 2;; mine += 2) {
      spin_until([&] { return round == mine || finish; });
      if (finish) return;
      clear_all_but_first(&block);
      round = mine + 1;
    }
  });
  unsigned lost = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (unsigned next = 2; std::chrono::steady_clock::now() < end; next += 2) {
    set_bits(block.allocated, block);
    // All are reached but the first, about which the disclaim function is asked.
    set_bits(block.marks, block);
    Place{&block, 0}.clear_mark();
    SweepCount count = sweep();
    EXPECT_EQ(count.live_objects, 0u);
    ASSERT_EQ(count.deferred_bytes, std::size_t{block.slots - 1u} * block.slot_size);
    round = next;
    // At another moment of the freeing each time.
    for (unsigned i = next % 997; i != 0; --i) asm volatile("" : : : "memory");
    disclaim_deferred(&count);
    spin_until([&] { return round != next; });
    unsigned left = 0;
    for (unsigned w = 0; w < block.bit_words(); ++w) {
      left += static_cast<unsigned>(__builtin_popcountll(block.allocated[w]));
    }
    lost += left - 1;
  }
  finish = true;
  freer.join();
  EXPECT_EQ(lost, 0u);
}

}  // namespace

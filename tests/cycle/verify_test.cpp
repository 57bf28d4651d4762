// The verifier must find what it says it looks for: each case breaks one structure. Of
// heap.req.bits, heap.req.runs and heap.req.zeroed it is the check, in every test of a debug build
// and under most stress settings.
#include "cycle/verify.hpp"

#include <gtest/gtest.h>

#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/spans.hpp"
#include "heap/sweep.hpp"

namespace {

using namespace jd::heap;
using jd::cycle::verify_structures;
using jd::cycle::verify_swept;

class Verifier : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    ASSERT_TRUE(reserve_space(64u << 20));
    ASSERT_TRUE(grow(100));
    // Free runs of 1, 2 and 92 blocks, and three small blocks with an object each, two of a list.
    for (BlockNumber* block : {&first_, &second_, &third_}) {
      *block = make_small_block(kNormal, class_for(block == &third_ ? 64 : 32));
      ASSERT_NE(*block, kNoBlock);
      space.blocks[*block].allocated[0] = 1;
      --space.extras[*block].free_slots;
      list_block(*block);
    }
    BlockNumber dirty = 0;
    run_ = take_run(1);
    ASSERT_NE(make_large(kNormal, kBlockSize, 1, &dirty), nullptr);
    const BlockNumber longer = take_run(2);
    ASSERT_NE(make_large(kNormal, kBlockSize, 1, &dirty), nullptr);
    give_run(run_, 1);
    give_run(longer, 2);
    verify_structures();
  }

  BlockNumber first_ = kNoBlock;
  BlockNumber second_ = kNoBlock;
  BlockNumber third_ = kNoBlock;
  BlockNumber run_ = kNoBlock;
};

using VerifierDeathTest = Verifier;

TEST_F(VerifierDeathTest, FindsARunInNoBin) {
  forget_runs();
  EXPECT_DEATH(verify_structures(), "number of free blocks is wrong");
}

TEST_F(VerifierDeathTest, FindsBrokenLinksOfABin) {
  space.extras[run_].previous = second_;
  EXPECT_DEATH(verify_structures(), "links disagree");
}

TEST_F(VerifierDeathTest, FindsAListThatGoesInACircle) {
  space.extras[first_].next = second_;
  space.extras[second_].previous = first_;
  space.extras[second_].next = first_;
  space.extras[first_].previous = kNoBlock;
  EXPECT_DEATH(verify_structures(), "heap verifier: a list");
}

TEST_F(VerifierDeathTest, FindsABlockOfAnotherSort) {
  space.blocks[third_].kind = kAtomic;
  EXPECT_DEATH(verify_structures(), "a list holds a block of another sort");
}

TEST_F(VerifierDeathTest, FindsAWordInAClearedSlot) {
  space.extras[first_].zeroed = true;
  verify_structures();
  *reinterpret_cast<Word*>(block_address(first_) + 32) = 1;
  EXPECT_DEATH(verify_structures(), "a slot that is said to be zero is not");
}

TEST_F(VerifierDeathTest, FindsABlockOnNoList) {
  forget_lists();
  EXPECT_DEATH(verify_structures(), "a listed block is on no list");
}

TEST_F(VerifierDeathTest, FindsAnOwnedBlockOnAList) {
  space.extras[second_].owner = this;
  EXPECT_DEATH(verify_structures(), "an owned block is on a list");
}

TEST_F(VerifierDeathTest, FindsBitsThatNoMarkSet) {
  start_marks();
  Place{&space.blocks[first_], 0}.set_mark();
  sweep();
  verify_structures();
  verify_swept();
  space.blocks[first_].allocated[0] |= 4;
  EXPECT_DEATH(verify_swept(), "allocated is not what was marked");
}

TEST_F(VerifierDeathTest, FindsWhatIsWrongWithASpan) {
  Block* const span = make_span(kNormal, 0);
  ASSERT_NE(span, nullptr);
  const BlockNumber number = number_of(span);
  verify_structures();
  const auto expect_broken = [](const char* how, auto spoil) {
    EXPECT_DEATH(
        {
          spoil();
          verify_structures();
        },
        how);
  };
  expect_broken("does not fit its class", [&] { span->slot_size += kGranule; });
  expect_broken("does not fit its class", [&] { --span->magic; });
  expect_broken("does not lead to its head", [&] { space.blocks[number + 2].run = 1; });
  expect_broken("beyond the last slot", [&] { span->allocated[0] |= 1 << kSpans[0].slots(); });
  expect_broken("count of free slots", [&] { --space.extras[number].free_slots; });
  expect_broken("slot is said to be zero", [&] {
    span->allocated[0] |= 1;
    --space.extras[number].free_slots;
  });
  expect_broken("said to be zero is not", [&] {
    *reinterpret_cast<Word*>(block_address(number) + 3 * kSpans[0].slot_size) = 1;
  });
}

}  // namespace

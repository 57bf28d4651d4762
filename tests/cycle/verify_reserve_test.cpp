// As verify_test.cpp, of what a thread has in reserve. With a heap that the library has made.
#include <gtest/gtest.h>

#include "alloc/collecting.hpp"
#include "cycle/verify.hpp"
#include "gc/gc.h"
#include "heap/space.hpp"

namespace {

using namespace jd::heap;
using jd::cycle::verify_structures;

class VerifyReserveDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    GC_disable();
    for (int i = 0; i < 100000; ++i) ASSERT_NE(GC_malloc(32), nullptr);
    first = kNoBlock;
    jd::alloc::visit_reserves([](const jd::alloc::Hole*, KindNumber, BlockNumber number) {
      if (first == kNoBlock) first = number;
    });
    ASSERT_NE(first, kNoBlock) << "nothing is in reserve";
    ASSERT_NE(space.extras[first].next, kNoBlock) << "only one block is";
    verify_structures();
  }

  static BlockNumber first;
};
BlockNumber VerifyReserveDeathTest::first = kNoBlock;

TEST_F(VerifyReserveDeathTest, FindsABlockThatIsAnothers) {
  space.extras[first].owner = nullptr;
  EXPECT_DEATH(verify_structures(), "a reserve holds another's block");
}

TEST_F(VerifyReserveDeathTest, FindsABlockOfAnotherSort) {
  space.blocks[first].kind = kAtomic;
  EXPECT_DEATH(verify_structures(), "a reserve holds a block of another sort");
}

TEST_F(VerifyReserveDeathTest, FindsAReserveThatIsCutShort) {
  space.extras[first].next = kNoBlock;
  EXPECT_DEATH(verify_structures(), "other blocks in reserve than it has counted");
}

}  // namespace

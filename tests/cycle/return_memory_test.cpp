#include "cycle/return_memory.hpp"

#include <gtest/gtest.h>

#include "heap/resident.hpp"
#include "heap/runs.hpp"

namespace {

using namespace jd::heap;
using jd::cycle::return_free_memory;
using jd::cycle::return_free_memory_later;

// Regression: another thread's collection came before the thread that wanted all memory returned
// had the lock again, and then only old blocks were.
TEST(ReturnMemory, ACollectionDoesNotTakeBackWhatWasAskedFor) {
  ASSERT_TRUE(reserve_space(64u << 20));
  ASSERT_TRUE(grow(8));
  const BlockNumber first = take_run(8);
  ASSERT_NE(first, kNoBlock);
  start_using(first, 8);
  give_run(first, 8);
  return_free_memory_later(0);
  return_free_memory_later(7);
  return_free_memory();
  EXPECT_EQ(returned_bytes(), 8 * kBlockSize);
  EXPECT_FALSE(jd::cycle::memory_waits_to_be_returned());
}

}  // namespace

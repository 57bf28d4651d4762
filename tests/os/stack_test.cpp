// What a stack counts for, where a stack begins.
#include <gtest/gtest.h>

#include <cstddef>

#include "os/context.hpp"
#include "os/thread.hpp"

extern "C" void* __libc_stack_end;

namespace jd::os {
namespace {

std::size_t distance(const void* low, const void* high) {
  return static_cast<std::size_t>(static_cast<const char*>(high) - static_cast<const char*>(low));
}

// The kernel puts the first frame anywhere in a page: were the page's rest counted, two runs of a
// program would be collected at different places.
TEST(Stack, TheMainOneCountsUpToItsFirstFrame) {
  const char* here = static_cast<const char*>(frame_address());
  ASSERT_LT(static_cast<void*>(__libc_stack_end), main_stack_high());
  EXPECT_EQ(stack_bytes(here, main_stack_high()), distance(here, __libc_stack_end));
}

TEST(Stack, AnotherPartOfItCountsWhole) {
  const char* here = static_cast<const char*>(frame_address());
  EXPECT_EQ(stack_bytes(here, here + 128), 128U);
  const char* above = static_cast<const char*>(__libc_stack_end);
  EXPECT_EQ(stack_bytes(above, main_stack_high()), distance(above, main_stack_high()));
}

TEST(Stack, OtherStacksCountWhole) {
  alignas(16) static char stack[4096];
  EXPECT_EQ(stack_bytes(stack + 96, stack + sizeof stack), sizeof stack - 96);
}

}  // namespace
}  // namespace jd::os

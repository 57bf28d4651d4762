// What a stack counts for, where a stack begins.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <thread>

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

// Regression: a limit that the program raised made the main stack of what is mapped below it.
TEST(Stack, ARaisedLimitMakesTheMainOneNoLarger) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &before), 0);
  rlimit raised = before;
  raised.rlim_cur = std::size_t{1} << 30;
  if (setrlimit(RLIMIT_STACK, &raised) != 0) GTEST_SKIP() << "the limit can't be raised";
  const Extent stack = own_stack();
  EXPECT_EQ(setrlimit(RLIMIT_STACK, &before), 0);
  EXPECT_EQ(stack.high, main_stack_high());
  EXPECT_LE(distance(stack.low, stack.high), std::size_t{64} << 20);
}

// It is looked up once for a thread; the child of a fork, whose only thread counts as its main one
// from then on, is still on it.
TEST(Stack, AThreadsIsItsOwnBeforeAndAfterAFork) {
  const Extent of_main = own_stack();
  std::thread([&of_main] {
    int here = 0;
    const Extent first = own_stack();
    EXPECT_TRUE(first.contains(&here));
    EXPECT_NE(first.high, of_main.high);
    EXPECT_EQ(own_stack().high, first.high);
    const pid_t child = fork();
    if (child == 0) _exit(own_stack().high == first.high ? 0 : 1);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }).join();
  EXPECT_EQ(own_stack().high, of_main.high);
}

}  // namespace
}  // namespace jd::os

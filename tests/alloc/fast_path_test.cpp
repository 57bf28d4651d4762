// alloc.req.fast as a number: how many instructions a GC_malloc takes that finds room in its hole.
// The parent single-steps a child through a thousand calls and counts what is executed inside the
// library; the commonest count is the fast path's.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "gc/gc.h"

namespace {

#if defined(__x86_64__)

constexpr int kCalls = 1000;

// Where a call begins and ends for the parent: the child stores here around each.
volatile int in_call = 0;

[[gnu::noinline]] void call_many(void* (*allocate)(size_t), size_t bytes) {
  for (int i = 0; i < kCalls; ++i) {
    in_call = 1;
    void* p = allocate(bytes);
    asm volatile("" : : "r"(p) : "memory");
    in_call = 0;
  }
}

// Executed instructions between the two stores, by how often that number occurred.
std::map<long, int> count_instructions(void* (*allocate)(size_t), size_t bytes) {
  std::map<long, int> counts;
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    allocate(bytes);  // the first call makes the hole
    raise(SIGSTOP);
    call_many(allocate, bytes);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  long steps = 0;
  bool inside = false;
  while (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 &&
         waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const bool now = ptrace(PTRACE_PEEKDATA, child, &in_call, nullptr) % 2 != 0;
    if (now) {
      ++steps;
    } else if (inside) {
      ++counts[steps];
      steps = 0;
    }
    inside = now;
  }
  EXPECT_TRUE(WIFEXITED(status));
  return counts;
}

long commonest(const std::map<long, int>& counts) {
  long best = -1;
  int most = 0;
  for (const auto& [steps, times] : counts) {
    if (times > most) best = steps;
    if (times > most) most = times;
  }
  EXPECT_GT(most, kCalls * 8 / 10) << "no path was taken by nearly all calls";
  return best;
}

// What surrounds the call itself in call_many: loading the argument, the calls through a pointer,
// the return, the store that ends it.
long overhead() {
  return commonest(count_instructions([](size_t) -> void* { return nullptr; }, 32)) - 2;
}

TEST(FastPath, TakesFewInstructions) {
  GC_INIT();
  const long around = overhead();
  struct {
    const char* name;
    void* (*function)(size_t);
    size_t bytes;
  } const cases[] = {{"GC_malloc(16)", GC_malloc, 16},
                     {"GC_malloc(40)", GC_malloc, 40},
                     {"GC_malloc_atomic(16)", GC_malloc_atomic, 16}};
  for (const auto& c : cases) {
    const long steps = commonest(count_instructions(c.function, c.bytes)) - around;
    std::printf("%s: %ld instructions\n", c.name, steps);
    RecordProperty(c.name, static_cast<int>(steps));
    // Size check, class lookup, cache, cursor, limit, store, return: see docs/design/alloc.md.
    EXPECT_LE(steps, 18) << c.name;
    EXPECT_GE(steps, 6) << c.name << ": too few to be true; is the count right?";
  }
}

#else
TEST(FastPath, TakesFewInstructions) { GTEST_SKIP() << "counts x86-64 instructions"; }
#endif

}  // namespace

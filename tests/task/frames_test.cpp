// Forkers with frames of all kinds (frames.hpp), here and in code that is loaded while the workers
// run. Built with several levels of optimisation.
#include "frames.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#if defined(JD_TASK_FRAMES_ELSEWHERE)
namespace frames {
long elsewhere(long n, int linger);
}
#endif

namespace {

#if defined(JD_TASK_FRAMES_ELSEWHERE)
TEST(Frames, OfAnotherFileAreTheSame) {
  jd_task_start(3);
  for (int round = 0; round < 30; ++round) {
    frames::begun = 0;
    frames::polling = round % 2 == 1;
    const long n = 1000 + round;
    ASSERT_EQ(jd::run([&] { return frames::elsewhere(n, round % 3 * 20000); }), n * 5);
  }
  EXPECT_EQ(frames::given_up.load(), 0);
}
#endif

TEST(Frames, AreTheSameAfterASteal) {
  jd_task_start(3);
  EXPECT_EQ(frames::run_cases(20), "");
}

// A function with a frame that is aligned anew and of no fixed size is described wrongly in its
// last instructions, by GCC: there a thief must not look. So most time is spent in such last
// instructions.
[[gnu::noinline]] void touch(void* p) { asm volatile("" : : "r"(p) : "memory"); }
[[gnu::noinline]] int aligned_leaf(unsigned length) {
  alignas(64) double values[8];
  touch(values);
  touch(__builtin_alloca(length));
#if defined(__x86_64__)
  asm volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
#endif
  return 1;
}
[[gnu::noinline]] int aligned_tree(unsigned depth) {
  int sum = 0;
  if (depth == 0) {
    for (int i = 0; i < 2000; ++i) sum += aligned_leaf(16);
    return sum / 2000;
  }
  alignas(64) int values[16] = {static_cast<int>(depth)};
  touch(values);
  touch(__builtin_alloca(depth + 16));
  const auto [a, b] = jd::par([depth] { return aligned_tree(depth - 1); },
                              [depth] { return aligned_tree(depth - 1); });
  return a + b + values[0] - static_cast<int>(depth);
}

TEST(Frames, ThatAreAlignedAnewMayBeInterruptedAnywhere) {
  jd_task_start(4);
  for (int round = 0; round < 200; ++round) {
    ASSERT_EQ(jd::run([] { return aligned_tree(7); }), 128);
  }
}

TEST(Frames, OfLoadedCodeAreTheSame) {
  jd_task_start(3);
  for (int i = 0; i < 3; ++i) {
    void* plugin = dlopen(JD_TASK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << dlerror();
    auto* run = reinterpret_cast<const char* (*)()>(dlsym(plugin, "run_frames"));
    ASSERT_NE(run, nullptr);
    EXPECT_STREQ(run(), "");
    ASSERT_EQ(dlclose(plugin), 0);
  }
}

}  // namespace

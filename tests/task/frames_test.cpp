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

// Forkers with frames of all kinds (frames.hpp), here and in code that is loaded while the workers
// run. Built with several levels of optimisation.
#include "frames.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {

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

// main() of the tests that run once a mode: where tasks do not run in the mode that is asked for,
// nothing passes.
#include <gtest/gtest.h>

#include "asked_mode.h"

namespace {

class EachInTheModeAskedFor : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    const char* const why = jd_why_deque_alone();
    if (why != nullptr) GTEST_SKIP() << why;
    FAIL() << "tasks do not run in the mode " << std::getenv("JACKDAW_TASK_MODE");
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!jd_mode_is_as_asked()) {
    testing::UnitTest::GetInstance()->listeners().Append(new EachInTheModeAskedFor);
  }
  return RUN_ALL_TESTS();
}

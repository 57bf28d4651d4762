// A test that explores interleavings, each time from the same settings.
#pragma once

#include <gtest/gtest.h>

#include "interleaving.hpp"

namespace jd::test {

class InterleavedTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(JD_SANITIZE_THREAD)
    GTEST_SKIP() << "ThreadSanitizer does not know coroutines";
#endif
    Scheduled::most_looks = 0;
    Scheduled::time_passes = 0;
    Scheduled::after_wait = nullptr;
  }
};

}  // namespace jd::test

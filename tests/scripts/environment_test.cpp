// The whole environment that a test asks for reaches it: ctest's own helper would pass the first
// variable of the list and lose the others, and with them whatever a stress run is about.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(not set)" : value;
}

TEST(Environment, EveryVariableArrives) {
  EXPECT_EQ(variable("JD_TEST_FIRST"), "1");
  EXPECT_EQ(variable("JD_TEST_SECOND"), "two words");
  EXPECT_NE(variable("ASAN_OPTIONS"), "(not set)");
  EXPECT_NE(variable("TSAN_OPTIONS"), "(not set)");
}

}  // namespace

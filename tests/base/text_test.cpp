#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace {

using jd::base::Hex;
using jd::base::Text;

TEST(Text, Numbers) {
  Text text;
  text.add(0, ' ', -7, ' ', UINT64_MAX, ' ', INT64_MIN, ' ');
  text.add(Hex{0}, ' ', Hex{0xdeadbeef});
  EXPECT_STREQ(text.c_str(), "0 -7 18446744073709551615 -9223372036854775808 0x0 0xdeadbeef");
}

TEST(Text, NullIsSaid) {
  Text text;
  text.add(static_cast<const char*>(nullptr));
  EXPECT_STREQ(text.c_str(), "(null)");
}

TEST(Text, WhatDoesNotFitIsCutVisibly) {
  Text text;
  for (int i = 0; i < 5000; ++i) text.add('x');
  const std::string line = text.c_str();
  EXPECT_LT(line.size(), 1100u);
  EXPECT_EQ(line.substr(line.size() - 4), "x...");
  text.end_line();
  EXPECT_EQ(text.c_str(), line + "\n");
}

}  // namespace

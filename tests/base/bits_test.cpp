#include "base/bits.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

namespace {

using namespace jd::base;

TEST(Bits, CountOnesAgreesWithTheCompiler) {
  std::mt19937_64 random(20260101);
  EXPECT_EQ(count_ones(0), 0u);
  EXPECT_EQ(count_ones(~std::uint64_t{0}), 64u);
  for (int i = 0; i < 10000; ++i) {
    // Few bits are set.
    const std::uint64_t other = random();
    const std::uint64_t n = random() & other;
    EXPECT_EQ(count_ones(n), static_cast<unsigned>(__builtin_popcountll(n)));
  }
}

// Regression: a difference in one word's upper bits was undone by one in the next word's, as the
// operands of unwind tables are that differ in two frame sizes.
TEST(Bits, DigestsDifferWhereBytesDo) {
  for (const unsigned byte : {0u, 3u, 6u, 7u}) {
    std::set<std::uint64_t> digests;
    for (std::uint64_t a = 0; a < 64; ++a) {
      for (std::uint64_t b = 0; b < 64; ++b) {
        digests.insert(add_to_digest(add_to_digest(0, a << 8 * byte), b << 8 * byte));
      }
    }
    EXPECT_EQ(digests.size(), 64u * 64u) << byte;
  }
}

TEST(Bits, Alignment) {
  EXPECT_EQ(align_up(0, 16), 0u);
  EXPECT_EQ(align_up(1, 16), 16u);
  EXPECT_EQ(align_down(31, 16), 16u);
  EXPECT_EQ(div_up(SIZE_MAX, 2), SIZE_MAX / 2 + 1);
}

TEST(Bits, CheckedArithmetic) {
  std::size_t result = 0;
  EXPECT_FALSE(checked_add(SIZE_MAX, 1, &result));
  EXPECT_FALSE(checked_multiply(SIZE_MAX / 2, 3, &result));
  EXPECT_TRUE(checked_multiply(SIZE_MAX / 4, 4, &result));
}

}  // namespace

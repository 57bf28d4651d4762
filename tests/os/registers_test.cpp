// Vector registers are cleared, those that few programs use too. (That a collection does it:
// tests/api/stacks_test.cpp.)
#include <gtest/gtest.h>

#include <cstdint>

#include "os/context.hpp"

#if defined(__x86_64__)

namespace jd::os {
namespace {

struct alignas(64) Vector {
  std::uint64_t words[8];
};

constexpr Vector kFull = {{1, 2, 3, 4, 5, 6, 7, 8}};

void expect_zero(const Vector& vector, int words) {
  for (int i = 0; i < words; ++i) EXPECT_EQ(vector.words[i], 0U) << "word " << i;
}

TEST(VectorRegisters, UpperHalvesAreCleared) {
  if (!__builtin_cpu_supports("avx")) GTEST_SKIP() << "this processor has no AVX";
  Vector found = kFull;
  asm volatile("vmovdqu %0, %%ymm5" : : "m"(kFull) : "xmm5");
  clear_vector_registers();
  asm volatile("vmovdqu %%ymm5, %0" : "=m"(found));
  expect_zero(found, 4);
}

TEST(VectorRegisters, ThoseThatOnlyNewInstructionsNameAreCleared) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this processor has no AVX-512";
  Vector first = kFull;
  Vector last = kFull;
  asm volatile("vmovdqu64 %0, %%zmm16\n\tvmovdqu64 %0, %%zmm31" : : "m"(kFull));
  clear_vector_registers();
  asm volatile("vmovdqu64 %%zmm16, %0\n\tvmovdqu64 %%zmm31, %1" : "=m"(first), "=m"(last));
  expect_zero(first, 8);
  expect_zero(last, 8);
}

}  // namespace
}  // namespace jd::os

#endif

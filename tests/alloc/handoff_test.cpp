// Regression: a large object was collected between its making and the end of the allocation,
// because only its block's record was in a register when the lock was given to a waiting collector
// (Nim's threads lost a sequence that had just grown beyond half a block).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#define GC_THREADS
#include "gc/gc.h"

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 4000;

// Allocates large objects while the others collect, and holds each only in a local variable.
void* allocate_and_check(void* argument) {
  const auto id = reinterpret_cast<std::uintptr_t>(argument);
  std::uintptr_t damaged = 0;
  std::uintptr_t* previous = nullptr;
  constexpr std::size_t kWords = 1100;
  for (std::uintptr_t round = 0; round < kRounds; ++round) {
    auto* object = static_cast<std::uintptr_t*>(GC_MALLOC(kWords * sizeof(std::uintptr_t)));
    for (std::size_t i = 0; i < kWords; ++i) damaged += object[i] != 0;
    for (std::size_t i = 0; i < kWords; ++i) object[i] = id * kRounds + round;
    if (previous != nullptr) {
      for (std::size_t i = 0; i < kWords; ++i) damaged += previous[i] != id * kRounds + round - 1;
    }
    previous = object;
    for (int small = 0; small < 20; ++small) GC_MALLOC(48);
  }
  return reinterpret_cast<void*>(damaged);
}

TEST(Handoff, LargeObjectsSurviveACollectionThatWaitsForTheLock) {
  GC_INIT();
  pthread_t threads[kThreads];
  for (std::uintptr_t i = 0; i < kThreads; ++i) {
    ASSERT_EQ(
        pthread_create(&threads[i], nullptr, allocate_and_check, reinterpret_cast<void*>(i + 1)),
        0);
  }
  for (const pthread_t thread : threads) {
    void* damaged = nullptr;
    ASSERT_EQ(pthread_join(thread, &damaged), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(damaged), 0u) << "words of an object were lost";
  }
  EXPECT_GT(GC_get_gc_no(), 10u) << "too few collections to have tested anything";
}

}  // namespace

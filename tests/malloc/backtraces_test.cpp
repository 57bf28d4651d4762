// The table of backtraces, which threads read while it grows.
#include "malloc/backtraces.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "heap/space.hpp"

namespace {

using namespace jd;

constexpr std::size_t kBacktraces = 60000;
constexpr std::size_t kFrames = 3;

// The i-th backtrace: addresses in no library.
serve::Backtrace* find_or_add(std::size_t i) {
  void* addresses[kFrames];
  for (std::size_t k = 0; k < kFrames; ++k) {
    addresses[k] = base::as_pointer(4096 + (i * kFrames + k) * 16);
  }
  return serve::find_or_add_backtrace(addresses, kFrames);
}

TEST(Backtraces, AreFoundAgainByEveryThreadWhileTheTableGrows) {
  constexpr std::size_t kThreads = 4;
  std::vector<std::vector<serve::Backtrace*>> seen(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&found = seen[t]] {
      for (std::size_t i = 0; i < kBacktraces; ++i) found.push_back(find_or_add(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 1; t < kThreads; ++t) EXPECT_EQ(seen[t], seen[0]);
  os::LockGuard guard(heap::heap_lock);
  EXPECT_EQ(serve::backtrace_count(), kBacktraces) << "each is there once";
  // So that a search looks at few others, however many there are.
  EXPECT_GE(serve::backtrace_places(), 2 * kBacktraces);
  for (std::size_t i = 0; i < kBacktraces; ++i) {
    ASSERT_NE(seen[0][i], nullptr);
    EXPECT_EQ(serve::numbered_backtrace(seen[0][i]->number), seen[0][i]);
  }
}

}  // namespace

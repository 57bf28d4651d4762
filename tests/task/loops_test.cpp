// Loops, reductions and sorts: what their pieces do, where they run, and every shape of input.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <jackdaw/task.hpp>

namespace {

// ---- Cancelling ----

// A loop that can be cancelled looks before each index, also within a piece.
TEST(Loops, APieceEndsAtTheIndexThatCancelsIt) {
  jd::cancellation cancel;
  int calls = 0;
  jd::parallel_for(0, 1000,
                   [&](int i) {
                     ++calls;
                     if (i == 9) cancel.cancel();
                   },
                   {.grain = 1000, .cancel = &cancel});
  EXPECT_EQ(calls, 10);
}

TEST(Loops, APieceOfAReductionEndsAtTheIndexThatCancelsIt) {
  jd::cancellation cancel;
  const int reached = jd::parallel_reduce(0, 1000, 0,
                                          [&](int i) {
                                            if (i == 9) cancel.cancel();
                                            return 1;
                                          },
                                          std::plus<>(), {.grain = 1000, .cancel = &cancel});
  EXPECT_EQ(reached, 10);
}

}  // namespace

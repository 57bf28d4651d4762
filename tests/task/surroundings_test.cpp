// What tasks make of a tool that they run under, and of the environment. Where they can have no
// stacks there is the deque, and nothing else differs: task.req.fall-back.
#include <gtest/gtest.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "../support/child.hpp"
#include "asked_mode.h"

namespace {

using jd::test::ChildResult;
using jd::test::kUnset;

long fib(long n) {
  if (n < 2) return n;
  auto [x, y] = jd::par([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
  return x + y;
}

JD_CHILD(print_mode_and_results) {
  std::fprintf(stderr, "%d\n", static_cast<int>(jd_task_get_mode()));
  std::printf("%ld\n", jd::run([] { return fib(12); }));
  try {
    jd::run([] { jd::par([] { throw std::runtime_error("thrown"); }, [] { fib(5); }); });
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
constexpr const char* kResults = "144\nthrown\n";

TEST(FallBack, UnderValgrindThereIsTheDeque) {
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD) || \
    defined(JD_SANITIZE_UNDEFINED) || defined(JD_TEST_EMULATED)
  GTEST_SKIP() << "valgrind can't run this build";
#endif
  constexpr const char* kValgrind = "/usr/bin/valgrind";
  if (access(kValgrind, X_OK) != 0) GTEST_SKIP() << kValgrind << " is not installed";
  char self[4096] = "";
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  for (const char* asked : {kUnset, "stop", "barrier"}) {
    const ChildResult r = jd::test::run_program(
        {kValgrind, "-q", "--tool=none", self},
        {{"JD_TEST_CHILD", "print_mode_and_results"}, {"JACKDAW_TASK_MODE", asked}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(r.err, std::to_string(JD_TASK_DEQUE) + "\n");
    EXPECT_EQ(r.out, kResults);
  }
}

TEST(FallBack, WithNothingInTheWayThereIsTheBarrier) {
  if (const char* why = jd_why_deque_alone()) GTEST_SKIP() << why;
  const ChildResult r =
      jd::test::run_child("print_mode_and_results", {{"JACKDAW_TASK_MODE", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, std::to_string(JD_TASK_BARRIER) + "\n");
  EXPECT_EQ(r.out, kResults);
}

JD_CHILD(print_workers) {
  const unsigned started = jd_task_start(0);
  std::printf("%u %u\n", started, jd_task_workers());
  return jd::run([] { return fib(12); }) == 144 ? 0 : 1;
}

TEST(Workers, AreAsManyAsTheEnvironmentSays) {
  for (const char* workers : {"1", "3", "7"}) {
    const ChildResult r = jd::test::run_child("print_workers", {{"JACKDAW_WORKERS", workers}});
    EXPECT_TRUE(r.ok()) << r;
    EXPECT_EQ(r.err, "");
    EXPECT_EQ(r.out, std::string(workers) + " " + workers + "\n");
  }
  const ChildResult none = jd::test::run_child("print_workers", {{"JACKDAW_WORKERS", "0"}});
  EXPECT_EQ(jd::test::lines_with(none.err, "JACKDAW_WORKERS"), 1u) << none;
  EXPECT_EQ(none.out, "1 1\n") << none;
}

}  // namespace

int main(int argc, char** argv) {
  const int child_status = jd::test::run_as_child();
  if (child_status >= 0) return child_status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// mark.req.few, mark.req.fetched: how many instructions the marker takes for an object, and how
// many of them fetch ahead. The parent single-steps a child through a collection; what one takes
// for so many objects more is theirs.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "gc/gc.h"

namespace {

#if defined(__x86_64__)

struct Node {
  Node* left;
  Node* right;
  long data[2];
};

Node* make_tree(int depth) {
  auto* node = static_cast<Node*>(GC_MALLOC(sizeof(Node)));
  if (depth != 0) {
    node->left = make_tree(depth - 1);
    node->right = make_tree(depth - 1);
  }
  return node;
}

Node* make_list(int length) {
  Node* list = nullptr;
  for (int i = 0; i < length; ++i) {
    auto* node = static_cast<Node*>(GC_MALLOC(sizeof(Node)));
    node->left = list;
    list = node;
  }
  return list;
}

Node* live;

// Is the instruction at which the child stands a prefetch? They begin with 0f 18 or 0f 0d, behind a
// prefix where the address is in one of the registers from r8 on.
bool is_prefetch(pid_t child) {
  user_regs_struct registers;
  ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  const long code = ptrace(PTRACE_PEEKTEXT, child, registers.rip, nullptr);
  unsigned bytes = static_cast<unsigned>(code) & 0xffffffu;
  if ((bytes & 0xf0u) == 0x40u) bytes >>= 8;
  return (bytes & 0xffffu) == 0x180fu || (bytes & 0xffffu) == 0x0d0fu;
}

// How many instructions a child takes for a collection; or how many of a sort.
long steps_of_a_collection(bool (*counts)(pid_t child) = nullptr) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    GC_gcollect();
    raise(SIGSTOP);
    GC_gcollect();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  long steps = 0;
  while (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0 &&
         waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    steps += counts == nullptr || counts(child);
  }
  EXPECT_TRUE(WIFEXITED(status));
  return steps;
}

void start() {
  GC_set_no_dls(1);
  GC_INIT();
  GC_clear_roots();
  GC_add_roots(&live, &live + 1);
}

// Of `objects` by which the second of two collections had more. Sweeping is by blocks of hundreds
// of them: it hardly counts. The bounds are those of docs/design/mark.md, "mark.req.few", and what
// would be a wrong count.
void expect_few(long steps, long objects, double most) {
  const double each = static_cast<double>(steps) / static_cast<double>(objects);
  std::printf("%.1f instructions an object\n", each);
  testing::Test::RecordProperty("instructions", std::to_string(each));
  EXPECT_LE(each, most);
  EXPECT_GE(each, 40);
}

TEST(Instructions, OfATreesNodeAreFew) {
  start();
  constexpr int kDepth = 8;
  live = make_tree(0);
  live->left = make_tree(kDepth);
  const long before = steps_of_a_collection();
  live->right = make_tree(kDepth);
  expect_few(steps_of_a_collection() - before, (2L << kDepth) - 1, 140);
}

TEST(Instructions, OfAListsNodeAreFew) {
  start();
  live = make_list(300);
  const long before = steps_of_a_collection();
  live = make_list(800);
  expect_few(steps_of_a_collection() - before, 500, 150);
}

// Each strategy fetches what it says, and no compiler takes that out (one did: a function that does
// nothing but prefetch may count as one that does nothing).
class Prefetches : public testing::TestWithParam<std::pair<const char*, double>> {};
INSTANTIATE_TEST_SUITE_P(By, Prefetches,
                         testing::Values(std::pair{"none", 0.0}, std::pair{"grey", 0.99},
                                         std::pair{"on-grey", 1.0}, std::pair{"ring", 1.25}),
                         [](const auto& strategy) {
                           const std::string name = strategy.param.first;
                           return name == "on-grey" ? "OnGrey" : name;
                         });

TEST_P(Prefetches, OfATreesNode) {
  const auto [strategy, least] = GetParam();
  setenv("JACKDAW_MARK_STRATEGY", strategy, 1);
  start();
  constexpr int kDepth = 7;
  live = make_tree(0);
  live->left = make_tree(kDepth);
  const long before = steps_of_a_collection(is_prefetch);
  live->right = make_tree(kDepth);
  const double each = static_cast<double>(steps_of_a_collection(is_prefetch) - before) /
                      static_cast<double>((2L << kDepth) - 1);
  std::printf("%.2f prefetches an object\n", each);
  // With the rings, an object's record and its contents; but those of what waits last are not
  // fetched.
  EXPECT_GE(each, least);
  EXPECT_LE(each, least == 0 ? 0.05 : least + 1);
}

#else
TEST(Instructions, OfAnObjectAreFew) { GTEST_SKIP() << "counts x86-64 instructions"; }
#endif

}  // namespace

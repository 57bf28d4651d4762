// mark.req.few as a number: how many instructions the marker takes for an object. The parent
// single-steps a child through a collection; what one takes for so many objects more is theirs.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "gc/gc.h"

namespace {

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

#if defined(__x86_64__)

long steps_of_a_collection() {
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
    ++steps;
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

#else
TEST(Instructions, OfAnObjectAreFew) { GTEST_SKIP() << "counts x86-64 instructions"; }
#endif

}  // namespace

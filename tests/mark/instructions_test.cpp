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

// Sweeping is by blocks of hundreds of objects: it hardly counts.
template <class Make>
double steps_of_an_object(const Make& make, int few, long objects_of_few, int many,
                          long objects_of_many) {
  live = make(few);
  const long least = steps_of_a_collection();
  live = make(many);
  const long most = steps_of_a_collection();
  live = nullptr;
  return static_cast<double>(most - least) / static_cast<double>(objects_of_many - objects_of_few);
}

TEST(Instructions, OfAnObjectAreFew) {
  GC_set_no_dls(1);
  GC_INIT();
  GC_clear_roots();
  GC_add_roots(&live, &live + 1);
  const double tree = steps_of_an_object(make_tree, 6, 127, 8, 511);
  const double list = steps_of_an_object(make_list, 250, 250, 1000, 1000);
  std::printf("tree: %.1f instructions an object, list: %.1f\n", tree, list);
  RecordProperty("tree", std::to_string(tree));
  RecordProperty("list", std::to_string(list));
  // docs/design/mark.md, "The loop"; too few would be a wrong count.
  EXPECT_LE(tree, 140);
  EXPECT_GE(tree, 40);
  EXPECT_LE(list, 115);
  EXPECT_GE(list, 40);
}

#else
TEST(Instructions, OfAnObjectAreFew) { GTEST_SKIP() << "counts x86-64 instructions"; }
#endif

}  // namespace

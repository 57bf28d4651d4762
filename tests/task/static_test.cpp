// Tasks in a program that is linked statically. With -static, libc lacks the function that lists
// the loaded code, and there is the deque alone (task.req.fall-back); -static-pie is like a shared
// one.
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc.h>
#include <gtest/gtest.h>
#include <jackdaw/task.hpp>

#include <stdexcept>

namespace {

struct Tree {
  Tree* left;
  Tree* right;
};

// Only the tasks' frames hold it while it grows.
Tree* make_tree(int depth) {
  auto* tree = static_cast<Tree*>(GC_malloc(sizeof(Tree)));
  if (depth == 0) return tree;
  auto [left, right] =
      jd::par([depth] { return make_tree(depth - 1); }, [depth] { return make_tree(depth - 1); });
  tree->left = left;
  tree->right = right;
  return tree;
}
long count(const Tree* tree) {
  return tree == nullptr ? 0 : 1 + count(tree->left) + count(tree->right);
}

TEST(Static, TasksStealAndTheirFramesAreRoots) {
  jd_task_start(3);
  for (int i = 0; i < 20; ++i) {
    const Tree* tree = jd::run([] {
      auto [made, nothing] = jd::par([] { return make_tree(12); },
                                     [] {
                                       GC_gcollect();
                                       return 0;
                                     });
      return made;
    });
    ASSERT_EQ(count(tree), (1 << 13) - 1);
  }
}

#if defined(JD_TASK_DEQUE_ALONE)
TEST(Static, TheDequeIsAllThereIs) {
  EXPECT_EQ(jd_task_get_mode(), JD_TASK_DEQUE);
  EXPECT_EQ(jd_task_set_mode(JD_TASK_BARRIER), 0);
}
#endif

TEST(Static, ExceptionsComeToTheForker) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(
        jd::run([] { jd::par([] { throw std::runtime_error("a"); }, [] { make_tree(5); }); }),
        std::runtime_error);
  }
}

}  // namespace

// Trees: the classic collector benchmark as a test, and recursion that goes deep.
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

struct Node {
  Node* left;
  Node* right;
  int a;
  int b;
};

Node* bottom_up(int depth) {
  Node* node = GC_NEW(Node);
  if (depth > 0) {
    node->left = bottom_up(depth - 1);
    node->right = bottom_up(depth - 1);
  }
  return node;
}

void populate(int depth, Node* node) {
  if (depth <= 0) return;
  node->left = GC_NEW(Node);
  node->right = GC_NEW(Node);
  populate(depth - 1, node->left);
  populate(depth - 1, node->right);
}

long count(const Node* node) {
  return node == nullptr ? 0 : 1 + count(node->left) + count(node->right);
}

void tree_program(int depth) {
  Node* long_lived = GC_NEW(Node);
  populate(depth, long_lived);
  auto* array = static_cast<double*>(GC_malloc_atomic(500000 * sizeof(double)));
  for (int i = 0; i < 500000; ++i) array[i] = 1.0 / (i + 1);
  for (int d = 4; d <= depth; d += 2) {
    for (int i = 0; i < 1 << (depth - d); ++i) {
      Node* temporary = GC_NEW(Node);
      populate(d, temporary);
      ASSERT_EQ(count(temporary), (2L << d) - 1);
      ASSERT_EQ(count(bottom_up(d)), (2L << d) - 1);
    }
  }
  ASSERT_EQ(count(long_lived), (2L << depth) - 1);
  ASSERT_EQ(array[1000], 1.0 / 1001);
}

int tree_depth() { return rounds(100) >= 100 ? 15 : rounds(100) >= 20 ? 12 : 9; }

TEST(Trees, OneThread) { tree_program(tree_depth()); }

TEST(Trees, FourThreads) {
  run_threads(4, [](std::size_t) { tree_program(tree_depth() - 2); });
}

TEST(Trees, Holes) {
  // A dead node between any two retained ones: the heap is full of one-object holes.
  const std::size_t count_of_nodes = rounds(400000);
  Node* list = nullptr;
  for (int pass = 0; pass < 4; ++pass) {
    for (std::size_t i = 0; i < count_of_nodes; ++i) {
      Node* kept = GC_NEW(Node);
      opaque(GC_NEW(Node))->a = 1;
      ASSERT_EQ(kept->a, 0);
      ASSERT_EQ(kept->left, nullptr);
      kept->left = list;
      kept->a = pass;
      list = kept;
    }
    // Drop every other one.
    for (Node* p = list; p != nullptr && p->left != nullptr; p = p->left) p->left = p->left->left;
  }
  std::size_t length = 0;
  for (const Node* p = list; p != nullptr; p = p->left) {
    ASSERT_LE(p->a, 3);
    ++length;
  }
  EXPECT_GT(length, count_of_nodes * 3 / 4);
}

// One million frames would need more than the usual 8 MiB: as many as fit.
[[gnu::noinline]] std::size_t descend(std::size_t depth, std::size_t every) {
  auto** object = static_cast<void**>(GC_malloc(32));
  object[1] = reinterpret_cast<void*>(depth);
  if (depth % every == 0) GC_gcollect();
  const std::size_t below = depth == 0 ? 0 : descend(depth - 1, every);
  return below + (object[1] == reinterpret_cast<void*>(depth));
}

TEST(Trees, ADeepStackOfRoots) {
  // Less where there is a collection at each depth.
  static std::size_t depth;
  depth = rounds(100) >= 20 ? 40000 : 4000;
  EXPECT_EQ(descend(depth, depth / 4), depth + 1);
  run_threads(1, [](std::size_t) { EXPECT_EQ(descend(depth / 2, depth / 8), depth / 2 + 1); });
}

}  // namespace
}  // namespace jd::test

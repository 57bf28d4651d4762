// gcbench STRETCH LONG_LIVED: the binary-tree benchmark of John Ellis and Pete Kovac, in the form
// that Hans Boehm made well known, written anew.
//
// Models: a functional program. Short-lived trees of all depths, built top down and bottom up,
// while
//   a tree of depth LONG_LIVED and an array of doubles stay alive. A first tree of depth STRETCH
//   makes the heap large at once.
// Live: 2^(LONG_LIVED+1) nodes of 32 bytes, and 4 MB of doubles; 8 MB with 18 16, 68 MB with 20 20.
// Shows: the time of the whole; the part of it in collections and in marking.
#include "support/bench.hpp"

namespace {

struct Node {
  Node* left;
  Node* right;
  int i, j;
};

Node* make_node(Node* left, Node* right) {
  Node* node = bench::must(static_cast<Node*>(GC_MALLOC(sizeof(Node))));
  node->left = left;
  node->right = right;
  return node;
}

// Top down: a node is older than its children, and is written to after its making.
void populate(int depth, Node* node) {
  if (depth <= 0) return;
  node->left = make_node(nullptr, nullptr);
  node->right = make_node(nullptr, nullptr);
  populate(depth - 1, node->left);
  populate(depth - 1, node->right);
}

// Bottom up: children first.
Node* make_tree(int depth) {
  if (depth <= 0) return make_node(nullptr, nullptr);
  Node* left = make_tree(depth - 1);
  Node* right = make_tree(depth - 1);
  return make_node(left, right);
}

size_t count(const Node* node) {
  return node == nullptr ? 0 : 1 + count(node->left) + count(node->right);
}

size_t tree_size(int depth) { return (size_t{1} << (depth + 1)) - 1; }

constexpr int kLeastDepth = 4;
constexpr int kDoubles = 500000;

Node* long_lived;
double* doubles;

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 3) bench::die("usage: gcbench STRETCH LONG_LIVED [--quick]");
  int stretch = static_cast<int>(bench::number(argv[1]));
  int lasting = static_cast<int>(bench::number(argv[2]));
  if (quick) {
    stretch = 10;
    lasting = 8;
  }

  GC_INIT();
  bench::watch_collections();
  const double began = bench::now();

  if (count(make_tree(stretch)) != tree_size(stretch)) bench::die("the stretch tree is damaged");

  long_lived = make_node(nullptr, nullptr);
  populate(lasting, long_lived);
  doubles = bench::must(static_cast<double*>(GC_MALLOC_ATOMIC(kDoubles * sizeof(double))));
  for (int i = 0; i < kDoubles / 2; ++i) doubles[i] = 1.0 / (i + 1);

  // As many trees of each depth as have together the nodes of two stretch trees.
  for (int depth = kLeastDepth; depth <= lasting; depth += 2) {
    const size_t trees = 2 * tree_size(stretch) / tree_size(depth);
    for (size_t i = 0; i < trees; ++i) {
      Node* node = make_node(nullptr, nullptr);
      populate(depth, node);
    }
    for (size_t i = 0; i < trees; ++i) make_tree(depth);
  }

  const double took = bench::now() - began;
  if (count(long_lived) != tree_size(lasting) || doubles[1000] != 1.0 / 1001) {
    bench::die("the long-lived data are damaged");
  }
  bench::report("gcbench", tree_size(lasting) * sizeof(Node) + kDoubles * sizeof(double),
                {{"time", "s", took},
                 {"in collections", "s", bench::collection_times.total},
                 {"in marking", "s", bench::collection_times.marking}});
}

// holes: gcbench's trees, with a dead node allocated between any two that are kept.
//
// Models: a program whose temporaries lie between its lasting data, so that every block is half
//   full after a collection and allocation must use the holes. (After holes_gc_bench in Boehm's
//   "Reducing Garbage Collector Cache Misses".)
// Live: a tree of depth 18: 2^19 nodes of 32 bytes, 17 MB, spread over twice as much.
// Shows: the time of the whole; the part of it in collections and in marking.
#include "support/bench.hpp"

namespace {

struct Node {
  Node* left;
  Node* right;
  long value[2];
};

Node* make_node(Node* left, Node* right) {
  // The dead one. volatile: the compiler must not see that nobody wants it.
  Node* volatile dead = bench::must(static_cast<Node*>(GC_MALLOC(sizeof(Node))));
  dead->value[0] = 1;
  dead = nullptr;
  Node* node = bench::must(static_cast<Node*>(GC_MALLOC(sizeof(Node))));
  node->left = left;
  node->right = right;
  return node;
}

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

Node* long_lived;

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 1) bench::die("usage: holes [--quick]");
  const int lasting = quick ? 10 : 18;
  const size_t nodes = quick ? size_t{8} << 10 : size_t{8} << 20;

  GC_INIT();
  bench::watch_collections();
  const double began = bench::now();
  long_lived = make_tree(lasting);
  // 8 million nodes more, in trees that die young, in and around the holes.
  for (int depth = 4; depth <= 12; depth += 4) {
    for (size_t i = 0; i < nodes / 3 / tree_size(depth); ++i) make_tree(depth);
  }
  const double took = bench::now() - began;
  if (count(long_lived) != tree_size(lasting)) bench::die("the long-lived tree is damaged");
  bench::report("holes", tree_size(lasting) * sizeof(Node),
                {{"time", "s", took},
                 {"in collections", "s", bench::collection_times.total},
                 {"in marking", "s", bench::collection_times.marking}});
}

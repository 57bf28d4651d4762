// mark_tree ordered|shuffled|typed [DEPTH]: marking a binary tree.
//
// Models: a syntax tree or a functional map. Ordered: nodes lie in memory as a depth-first walk
//   meets them, as a parser leaves them. Shuffled: they lie in random order, as after years of
//   life. Typed: in order, and a descriptor says which of a node's words are pointers, as a
//   compiler does.
// Live: 2^(DEPTH+1) - 1 nodes of 32 bytes; 134 MB with the depth of 21 that it has without one.
//   Typed nodes have their descriptor beside: 48 bytes.
// Shows: nanoseconds for each object, of a forced collection and of its marking.
#include <gc/gc_typed.h>

#include "support/bench.hpp"

namespace {

constexpr size_t kWords = 4;
struct Node {
  Node* words[kWords];
};

Node* root;
// Which of a node's words are its subtrees. Typed nodes have one apart: a descriptor of adjacent
// first words would be no more than a length.
size_t right_word = 1;

Node*& left(Node* node) { return node->words[0]; }
Node*& right(Node* node) { return node->words[right_word]; }

GC_descr descriptor;  // 0: nodes have none

Node* make_node() {
  void* node = descriptor == 0 ? GC_MALLOC(sizeof(Node))
                               : GC_MALLOC_EXPLICITLY_TYPED(sizeof(Node), descriptor);
  return bench::must(static_cast<Node*>(node));
}

// The node first, then its left and its right subtree: depth-first order.
Node* make_ordered(int depth) {
  Node* node = make_node();
  if (depth > 0) {
    left(node) = make_ordered(depth - 1);
    right(node) = make_ordered(depth - 1);
  }
  return node;
}

// Node i of the order is the parent of nodes 2i+1 and 2i+2 of it.
Node* make_shuffled(size_t nodes) {
  bench::Random random;
  bench::Scratch<Node*> all(nodes);
  for (size_t i = 0; i < nodes; ++i) all[i] = make_node();
  bench::Scratch<uint32_t> order(nodes);
  bench::shuffle(order, nodes, random);
  for (size_t i = 0; i < nodes; ++i) {
    if (2 * i + 1 < nodes) left(all[order[i]]) = all[order[2 * i + 1]];
    if (2 * i + 2 < nodes) right(all[order[i]]) = all[order[2 * i + 2]];
  }
  return all[order[0]];
}

size_t count(Node* node) {
  return node == nullptr ? 0 : 1 + count(left(node)) + count(right(node));
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const char* const way = argc == 2 || argc == 3 ? argv[1] : "";
  const bool shuffled = strcmp(way, "shuffled") == 0;
  const bool typed = strcmp(way, "typed") == 0;
  if (!shuffled && !typed && strcmp(way, "ordered") != 0) {
    bench::die("usage: mark_tree ordered|shuffled|typed [DEPTH] [--quick]");
  }
  const int depth = quick ? 13 : argc == 3 ? static_cast<int>(bench::number(argv[2])) : 21;
  const size_t nodes = (size_t{1} << (depth + 1)) - 1;
  GC_INIT();
  if (typed) {
    right_word = 2;
    const GC_word pointers[1] = {1 | GC_word{1} << right_word};
    descriptor = GC_make_descriptor(pointers, kWords);
  }
  GC_disable();
  root = shuffled ? make_shuffled(nodes) : make_ordered(depth);
  GC_enable();
  bench::measure_marking("mark_tree", nodes, nodes * sizeof(Node));
  if (count(root) != nodes) bench::die("the tree is damaged");
}

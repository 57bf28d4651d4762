// The trees of gcbench, which gcbench and its version with threads share. A Node has left and
// right, and says where its memory comes from (allocate) and goes to (release; nothing, where a
// collector finds it).
#pragma once

#include "bench.hpp"

namespace bench {

inline constexpr int kLeastDepth = 4;

inline size_t tree_size(int depth) { return (size_t{1} << (depth + 1)) - 1; }

// As many trees of each depth as have together the nodes of two stretch trees.
inline size_t trees_of(int depth, int stretch) { return 2 * tree_size(stretch) / tree_size(depth); }

// What gcbench makes, in objects.
inline size_t gcbench_objects(int stretch, int lasting) {
  size_t objects = tree_size(stretch) + tree_size(lasting);
  for (int depth = kLeastDepth; depth <= lasting; depth += 2) {
    objects += 2 * trees_of(depth, stretch) * tree_size(depth);
  }
  return objects;
}

template <class Node>
Node* make_node(Node* left, Node* right) {
  Node* node = must(static_cast<Node*>(Node::allocate()));
  node->left = left;
  node->right = right;
  return node;
}

template <class Node>
Node* make_leaf() {
  return make_node<Node>(nullptr, nullptr);
}

// Top down: a node is older than its children, and is written to after its making.
template <class Node>
void populate(int depth, Node* node) {
  if (depth <= 0) return;
  node->left = make_leaf<Node>();
  node->right = make_leaf<Node>();
  populate(depth - 1, node->left);
  populate(depth - 1, node->right);
}

// Bottom up: children first.
template <class Node>
Node* make_tree(int depth) {
  if (depth <= 0) return make_leaf<Node>();
  Node* left = make_tree<Node>(depth - 1);
  Node* right = make_tree<Node>(depth - 1);
  return make_node(left, right);
}

template <class Node>
size_t count(const Node* node) {
  return node == nullptr ? 0 : 1 + count(node->left) + count(node->right);
}

// A tree that nobody needs any more.
template <class Node>
void drop_tree(Node* node) {
  if constexpr (Node::kReleases) {
    if (node == nullptr) return;
    drop_tree(node->left);
    drop_tree(node->right);
    Node::release(node);
  }
}

// Short-lived trees of all depths, built in both ways.
template <class Node>
void make_short_lived_trees(int stretch, int lasting) {
  for (int depth = kLeastDepth; depth <= lasting; depth += 2) {
    const size_t trees = trees_of(depth, stretch);
    for (size_t i = 0; i < trees; ++i) {
      Node* root = make_leaf<Node>();
      populate(depth, root);
      drop_tree(root);
    }
    for (size_t i = 0; i < trees; ++i) drop_tree(make_tree<Node>(depth));
  }
}

}  // namespace bench

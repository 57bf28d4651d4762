// Trees of the collected heap whose nodes are made by tasks, one each: a tree of a million nodes
// that lives on, then a hundred of 65,535 that are dropped.
#pragma once

#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc/gc.h>

#include <cstdio>
#include <cstdlib>

#include "../framework.hpp"

namespace bench {

struct Node {
  Node* left;
  Node* right;
  long size;
};

#if !defined(BENCH_IS_JACKDAW)
// A thread of a framework that knows nothing of the collector makes itself known at its first
// task.
class Registration {
 public:
  Registration() {
    GC_stack_base base;
    if (GC_get_stack_base(&base) != GC_SUCCESS) return;
    ours_ = GC_register_my_thread(&base) == GC_SUCCESS;
  }
  ~Registration() {
    if (ours_) GC_unregister_my_thread();
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  void use() {}

 private:
  bool ours_ = false;
};
inline thread_local Registration registration;
#endif

// Before a thread holds the only pointer to a node.
inline void be_known() {
#if !defined(BENCH_IS_JACKDAW)
  registration.use();
#endif
}

inline Node* make_node(Node* left, Node* right) {
  auto* node = static_cast<Node*>(GC_MALLOC(sizeof(Node)));
  if (node == nullptr) {
    std::fputs("out of memory\n", stderr);
    std::abort();
  }
  node->left = left;
  node->right = right;
  node->size = 1 + (left != nullptr ? left->size + right->size : 0);
  return node;
}

inline long count_nodes(const Node* node) {
  return node == nullptr ? 0 : 1 + count_nodes(node->left) + count_nodes(node->right);
}

}  // namespace bench

BENCH_DECLARE(bench::Node*, make_tree, int depth);
BENCH_TASK(bench::Node*, make_tree, int depth) {
  bench::be_known();
  if (depth == 0) BENCH_RETURN(bench::make_node(nullptr, nullptr));
  bench::Node* left = nullptr;
  bench::Node* right = nullptr;
  BENCH_PAR(left, make_tree, (depth - 1), right, make_tree, (depth - 1));
  BENCH_RETURN(bench::make_node(left, right));
}

namespace bench {

class Trees {
 public:
  explicit Trees(bool quick)
      : lasting_(quick ? 10 : 19), depth_(quick ? 8 : 15), trees_(quick ? 5 : 100) {
    GC_INIT();
    GC_allow_register_threads();
  }
  void prepare() { lasting_tree = nullptr; }
  void run() {
    good_ = true;
    lasting_tree = BENCH_RUN(make_tree, lasting_);
    for (int i = 0; i < trees_; ++i) {
      const Node* tree = BENCH_RUN(make_tree, depth_);
      good_ = good_ && tree->size == size(depth_);
      last_tree = tree;
    }
  }
  bool check() const {
    return good_ && count_nodes(lasting_tree) == size(lasting_) &&
           count_nodes(last_tree) == size(depth_);
  }

 private:
  static long size(int depth) { return (2L << depth) - 1; }
  int lasting_;
  int depth_;
  int trees_;
  bool good_ = false;
  // In the program's data, which is a root.
  static inline const Node* lasting_tree = nullptr;
  static inline const Node* last_tree = nullptr;
};

}  // namespace bench

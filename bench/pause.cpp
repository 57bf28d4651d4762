// pause MEGABYTES: the longest pause of a busy program with much live data.
//
// Models: a server or an editor: a large forest of trees stays alive, requests allocate short-lived
//   objects, and each replaces one tree of the forest.
// Live: MEGABYTES (10^6 bytes) in trees of 255 nodes of 64 bytes, half pointers, half data.
// Shows: the longest pause as the collector reports it (stop to start of the world); the longest
//   time that one step of the program took, which also counts what the collector does outside of
//   its pauses; the time of the whole.
#include "support/bench.hpp"

namespace {

struct Node {
  Node* child[2];
  Node* unused[2];
  uint64_t data[4];
};

constexpr int kDepth = 7;
constexpr size_t kTreeBytes = ((1 << (kDepth + 1)) - 1) * sizeof(Node);

Node** forest;

Node* make_tree(int depth, uint64_t tag) {
  Node* node = bench::must(static_cast<Node*>(GC_MALLOC(sizeof(Node))));
  node->data[0] = tag;
  if (depth > 0) {
    node->child[0] = make_tree(depth - 1, tag);
    node->child[1] = make_tree(depth - 1, tag);
  }
  return node;
}

size_t count(const Node* node, uint64_t tag) {
  return node == nullptr
             ? 0
             : (node->data[0] == tag) + count(node->child[0], tag) + count(node->child[1], tag);
}

// One request: some garbage, and a tree that takes another's place. False: something was damaged.
bool step(size_t trees, bench::Random& random) {
  for (int i = 0; i < 256; ++i) {
    char* p = bench::must(static_cast<char*>(GC_MALLOC(16 + random.below(112))));
    p[0] = 1;
  }
  const size_t at = random.below(trees);
  const bool whole = count(forest[at], at) == kTreeBytes / sizeof(Node);
  forest[at] = make_tree(kDepth, at);
  return whole;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 2) bench::die("usage: pause MEGABYTES [--quick]");
  const size_t megabytes = quick ? 5 : static_cast<size_t>(bench::number(argv[1]));
  const size_t trees = megabytes * 1000000 / kTreeBytes;
  const size_t steps = quick ? 2000 : 60000;  // 2 GB of allocation
  GC_INIT();
  bench::Random random;
  forest = bench::must(static_cast<Node**>(GC_MALLOC(trees * sizeof(Node*))));
  for (size_t i = 0; i < trees; ++i) forest[i] = make_tree(kDepth, i);

  bench::watch_collections();
  const double began = bench::now();
  double before = began;
  double longest = 0;
  for (size_t i = 0; i < steps; ++i) {
    if (!step(trees, random)) bench::die("a tree is damaged");
    const double after = bench::now();
    if (after - before > longest) longest = after - before;
    before = after;
  }
  const double took = before - began;
  if (bench::collection_times.pauses == 0) bench::die("no pause was reported");
  bench::report("pause", trees * (kTreeBytes + sizeof(Node*)),
                {{"longest pause", "s", bench::collection_times.pause_longest},
                 {"longest step", "s", longest},
                 {"pauses, total", "s", bench::collection_times.pause_total},
                 {"time", "s", took}});
}

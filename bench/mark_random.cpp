// mark_random NODES SIZE: marking a graph without any order.
//
// Models: an old, well-mixed heap: an object's neighbours in the graph are anywhere in memory. The
//   worst case for caches, the best for prefetching, since many objects are known ahead.
// Live: NODES nodes of SIZE bytes (32 or 64). One pointer of each leads along a random cycle
//   through all, so that every node is reachable; the others (one of 32 bytes' two, three of 64
//   bytes' four) lead anywhere. The rest of a node are small integers.
// Shows: nanoseconds for each object, of a forced collection and of its marking.
#include "support/bench.hpp"

namespace {

template <size_t kWords>
struct Node {
  static constexpr size_t kPointers = kWords / 2;
  Node* to[kPointers];
  uint64_t data[kWords - kPointers];
};

template <size_t kWords>
void run(size_t nodes) {
  using N = Node<kWords>;
  static N* root;
  bench::Random random;
  {
    bench::Scratch<N*> all(nodes);
    for (size_t i = 0; i < nodes; ++i) {
      all[i] = bench::must(static_cast<N*>(GC_MALLOC(sizeof(N))));
      all[i]->data[0] = i;
    }
    bench::Scratch<uint32_t> order(nodes);
    bench::shuffle(order, nodes, random);
    for (size_t i = 0; i < nodes; ++i) {
      N* node = all[order[i]];
      node->to[0] = all[order[i + 1 == nodes ? 0 : i + 1]];
      for (size_t k = 1; k < N::kPointers; ++k) node->to[k] = all[random.below(nodes)];
    }
    root = all[0];
  }
  GC_enable();
  bench::measure_marking("mark_random", nodes, nodes * sizeof(N));
  // Every node is still there, and still itself.
  uint64_t sum = 0;
  size_t seen = 0;
  N* node = root;
  do {
    sum += node->data[0];
    ++seen;
    node = node->to[0];
  } while (node != root && seen <= nodes);
  if (seen != nodes || sum != uint64_t{nodes} * (nodes - 1) / 2) bench::die("the graph is damaged");
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 3) bench::die("usage: mark_random NODES 32|64 [--quick]");
  const size_t nodes = quick ? 20000 : static_cast<size_t>(bench::number(argv[1]));
  const long size = bench::number(argv[2]);
  GC_INIT();
  GC_disable();
  if (size == 32) {
    run<4>(nodes);
  } else if (size == 64) {
    run<8>(nodes);
  } else {
    bench::die("the size is 32 or 64");
  }
}

// mark_random NODES SIZE: marking a graph without any order.
//
// Models: an old, well-mixed heap: an object's neighbours in the graph are anywhere in memory. The
//   worst case for caches, the best for prefetching, since many objects are known ahead.
// Live: NODES nodes of SIZE bytes (32, 48, 64, 96, 128 or 256; every second one of 48 lies in two
//   cache lines). The first half of a node are pointers, the rest small integers. One pointer of
//   each leads along a random cycle through all, so that every node is reachable; the others lead
//   anywhere.
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
int run(size_t nodes) {
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
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 3) bench::die("usage: mark_random NODES 32|48|64|96|128|256 [--quick]");
  const size_t nodes = quick ? 20000 : static_cast<size_t>(bench::number(argv[1]));
  const long size = bench::number(argv[2]);
  GC_INIT();
  GC_disable();
  switch (size) {
    case 32:
      return run<4>(nodes);
    case 48:
      return run<6>(nodes);
    case 64:
      return run<8>(nodes);
    case 96:
      return run<12>(nodes);
    case 128:
      return run<16>(nodes);
    case 256:
      return run<32>(nodes);
    default:
      bench::die("the size is 32, 48, 64, 96, 128 or 256");
  }
}

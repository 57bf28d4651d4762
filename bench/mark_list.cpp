// mark_list ordered|shuffled: marking one long list.
//
// Models: a queue or a log. A list gives the marker one object at a time, so nothing hides a cache
//   miss but the memory's own order. Ordered: nodes lie as they were allocated. Shuffled: the next
//   node is anywhere, and the time is that of one dependent miss (or two) an object.
// Live: 10 million nodes of 32 bytes, 320 MB.
// Shows: nanoseconds for each object, of a forced collection and of its marking.
#include "support/bench.hpp"

namespace {

struct Node {
  Node* next;
  uint64_t data[3];
};

Node* root;

Node* make_node() { return bench::must(static_cast<Node*>(GC_MALLOC(sizeof(Node)))); }

Node* make_ordered(size_t nodes) {
  Node* first = make_node();
  Node* last = first;
  for (size_t i = 1; i < nodes; ++i) {
    last->next = make_node();
    last = last->next;
  }
  return first;
}

Node* make_shuffled(size_t nodes) {
  bench::Random random;
  bench::Scratch<Node*> all(nodes);
  for (size_t i = 0; i < nodes; ++i) all[i] = make_node();
  bench::Scratch<uint32_t> order(nodes);
  bench::shuffle(order, nodes, random);
  for (size_t i = 0; i + 1 < nodes; ++i) all[order[i]]->next = all[order[i + 1]];
  return all[order[0]];
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool ordered = argc == 2 && strcmp(argv[1], "ordered") == 0;
  if (!ordered && (argc != 2 || strcmp(argv[1], "shuffled") != 0)) {
    bench::die("usage: mark_list ordered|shuffled [--quick]");
  }
  const size_t nodes = quick ? 20000 : 10000000;
  GC_INIT();
  GC_disable();
  root = ordered ? make_ordered(nodes) : make_shuffled(nodes);
  GC_enable();
  bench::measure_marking("mark_list", nodes, nodes * sizeof(Node));
  size_t seen = 0;
  for (const Node* node = root; node != nullptr; node = node->next) ++seen;
  if (seen != nodes) bench::die("the list is damaged");
}

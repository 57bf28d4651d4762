// mark_array: marking one wide array of pointers to small objects in random order.
//
// Models: a vector of objects that was sorted by a key. All candidates are known at once, so the
//   marker may overlap as many misses as the machine allows.
// Live: an array of 4 million pointers (32 MB) and 4 million leaves of 32 bytes without pointers in
//   them (but allocated as if there could be): 160 MB.
// Shows: nanoseconds for each object, of a forced collection and of its marking.
#include "support/bench.hpp"

namespace {

struct Leaf {
  uint64_t data[4];
};

Leaf** array;

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 1) bench::die("usage: mark_array [--quick]");
  const size_t leaves = quick ? 10000 : 4000000;
  GC_INIT();
  GC_disable();
  bench::Random random;
  array = bench::must(static_cast<Leaf**>(GC_MALLOC(leaves * sizeof(Leaf*))));
  {
    bench::Scratch<uint32_t> order(leaves);
    bench::shuffle(order, leaves, random);
    for (size_t i = 0; i < leaves; ++i) {
      Leaf* leaf = bench::must(static_cast<Leaf*>(GC_MALLOC(sizeof(Leaf))));
      leaf->data[0] = order[i];
      array[order[i]] = leaf;
    }
  }
  GC_enable();
  bench::measure_marking("mark_array", leaves + 1, leaves * (sizeof(Leaf*) + sizeof(Leaf)));
  for (size_t i = 0; i < leaves; ++i) {
    if (array[i]->data[0] != i) bench::die("the array is damaged");
  }
}

// gcbench STRETCH LONG_LIVED [conservative|descriptors]: the binary-tree benchmark of John Ellis
// and Pete Kovac, in the form that Hans Boehm made well known, written anew.
//
// Models: a functional program. Short-lived trees of all depths, built top down and bottom up,
//   while a tree of depth LONG_LIVED and an array of doubles stay alive. A first tree of depth
//   STRETCH makes the heap large at once. With `descriptors` it is a Java-like one: every node
//   begins with the address of a table that describes its class, as gcj's objects do, and the
//   collector reads from there which words are pointers (two of four).
// Live: 2^(LONG_LIVED+1) nodes and 4 MB of doubles. A conservative node has 24 bytes and takes 32
//   of every library's heap: 8 MB with 18 16, 68 MB with 20 20. A described one has 32 bytes; it
//   takes 32 where no byte is added to objects, and 48 in bdwgc's default setting.
// Shows: the time of the whole; the part of it in collections and in marking.
#include <gc/gc_gcj.h>

#include "support/trees.hpp"

namespace {

struct PlainNode {
  PlainNode* left;
  PlainNode* right;
  int i, j;

  static constexpr bool kReleases = false;
  static void* allocate() { return GC_MALLOC(sizeof(PlainNode)); }
};

// What a compiler makes for a class: the descriptor is the second word.
struct Class {
  void* methods;
  GC_word descriptor;
};

struct DescribedNode {
  const Class* its_class;
  DescribedNode* left;
  DescribedNode* right;
  int i, j;

  static constexpr bool kReleases = false;
  static void* allocate();
};
static_assert(sizeof(DescribedNode) == 4 * sizeof(void*));

// A bitmap's first bit, the highest, stands for the object's first word.
constexpr GC_word pointer_in_word(unsigned word) {
  return GC_word{1} << (8 * sizeof(GC_word) - 1 - word);
}
Class node_class = {nullptr, pointer_in_word(1) | pointer_in_word(2) | GC_DS_BITMAP};

void* DescribedNode::allocate() { return GC_GCJ_MALLOC(sizeof(DescribedNode), &node_class); }

// gcj's own mark procedure, for classes that no bitmap describes. There are none here.
GC_ms_entry* no_procedure(GC_word* /*object*/, GC_ms_entry* /*top*/, GC_ms_entry* /*limit*/,
                          GC_word /*environment*/) {
  bench::die("a mark procedure was called for a node with a bitmap");
}

constexpr int kDoubles = 500000;

template <class Node>
void run(int stretch, int lasting) {
  static Node* long_lived;
  static double* doubles;
  bench::watch_collections();
  const double began = bench::now();

  if (bench::count(bench::make_tree<Node>(stretch)) != bench::tree_size(stretch)) {
    bench::die("the stretch tree is damaged");
  }

  long_lived = bench::make_leaf<Node>();
  bench::populate(lasting, long_lived);
  doubles = bench::must(static_cast<double*>(GC_MALLOC_ATOMIC(kDoubles * sizeof(double))));
  for (int i = 0; i < kDoubles / 2; ++i) doubles[i] = 1.0 / (i + 1);

  bench::make_short_lived_trees<Node>(stretch, lasting);

  const double took = bench::now() - began;
  if (bench::count(long_lived) != bench::tree_size(lasting) || doubles[1000] != 1.0 / 1001) {
    bench::die("the long-lived data are damaged");
  }
  bench::made_objects = bench::gcbench_objects(stretch, lasting);
  bench::report("gcbench", bench::tree_size(lasting) * sizeof(Node) + kDoubles * sizeof(double),
                {{"time", "s", took},
                 {"in collections", "s", bench::collection_times.total},
                 {"in marking", "s", bench::collection_times.marking}});
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool described = argc == 4 && strcmp(argv[3], "descriptors") == 0;
  const bool plain = argc == 3 || (argc == 4 && strcmp(argv[3], "conservative") == 0);
  if (!described && !plain) {
    bench::die("usage: gcbench STRETCH LONG_LIVED [conservative|descriptors] [--quick]");
  }
  int stretch = static_cast<int>(bench::number(argv[1]));
  int lasting = static_cast<int>(bench::number(argv[2]));
  if (quick) {
    stretch = 10;
    lasting = 8;
  }

  GC_INIT();
  if (described) {
    GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, reinterpret_cast<void*>(no_procedure));
    run<DescribedNode>(stretch, lasting);
  } else {
    run<PlainNode>(stretch, lasting);
  }
}

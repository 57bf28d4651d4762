// steps: collections that mark in many small steps, and what a step may cost.
//
// Models: programs with much else in the heap (125,000 pointer-free objects of 4 KiB, but for the
//   last two), and
//     uncollectable   300,000 objects of GC_malloc_uncollectable's, which are roots
//     finalizable     300 trees of 4,095 nodes, each to be finalized in the collection measured
//     typed-array     8 million elements of a pointer and a number, in one array
//     unmap           4 GiB that are free and untouched, to be returned to the system
// Live: 500 MB; the array's 128 MB; nothing.
// Shows: milliseconds of a collection, or of GC_gcollect_and_unmap(). A collector whose every step
//   costs something for each block of the heap is slow here; one that queues an array as a whole
//   shows it in its peak memory.
#include <gc/gc_typed.h>

#include "support/bench.hpp"

namespace {

constexpr size_t kBallastBytes = 4096;

struct Node {
  Node* left;
  Node* right;
  size_t number;
};

// Static: a root that no compiler drops.
void** ballast;
void* volatile kept;
size_t finalized;

void GC_CALLBACK finalize(void* /*object*/, void* /*data*/) { ++finalized; }

void make_ballast(size_t objects) {
  ballast = bench::must(static_cast<void**>(GC_MALLOC(objects * sizeof(void*))));
  for (size_t i = 0; i < objects; ++i) ballast[i] = bench::must(GC_MALLOC_ATOMIC(kBallastBytes));
}

Node* make_tree(int depth) {
  Node* node = bench::must(static_cast<Node*>(GC_MALLOC(sizeof(Node))));
  if (depth == 0) return node;
  node->left = make_tree(depth - 1);
  node->right = make_tree(depth - 1);
  return node;
}

// Not inlined: no stale pointer of the loop must stay in the caller's frame.
__attribute__((noinline)) void make_finalizable(size_t trees) {
  constexpr int kDepth = 11;
  for (size_t i = 0; i < trees; ++i) {
    GC_REGISTER_FINALIZER(make_tree(kDepth), finalize, nullptr, nullptr, nullptr);
  }
}

void make_uncollectable(size_t objects) {
  constexpr size_t kBytes = 16;
  for (size_t i = 0; i < objects; ++i) bench::must(GC_MALLOC_UNCOLLECTABLE(kBytes));
}

void make_typed_array(size_t elements) {
  struct Element {
    void* pointer;
    size_t number;
  };
  const GC_word bitmap[1] = {1};
  const GC_descr descriptor = GC_make_descriptor(bitmap, sizeof(Element) / sizeof(GC_word));
  auto* array = bench::must(
      static_cast<Element*>(GC_calloc_explicitly_typed(elements, sizeof(Element), descriptor)));
  kept = array;
  void* target = bench::must(GC_MALLOC(sizeof(Element)));
  for (size_t i = 0; i < elements; ++i) array[i].pointer = target;
}

__attribute__((noinline)) void make_free(size_t bytes) {
  kept = bench::must(GC_MALLOC_ATOMIC(bytes));
  kept = nullptr;
}

double timed(void (*step)()) {
  const double began = bench::now();
  step();
  return (bench::now() - began) * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 2) {
    bench::die("usage: steps uncollectable|finalizable|typed-array|unmap [--quick]");
  }
  const char* what = argv[1];
  const size_t objects = quick ? 1000 : 125000;
  GC_INIT();
  GC_set_finalize_on_demand(1);
  size_t live = 0;
  void (*step)() = GC_gcollect;
  if (strcmp(what, "uncollectable") == 0) {
    make_ballast(objects);
    make_uncollectable(quick ? 3000 : 300000);
    live = objects * kBallastBytes;
    GC_gcollect();
  } else if (strcmp(what, "finalizable") == 0) {
    make_ballast(objects);
    GC_gcollect();
    GC_disable();
    make_finalizable(quick ? 10 : 300);
    GC_enable();
    live = objects * kBallastBytes;
  } else if (strcmp(what, "typed-array") == 0) {
    const size_t elements = quick ? 10000 : 8000000;
    make_typed_array(elements);
    live = elements * 16;
    GC_gcollect();
    GC_gcollect();  // helpers that the first one asked for are there
  } else if (strcmp(what, "unmap") == 0) {
    make_free(quick ? size_t{16} << 20 : size_t{4} << 30);
    GC_gcollect();
    step = GC_gcollect_and_unmap;
  } else {
    bench::die("what is it to do? uncollectable, finalizable, typed-array or unmap");
  }
  const double milliseconds = timed(step);
  const bool finalizes = strcmp(what, "finalizable") == 0;
  // A few may hang on stale words of the stack.
  if (finalizes && GC_invoke_finalizers() < (quick ? 8 : 290))
    bench::die("trees were not finalized");
  bench::report("steps", live, {{"the step", "ms", milliseconds}});
}

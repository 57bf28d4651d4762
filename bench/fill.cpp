// fill gc|malloc SIZE: the price of new memory, taken in small pieces and written to at once.
//
// Models: the first seconds of a program that builds what it will work on. Nothing dies, no memory
//   is taken twice, and each object is filled to its last byte, so whoever hands out memory gains
//   nothing by leaving its clearing, or its first touch, to the program. The collector is disabled
//   until all is allocated. With `malloc` the same loop asks the C library, or whatever malloc is
//   preloaded: a collector's allocator beside one that need not clear, nor know what it gave.
// Live: 256 MiB in objects of SIZE bytes, in a list from the newest to the oldest.
// Shows: nanoseconds for each object.
#include "support/bench.hpp"

namespace {

// An object: the address of the one before, then words that tell whose they are.
uintptr_t* newest;

uintptr_t word_of(size_t object, size_t word) { return object * 8191 + word; }

template <void* (*kAllocate)(size_t)>
double fill(size_t objects, size_t words) {
  const double began = bench::now();
  for (size_t i = 0; i < objects; ++i) {
    auto* p = bench::must(static_cast<uintptr_t*>(kAllocate(words * sizeof(uintptr_t))));
    p[0] = reinterpret_cast<uintptr_t>(newest);
    for (size_t w = 1; w < words; ++w) p[w] = word_of(i, w);
    newest = p;
  }
  return bench::now() - began;
}

void check(size_t objects, size_t words) {
  const uintptr_t* p = newest;
  for (size_t i = objects; i-- > 0; p = reinterpret_cast<const uintptr_t*>(p[0])) {
    if (p == nullptr) bench::die("an object is missing");
    for (size_t w = 1; w < words; ++w) {
      if (p[w] != word_of(i, w)) bench::die("an object is damaged");
    }
  }
  if (p != nullptr) bench::die("the list has no end");
}

// Neither a macro nor a compiler's built-in.
void* from_collector(size_t bytes) { return GC_MALLOC(bytes); }
void* from_malloc(size_t bytes) { return malloc(bytes); }

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool collected = argc == 3 && strcmp(argv[1], "gc") == 0;
  if (argc != 3 || (!collected && strcmp(argv[1], "malloc") != 0)) {
    bench::die("usage: fill gc|malloc SIZE [--quick]");
  }
  const size_t size = static_cast<size_t>(bench::number(argv[2]));
  if (size % sizeof(uintptr_t) != 0) bench::die("the size is a multiple of 8");
  const size_t words = size / sizeof(uintptr_t);
  const size_t objects = (size_t{256} << 20) / size / (quick ? 256 : 1);

  double took = 0;
  if (collected) {
    GC_INIT();
    GC_disable();
    took = fill<from_collector>(objects, words);
    GC_enable();
  } else {
    bench::measured_function = "malloc";
    took = fill<from_malloc>(objects, words);
  }
  check(objects, words);
  bench::report("fill", objects * size,
                {{"per object", "ns", took * 1e9 / static_cast<double>(objects)}});
}

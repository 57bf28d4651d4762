// startup: a program that hardly allocates.
//
// Models: the many short runs of a small tool, whose whole life is shorter than a collection: what
//   loading the library, GC_INIT() and the first allocations of each size cost in time and memory.
// Live: 1000 objects of 16 to 512 bytes, about 260 KB.
// Shows: the time of GC_INIT() and of the allocations; jackdaw bench adds the time of the process.
#include "support/bench.hpp"

namespace {
void* objects[1000];
}

int main(int argc, char** argv) {
  bench::take_quick(&argc, argv);  // It is quick as it is.
  if (argc != 1) bench::die("usage: startup [--quick]");
  const double began = bench::now();
  GC_INIT();
  const double initialised = bench::now();
  bench::Random random;
  size_t live = 0;
  for (void*& object : objects) {
    const size_t size = 16 + random.below(497);
    object = bench::must(GC_MALLOC(size));
    *static_cast<size_t*>(object) = size;
    live += size;
  }
  const double allocated = bench::now();
  for (void* object : objects) {
    const size_t size = *static_cast<size_t*>(object);
    if (size < 16 || size > 512) bench::die("an object is damaged");
  }
  bench::report("startup", live,
                {{"GC_INIT()", "s", initialised - began},
                 {"1000 allocations", "s", allocated - initialised}});
}

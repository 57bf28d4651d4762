// alloc plain|atomic SIZE: the price of an allocation when nearly everything dies at once.
//
// Models: the steady stream of short-lived objects of an interpreter. A ring of 1000 objects stays
//   alive, so that memory is not simply reused in place. Each object's first word is written.
// Live: 1000 objects of SIZE bytes.
// Shows: nanoseconds for each allocation, the collections it causes included; the part of the time
//   in collections.
#include "support/bench.hpp"

namespace {

constexpr size_t kRing = 1000;
void* ring[kRing];

template <bool kAtomic>
double allocate(size_t size, size_t objects) {
  const double began = bench::now();
  size_t slot = 0;
  for (size_t i = 0; i < objects; ++i) {
    void* p = kAtomic ? GC_MALLOC_ATOMIC(size) : GC_MALLOC(size);
    *static_cast<size_t*>(bench::must(p)) = i;
    ring[slot] = p;
    if (++slot == kRing) slot = 0;
  }
  return bench::now() - began;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const bool atomic = argc == 3 && strcmp(argv[1], "atomic") == 0;
  if (argc != 3 || (!atomic && strcmp(argv[1], "plain") != 0)) {
    bench::die("usage: alloc plain|atomic SIZE [--quick]");
  }
  const size_t size = static_cast<size_t>(bench::number(argv[2]));
  if (size < sizeof(size_t)) bench::die("the size is 8 or more");
  // 1 GB, but no more than 32 million objects: about a second on bdwgc.
  size_t objects = (size_t{1} << 30) / size;
  if (objects > size_t{32} << 20) objects = size_t{32} << 20;
  if (quick) objects = 100000;

  GC_INIT();
  bench::watch_collections();
  const double took = atomic ? allocate<true>(size, objects) : allocate<false>(size, objects);
  // The ring holds the last objects, whole.
  for (size_t i = objects - kRing; i < objects; ++i) {
    if (*static_cast<size_t*>(ring[i % kRing]) != i) bench::die("a live object is damaged");
  }
  bench::report("alloc", kRing * size,
                {{"per allocation", "ns", took * 1e9 / static_cast<double>(objects)},
                 {"in collections", "s", bench::collection_times.total}});
}

// finalizers: registering and running finalizers.
//
// Models: a program that wraps outside resources in collected objects, and drops them. In each
//   round objects of 32 bytes are allocated, each with a finalizer, and forgotten; then a
//   collection finds them and runs the finalizers.
//   Collections are disabled while a round registers, so that its two parts can be told apart.
// Live: 100000 objects and their registrations at the end of a round, nothing between rounds.
// Shows: nanoseconds for each finalizer: registering it, and collecting its object and running it.
#include "support/bench.hpp"

namespace {

struct Resource {
  size_t number;
  size_t unused[3];
};

size_t finalized;

void GC_CALLBACK release(void* object, void* /*data*/) {
  // The object must be whole when its finalizer sees it.
  if (static_cast<Resource*>(object)->number != ~size_t{0} / 3)
    bench::die("a finalizer got garbage");
  ++finalized;
}

// Not inlined: no stale pointer of the loop must stay in the caller's frame.
__attribute__((noinline)) void make_resources(size_t objects) {
  for (size_t i = 0; i < objects; ++i) {
    Resource* r = bench::must(static_cast<Resource*>(GC_MALLOC(sizeof(Resource))));
    r->number = ~size_t{0} / 3;
    GC_REGISTER_FINALIZER(r, release, nullptr, nullptr, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc != 1) bench::die("usage: finalizers [--quick]");
  const int rounds = quick ? 2 : 10;
  const size_t objects = quick ? 1000 : 100000;
  GC_INIT();
  double registering = 0;
  double running = 0;
  for (int i = 0; i < rounds; ++i) {
    GC_disable();
    const double began = bench::now();
    make_resources(objects);
    const double registered = bench::now();
    GC_enable();
    GC_gcollect();
    GC_invoke_finalizers();
    registering += registered - began;
    running += bench::now() - registered;
  }
  const size_t total = static_cast<size_t>(rounds) * objects;
  // A few may hang on stale words of the stack; the rest must have run.
  if (finalized > total || finalized < total - total / 50) bench::die("finalizers did not run");
  const double scale = 1e9 / static_cast<double>(total);
  bench::report("finalizers", objects * sizeof(Resource),
                {{"per finalizer", "ns", (registering + running) * scale},
                 {"registering", "ns", registering * scale},
                 {"collecting and running", "ns", running * scale}});
}

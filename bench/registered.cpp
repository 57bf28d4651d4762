// registered none|finalizers|links|both: what registrations cost each pause.
//
// Models: a program of which nearly every object wraps something outside, or is in a weak table: a
//   million live objects of 32 bytes, each with a finalizer, or a disappearing link to it, or both,
//   registered in random order. The program forces collections; nothing dies.
// Live: 32 MB of objects, 8 MB of pointers to them, 8 MB of links (--quick: a hundredth).
// Shows: the pause as the library's events delimit it, median, least and longest; the part of it
//   that is not marking the objects shows beside `none`.
#include "support/bench.hpp"

namespace {

struct Object {
  size_t number;
  size_t unused[3];
};

constexpr int kPauses = 15;
double pauses[kPauses];
int paused;
double pause_began;

void GC_CALLBACK on_event(GC_EventType event) {
  if (event == GC_EVENT_PRE_STOP_WORLD) pause_began = bench::now();
  if (event == GC_EVENT_POST_START_WORLD && paused < kPauses) {
    pauses[paused++] = bench::now() - pause_began;
  }
}

size_t finalized;

void GC_CALLBACK release(void* /*object*/, void* /*data*/) { ++finalized; }

// Live until the end.
Object** objects;
GC_hidden_pointer* links;

void make_objects(size_t count) {
  objects = bench::must(static_cast<Object**>(GC_MALLOC(count * sizeof(Object*))));
  links = bench::must(
      static_cast<GC_hidden_pointer*>(GC_MALLOC_ATOMIC(count * sizeof(GC_hidden_pointer))));
  for (size_t i = 0; i < count; ++i) {
    objects[i] = bench::must(static_cast<Object*>(GC_MALLOC(sizeof(Object))));
    objects[i]->number = i;
    links[i] = 0;
  }
}

void register_objects(size_t count, bool finalizers, bool disappearing) {
  bench::Random random;
  bench::Scratch<uint32_t> order(count);
  bench::shuffle(order, count, random);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = order[i];
    if (finalizers) GC_REGISTER_FINALIZER(objects[at], release, nullptr, nullptr, nullptr);
    if (!disappearing) continue;
    links[at] = GC_HIDE_POINTER(objects[at]);
    if (GC_general_register_disappearing_link(reinterpret_cast<void**>(&links[at]), objects[at]) !=
        GC_SUCCESS) {
      bench::die("a link was not registered");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const auto is = [argc, argv](const char* what) {
    return argc == 2 && strcmp(argv[1], what) == 0;
  };
  const bool finalizers = is("finalizers") || is("both");
  const bool disappearing = is("links") || is("both");
  if (!finalizers && !disappearing && !is("none")) {
    bench::die("usage: registered none|finalizers|links|both [--quick]");
  }
  const size_t count = quick ? 10000 : 1000000;
  GC_INIT();
  GC_disable();
  make_objects(count);
  register_objects(count, finalizers, disappearing);
  GC_enable();
  GC_gcollect();  // touches side tables for the first time
  GC_set_on_collection_event(on_event);
  for (int i = 0; i < kPauses; ++i) GC_gcollect();
  GC_set_on_collection_event(nullptr);
  if (paused != kPauses) bench::die("a collection did not tell of its pause");
  if (finalized != 0) bench::die("a live object was finalized");
  for (size_t i = 0; i < count; ++i) {
    if (objects[i]->number != i) bench::die("a live object is damaged");
    if (disappearing && GC_REVEAL_POINTER(links[i]) != objects[i]) {
      bench::die("the link to a live object is gone");
    }
  }
  qsort(pauses, kPauses, sizeof pauses[0], bench::ascending);
  bench::report("registered", count * (sizeof(Object) + sizeof(Object*)),
                {{"pause, median", "s", pauses[kPauses / 2]},
                 {"pause, least", "s", pauses[0]},
                 {"pause, longest", "s", pauses[kPauses - 1]}});
}

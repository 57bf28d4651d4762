// replace free|free-uncollectable|drop|resize|free-many|resize-many: the price of replacing objects
// in random order.
//
// Models: a table whose entries come and go, each of another size. With `free` and
//   `free-uncollectable`, 4096 objects that the program frees by hand, as C programs do that have
//   malloc from the collector; with `drop`, 131,072 pointer-free ones, the strings of an
//   interpreter, that it just forgets. Free slots lie alone, not in rows. With `resize`, the 4096
//   objects stay, and grow and shrink. With `-many` a million objects do as `free` and `resize`: no
//   cache has the one whose turn it is. Each object is filled.
// Live: the table's objects, of 8 to 207 bytes: 0.4 MB, 14 MB, or 113 MB.
// Shows: nanoseconds for each replacement, the collections it causes included.
#include "support/bench.hpp"

namespace {

constexpr size_t kLeast = 8;
constexpr size_t kSizes = 200;

struct Task {
  const char* name;
  size_t entries;
  void* (*allocate)(size_t bytes);
  bool frees;
  bool resizes;
};

constexpr Task kTasks[] = {{"free", 4096, GC_malloc, true, false},
                           {"free-uncollectable", 4096, GC_malloc_uncollectable, true, false},
                           {"drop", size_t{1} << 17, GC_malloc_atomic, false, false},
                           {"resize", 4096, GC_malloc, false, true},
                           {"free-many", size_t{1} << 20, GC_malloc, true, false},
                           {"resize-many", size_t{1} << 20, GC_malloc, false, true}};

struct Entry {
  unsigned char* object;
  size_t bytes;
};

unsigned char mark_of(size_t place) { return static_cast<unsigned char>(place % 251); }

void replace(const Task& task, Entry* entry, size_t place, bench::Random* random) {
  if (task.frees && entry->object != nullptr) GC_free(entry->object);
  entry->bytes = kLeast + random->below(kSizes);
  void* const object = task.resizes && entry->object != nullptr
                           ? GC_realloc(entry->object, entry->bytes)
                           : task.allocate(entry->bytes);
  entry->object = static_cast<unsigned char*>(bench::must(object));
  memset(entry->object, mark_of(place), entry->bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  const Task* task = nullptr;
  for (const Task& each : kTasks) {
    if (argc == 2 && strcmp(argv[1], each.name) == 0) task = &each;
  }
  if (task == nullptr) {
    bench::die(
        "usage: replace free|free-uncollectable|drop|resize|free-many|resize-many [--quick]");
  }
  const size_t times = quick ? 200000 : 10000000;

  GC_INIT();
  bench::watch_collections();
  auto* table = static_cast<Entry*>(bench::must(GC_malloc(task->entries * sizeof(Entry))));
  bench::Random random;
  for (size_t i = 0; i < task->entries; ++i) replace(*task, &table[i], i, &random);
  const double began = bench::now();
  for (size_t i = 0; i < times; ++i) {
    const size_t place = random.below(task->entries);
    replace(*task, &table[place], place, &random);
  }
  const double took = bench::now() - began;
  for (size_t i = 0; i < task->entries; ++i) {
    for (size_t at = 0; at < table[i].bytes; ++at) {
      if (table[i].object[at] != mark_of(i)) bench::die("a live object is damaged");
    }
  }
  bench::report("replace", task->entries * (kLeast + kSizes / 2),
                {{"per replacement", "ns", took * 1e9 / static_cast<double>(times)},
                 {"in collections", "s", bench::collection_times.total}});
}

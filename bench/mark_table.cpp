// mark_table [ENTRIES]: marking a hash table of boxed keys and values.
//
// Models: an interpreter's dictionary or a symbol table: one wide array of buckets, short chains of
//   entries, each with a key and a value of its own, inserted in an order that has nothing to do
//   with the buckets.
// Live: 2^20 buckets (8 MB), ENTRIES (2 million without one) entries of 32 bytes, as many keys of
// 16
//   and values of 16 pointer-free bytes: 136 MB, 6 million objects.
// Shows: nanoseconds for each object, of a forced collection and of its marking.
#include "support/bench.hpp"

namespace {

struct Entry {
  Entry* next;
  uint64_t* key;
  uint64_t* value;
  uint64_t hash;
};

Entry** table;

uint64_t* make_box(uint64_t value) {
  uint64_t* box = bench::must(static_cast<uint64_t*>(GC_MALLOC_ATOMIC(2 * sizeof(uint64_t))));
  box[0] = value;
  box[1] = ~value;
  return box;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = bench::take_quick(&argc, argv);
  if (argc > 2) bench::die("usage: mark_table [ENTRIES] [--quick]");
  const size_t buckets = quick ? size_t{1} << 12 : size_t{1} << 20;
  const size_t entries = quick       ? 8000
                         : argc == 2 ? static_cast<size_t>(bench::number(argv[1]))
                                     : 2000000;
  GC_INIT();
  GC_disable();
  bench::Random random;
  table = bench::must(static_cast<Entry**>(GC_MALLOC(buckets * sizeof(Entry*))));
  for (size_t i = 0; i < entries; ++i) {
    Entry* entry = bench::must(static_cast<Entry*>(GC_MALLOC(sizeof(Entry))));
    entry->key = make_box(i);
    entry->value = make_box(2 * i);
    entry->hash = random.next();
    Entry** bucket = &table[entry->hash % buckets];
    entry->next = *bucket;
    *bucket = entry;
  }
  GC_enable();
  bench::measure_marking("mark_table", 3 * entries + 1,
                         buckets * sizeof(Entry*) + entries * (sizeof(Entry) + 32));
  size_t seen = 0;
  for (size_t i = 0; i < buckets; ++i) {
    for (const Entry* e = table[i]; e != nullptr; e = e->next) {
      seen += *e->value == 2 * *e->key && e->key[1] == ~e->key[0];
    }
  }
  if (seen != entries) bench::die("the table is damaged");
}

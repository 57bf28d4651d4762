/*
 * fragmentation.c - how much memory a program that runs long keeps for the data it has left.
 *
 * A table holds objects of random sizes. In each phase the table is filled, and objects are
 * replaced at random, so that they live for random times and lie among each other; then most of
 * them are dropped, at random. What is resident is read after a collection, and again after one
 * that is asked to leave as little as it can. Every phase prefers other sizes than the one before,
 * so that its holes do not simply fit.
 *
 * Everything is referred to by the table, whose words are all known: nothing is held by chance.
 */
#include "run.h"

#include <unistd.h>

typedef struct Buffer {
  OBJECT;
  size_t length;
  uint64_t text[];
} Buffer;
ARRAY_TYPE(Buffer, length, text, NONE, NONE);

typedef struct Entry {
  OBJECT;
  Buffer* buffer;
  long stamp;
} Entry;
TYPE(Entry, buffer);

typedef struct Table {
  OBJECT;
  size_t count;
  Entry* entries[];
} Table;
ARRAY_TYPE(Table, count, entries, NONE, EACH_ELEMENT);

TYPES(Buffer, Entry, Table);

enum { Phases = 4, KeptInPercent = 25 };

static Table* table;
static size_t live; /* bytes of entries and buffers, as the program knows them */

static size_t bytes_of(const Entry* entry) {
  if (entry == NULL) return 0;
  return sizeof(Entry) + offsetof(Buffer, text) + entry->buffer->length * sizeof(uint64_t);
}

/* Most are small and a few are large; each phase has another middle. */
static size_t random_words(uint64_t* random, int phase) {
  static const unsigned middles[Phases] = {8, 24, 5, 40};
  const unsigned middle = middles[phase];
  const uint64_t kind = random_below(random, 100);
  if (kind < 80) return 1 + (size_t)random_below(random, middle);
  if (kind < 98) return middle + (size_t)random_below(random, (uint64_t)middle * 3);
  return (size_t)middle * 4 + (size_t)random_below(random, 256);
}

static void drop(size_t at) {
  live -= bytes_of(table->entries[at]);
  table->entries[at] = NULL;
}

/* An object's words follow from its stamp, by which they are checked. */
static void put(size_t at, uint64_t* random, int phase) {
  drop(at);
  const size_t length = random_words(random, phase);
  Entry* entry = NEW(Entry);
  Buffer* buffer = NEW_ARRAY(Buffer, length);
  const long stamp = (long)(random_next(random) >> 2);
  for (size_t i = 0; i < length; i++) buffer->text[i] = (uint64_t)stamp + i;
  entry->buffer = buffer;
  entry->stamp = stamp;
  table->entries[at] = entry;
  live += bytes_of(entry);
}

static void check_all(void) {
  size_t found = 0;
  for (size_t i = 0; i < table->count; i++) {
    const Entry* entry = table->entries[i];
    if (entry == NULL) continue;
    found += bytes_of(entry);
    for (size_t j = 0; j < entry->buffer->length; j++) {
      CHECK(entry->buffer->text[j] == (uint64_t)entry->stamp + j, "word %zu of entry %zu", j, i);
    }
  }
  CHECK(found == live, "%zu bytes are live, and %zu were found", live, found);
}

static size_t resident(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  const bool read = file != NULL && fscanf(file, "%*u %lu", &pages) == 1;
  if (file != NULL) fclose(file);
  CHECK(read, "cannot read /proc/self/statm");
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void add_of_phase(const char* name, int phase, double value) {
  char full[40];
  snprintf(full, sizeof(full), "phase%d_%s", phase + 1, name);
  add_figure(full, value);
}

/* A function of its own: what it leaves on the stack is below of what the collections see. */
__attribute__((noinline)) static void run_phase(uint64_t* random, int phase, size_t wanted) {
  for (size_t at = 0; live < wanted; at = (at + 1) % table->count) {
    if (table->entries[at] == NULL) put(at, random, phase);
  }
  for (size_t i = 0; i < table->count; i++) {
    const size_t at = (size_t)random_below(random, table->count);
    if (table->entries[at] != NULL) put(at, random, phase);
  }
  for (size_t i = 0; i < table->count; i++) {
    if (random_below(random, 100) >= KeptInPercent) drop(i);
  }
}

static void run(long scale) {
  const size_t wanted = scale == 0 ? (size_t)8 << 20 : (size_t)96 << 20;
  uint64_t random = 1;
  const size_t begin = resident();
  /* Less than the mean object in any phase, so that there is room for what is wanted. */
  table = NEW_ARRAY(Table, wanted / 64);
  add_figure("begin_resident", (double)begin);
  for (int phase = 0; phase < Phases; phase++) {
    run_phase(&random, phase, wanted);
    const size_t full = resident();
    backend_collect();
    const size_t collected = resident();
    backend_compact();
    const size_t compacted = resident();
    check_all();
    const size_t data = live + sizeof(Table) + table->count * sizeof(Entry*);
    printf("fragmentation: phase %d: %zu bytes live\n", phase + 1, data);
    add_of_phase("live", phase, (double)data);
    add_of_phase("full", phase, (double)full);
    add_of_phase("collected", phase, (double)collected);
    add_of_phase("compacted", phase, (double)compacted);
  }
}

PROGRAM("fragmentation", run);

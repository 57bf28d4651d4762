/*
 * resolve.c - what it costs a collection to find the object that an ambiguous word means.
 *
 * A static array is full of addresses of live objects of a few sizes, in random order: of their
 * first bytes, or of their middles. The objects are few, so that they, their blocks' records and
 * their marks stay in the caches, and all of them are marked before long. What a collection takes
 * more than one with an array of nulls is the words'. Where objects may move, words are looked at
 * once more, to pin what they mean; that time is the collector's own count.
 *
 * The time of the whole program means nothing.
 */
#include "run.h"

typedef struct Small {
  OBJECT;
  struct Small* next;
  long number;
} Small;
TYPE(Small, next);

typedef struct Middle {
  OBJECT;
  struct Middle* next;
  struct Small* small;
  long numbers[4];
} Middle;
TYPE(Middle, next, small);

typedef struct Great {
  OBJECT;
  struct Great* next;
  struct Middle* middle;
  long numbers[10];
} Great;
TYPE(Great, next, middle);

TYPES(Small, Middle, Great);

/* Objects live in lists, whose heads are words of static data, too. One in `Sparse` of those that
 * are made is kept, so that compaction has something to do. */
enum { MostWords = 1 << 20, MostObjects = 1 << 12, Sparse = 4 };
static void* volatile words[MostWords]; /* volatile: only the collector reads it */
static void* objects[MostObjects];
static size_t object_sizes[MostObjects];

static void make_objects(size_t count) {
  uint64_t random = 1;
  for (size_t i = 0; i < count * Sparse; i++) {
    void* object = NULL;
    size_t size = 0;
    switch (random_below(&random, 3)) {
      case 0:
        object = NEW(Small);
        size = sizeof(Small);
        break;
      case 1:
        object = NEW(Middle);
        size = sizeof(Middle);
        break;
      default:
        object = NEW(Great);
        size = sizeof(Great);
    }
    if (i % Sparse != 0) continue;
    objects[i / Sparse] = object;
    object_sizes[i / Sparse] = size;
  }
}

typedef enum Meaning { Nulls, Beginnings, Middles } Meaning;

static void fill(size_t count, size_t object_count, Meaning meaning) {
  uint64_t random = 2;
  for (size_t i = 0; i < count; i++) {
    const size_t which = (size_t)random_below(&random, object_count);
    const size_t within = object_sizes[which] / 2 / sizeof(void*) * sizeof(void*);
    words[i] = meaning == Nulls ? NULL : (char*)objects[which] + (meaning == Middles ? within : 0);
  }
}

/* The least of many, in nanoseconds: what is more is the machine's. */
typedef struct Cost {
  double collecting;
  double pinning; /* of a collection that may move objects */
} Cost;

static Cost cost_of(size_t count, size_t object_count, Meaning meaning, int collections) {
  Cost least = {1e18, 1e18};
  fill(count, object_count, meaning);
  backend_collect();
  for (int i = 0; i < collections; i++) {
    const double began = seconds(CLOCK_MONOTONIC);
    backend_collect();
    const double took = (seconds(CLOCK_MONOTONIC) - began) * 1e9;
    if (took < least.collecting) least.collecting = took;
    const double before = backend_pinning();
    backend_compact();
    const double pinning = backend_pinning() - before;
    if (pinning < least.pinning) least.pinning = pinning;
  }
  return least;
}

static void run(long scale) {
  const size_t count = scale == 0 ? MostWords / 16 : MostWords;
  const size_t object_count = scale == 0 ? MostObjects / 4 : MostObjects;
  const int collections = scale == 0 ? 5 : 31;
  make_objects(object_count);
  /* Objects that are in `objects` stay where they are, but for those under a policy that moves
   * all: static data is ambiguous. */
  const Cost none = cost_of(count, object_count, Nulls, collections);
  const Cost beginnings = cost_of(count, object_count, Beginnings, collections);
  const Cost middles = cost_of(count, object_count, Middles, collections);
  const double per_word = 1 / (double)count;
  add_figure("null_ns", none.collecting * per_word);
  add_figure("beginning_ns", (beginnings.collecting - none.collecting) * per_word);
  add_figure("middle_ns", (middles.collecting - none.collecting) * per_word);
  add_figure("pin_beginning_ns", (beginnings.pinning - none.pinning) * per_word);
  add_figure("pin_middle_ns", (middles.pinning - none.pinning) * per_word);
  printf("resolve: %zu words, %zu objects\n", count, object_count);
}

PROGRAM("resolve", run);

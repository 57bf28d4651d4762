/*
 * mergesort: large lists of boxed numbers, sorted again and again.
 *
 * Models: the sort of a functional language's library. A list is made, sorted by merging, and
 *   dropped. Merging builds its result backwards, so that a list sorted upwards comes of two sorted
 *   downwards; no cell is changed once it is made.
 * Live: a list of 200,000 cells and numbers, and the runs that are being merged: 10 to 16 MB.
 * Sizes: cells of two words (19 of 20 objects), numbers of one word without pointers.
 * Checked: a list of 0 .. n-1 in a shuffled order has to come out as 0 .. n-1; one of random
 * numbers has to come out in order, with the length, sum and sum of mixed numbers that it went in
 * with.
 */
#include "list.h"
#include "run.h"

typedef struct Number {
  OBJECT;
  uint64_t value;
} Number;
LEAF_TYPE(Number);

TYPES(List, Number);

static Number* box(uint64_t value) {
  Number* number = NEW(Number);
  number->value = value;
  return number;
}

static uint64_t value_of(const List* cell) { return ((const Number*)cell->head)->value; }

/* Merges two lists that are sorted the other way. */
static List* merge(const List* a, const List* b, bool upwards) {
  List* result = NULL;
  while (a != NULL && b != NULL) {
    /* The result grows at its front: what comes last in it is taken first. */
    const bool take_a = upwards ? value_of(a) >= value_of(b) : value_of(a) <= value_of(b);
    const List* taken = take_a ? a : b;
    result = cons(taken->head, result);
    if (take_a) {
      a = a->tail;
    } else {
      b = b->tail;
    }
  }
  return reverse_onto(a != NULL ? a : b, result);
}

/* Sorts the first n of a list. */
static List* sort(const List* list, size_t n, bool upwards) {
  if (n == 0) return NULL;
  if (n == 1) return cons(list->head, NULL);
  const List* rest = list;
  for (size_t i = 0; i < n / 2; i++) rest = rest->tail;
  List* first = sort(list, n / 2, !upwards);
  List* second = sort(rest, n - n / 2, !upwards);
  return merge(first, second, upwards);
}

/* n numbers in an order that one multiplication shuffles: n is not divisible by the factor. */
static List* shuffled(size_t n, uint64_t start) {
  const uint64_t factor = 7919;
  List* list = NULL;
  for (size_t i = 0; i < n; i++) list = cons(box((start + i) * factor % n), list);
  return list;
}

static List* random_numbers(size_t n, uint64_t* random) {
  List* list = NULL;
  /* Few enough values for many to be equal. */
  for (size_t i = 0; i < n; i++) list = cons(box(random_below(random, n)), list);
  return list;
}

typedef struct Digest {
  size_t length;
  uint64_t sum;
  uint64_t mixed;
  bool ascending;
} Digest;

static Digest digest(const List* list) {
  Digest result = {0, 0, 0, true};
  uint64_t last = 0;
  for (; list != NULL; list = list->tail) {
    const uint64_t value = value_of(list);
    uint64_t mixing = value;
    result.ascending = result.ascending && last <= value;
    result.length++;
    result.sum += value;
    result.mixed += random_next(&mixing);
    last = value;
  }
  return result;
}

static void run(long scale) {
  const size_t n = scale == 0 ? 20000 : 200000;
  const long rounds = scale == 0 ? 2 : 5 * scale;
  uint64_t random = 1;
  uint64_t all = 0;
  for (long round = 0; round < rounds; round++) {
    const List* permutation = sort(shuffled(n, (uint64_t)round * 1237), n, true);
    uint64_t expected = 0;
    for (const List* cell = permutation; cell != NULL; cell = cell->tail, expected++) {
      CHECK(value_of(cell) == expected, "round %ld: %llu stands in the place of %llu", round,
            (unsigned long long)value_of(cell), (unsigned long long)expected);
    }
    CHECK(expected == n, "round %ld: %llu of %zu numbers", round, (unsigned long long)expected, n);

    const List* numbers = random_numbers(n, &random);
    const Digest before = digest(numbers);
    const Digest after = digest(sort(numbers, n, true));
    CHECK(after.ascending, "round %ld: not sorted", round);
    CHECK(after.length == n && after.sum == before.sum && after.mixed == before.mixed,
          "round %ld: the numbers are others than before", round);
    all = all * 31 + after.mixed;
  }
  printf("mergesort: %ld rounds of %zu numbers, %016llx\n", rounds, n, (unsigned long long)all);
}

PROGRAM("mergesort", run);

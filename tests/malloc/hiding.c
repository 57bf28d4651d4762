/* What fontconfig does: an object that knows another only by the distance to it. Built as libraries
 * of several names, and into a program. */
#include "hiding.h"

#include <stdlib.h>
#include <string.h>

struct pattern {
  ptrdiff_t elements;
  int count;
};

static int* elements_of(struct pattern* pattern) {
  return (int*)((char*)pattern + pattern->elements);
}

struct pattern* create_pattern(void) { return calloc(1, sizeof(struct pattern)); }

void add_to_pattern(struct pattern* pattern, int element) {
  int* old = pattern->count == 0 ? NULL : elements_of(pattern);
  int* elements = realloc(old, (size_t)(pattern->count + 1) * sizeof(int));
  if (elements == NULL) abort();
  elements[pattern->count++] = element;
  pattern->elements = (char*)elements - (char*)pattern;
}

int pattern_is(struct pattern* pattern, int count) {
  if (pattern->count != count) return 0;
  for (int i = 0; i < count; ++i) {
    if (elements_of(pattern)[i] != i) return 0;
  }
  return 1;
}

void destroy_pattern(struct pattern* pattern) {
  free(elements_of(pattern));
  free(pattern);
}

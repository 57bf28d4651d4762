/* hiding_client [LIBRARY]: makes patterns and garbage; the library is loaded then.
 * hiding_client [ROUNDS]: where it is linked; and makes and destroys so many more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "hiding.h"

#ifdef LOADS_IT
static void* function(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) exit(2);
  return found;
}
#endif

int main(int argc, char** argv) {
  enum { kPatterns = 200, kElements = 40 };
  static struct pattern* patterns[kPatterns];
#ifdef LOADS_IT
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (library == NULL) return 2;
  struct pattern* (*create)(void) = function(library, HIDING_CREATE);
  void (*add)(struct pattern*, int) = function(library, "HidingAdd");
  int (*is)(struct pattern*, int) = function(library, "HidingIs");
  void (*destroy)(struct pattern*) = function(library, "HidingDestroy");
#else
  struct pattern* (*create)(void) = create_pattern;
  void (*add)(struct pattern*, int) = add_to_pattern;
  int (*is)(struct pattern*, int) = pattern_is;
  void (*destroy)(struct pattern*) = destroy_pattern;
#endif
  for (int i = 0; i < kPatterns; ++i) {
    patterns[i] = create();
    for (int k = 0; k < kElements; ++k) {
      add(patterns[i], k);
      /* Other memory, and garbage, for a collection now and then. */
      char* garbage = malloc(5000);
      if (garbage == NULL) return 3;
      memset(garbage, 0x55, 5000);
      if (k % 2 == 0) free(garbage);
    }
  }
  for (int i = 0; i < kPatterns; ++i) {
    if (!is(patterns[i], kElements)) return 1;
    destroy(patterns[i]);
  }
#ifndef LOADS_IT
  for (int round = argc > 1 ? atoi(argv[1]) : 0; round > 0; --round) {
    for (int i = 0; i < kPatterns; ++i) {
      struct pattern* pattern = create();
      for (int k = 0; k < kElements; ++k) add(pattern, k);
      destroy(pattern);
    }
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("resident %ld KiB\n", usage.ru_maxrss);
#endif
  puts("ok");
  return 0;
}

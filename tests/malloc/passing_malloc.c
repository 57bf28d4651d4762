/* A program that stands before malloc and free to count their calls, and passes them on. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long calls;

void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (next == NULL) next = (void* (*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc");
  ++calls;
  return next(size);
}

void free(void* object) {
  static void (*next)(void*);
  if (next == NULL) next = (void (*)(void*))(uintptr_t)dlsym(RTLD_NEXT, "free");
  next(object);
}

int main(void) {
  void* aligned = NULL;
  if (posix_memalign(&aligned, 64, 100) != 0) return 1;
  free(aligned);
  char* text = malloc(100);
  memset(text, 'x', 100);
  if (malloc_usable_size(text) < 100) return 2;
  text = realloc(text, 100000);
  if (text == NULL || text[99] != 'x') return 3;
  free(text);
  free(calloc(10, 10));
  if (calls == 0) return 4;
  puts("ok");
  return 0;
}

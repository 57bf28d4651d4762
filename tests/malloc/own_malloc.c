/* A program with a malloc of its own, but not with all that goes with it. Its argument is a library
 * to load (plugin.c). */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each object behind its size; nothing is used again. */
static _Alignas(16) char memory[1 << 20];
static size_t used;
static int calls;
/* What main() sets: what is freed before that is not understood. */
static int running;

static int is_own(const void* p) {
  return (const char*)p >= memory && (const char*)p < memory + sizeof memory;
}

void* malloc(size_t size) {
  const size_t whole = (size + 31) / 16 * 16;
  ++calls;
  if (size > sizeof memory || used + whole > sizeof memory) {
    errno = ENOMEM;
    return NULL;
  }
  char* const object = memory + used + 16;
  used += whole;
  memcpy(object - 16, &size, sizeof size);
  return object;
}

void free(void* object) {
  if (object != NULL && (!is_own(object) || !running)) abort();
}

void* calloc(size_t count, size_t size) { return malloc(count * size); }

void* realloc(void* object, size_t size) {
  void* moved = malloc(size);
  size_t before = 0;
  if (object == NULL || moved == NULL) return moved;
  if (!is_own(object)) abort();
  memcpy(&before, (char*)object - 16, sizeof before);
  memcpy(moved, object, before < size ? before : size);
  return moved;
}

static void* work(void* argument) {
  free(malloc(100));
  return argument;
}

/* Bound to itself first, the library has libc's malloc, as without Jackdaw. */
static int deep_binding_is_as_ever(const char* plugin) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND);
  void* (*allocate)(size_t) = NULL;
  void (*release)(void*) = NULL;
  void* object = NULL;
  if (library == NULL) return 0;
  *(void**)&allocate = dlsym(library, "plugin_allocate");
  *(void**)&release = dlsym(library, "plugin_release");
  if (allocate == NULL || release == NULL) return 0;
  object = allocate(100);
  if (object == NULL || is_own(object)) return 0;
  release(object);
  return dlclose(library) == 0;
}

int main(int argc, char** argv) {
  pthread_t thread;
  char* text = malloc(6);
  void* result = NULL;
  void* aligned = NULL;
  running = 1;
  strcpy(text, "hello");
  text = reallocarray(text, 100, 10);
  if (text == NULL || !is_own(text) || strcmp(text, "hello") != 0) return 1;
  free(text);
  text = reallocarray(NULL, 10, 10);
  if (!is_own(text)) return 2;
  free(text);
  /* libc's, of which nobody can free anything here. */
  if (posix_memalign(&aligned, 4096, 100) != 0 || (uintptr_t)aligned % 4096 != 0) return 3;
  if (malloc_usable_size(aligned) < 100) return 4;
  if (pthread_create(&thread, NULL, work, text) != 0) return 5;
  if (pthread_join(thread, &result) != 0 || result != text) return 6;
  if (calls < 4) return 7;
  if (argc != 2 || !deep_binding_is_as_ever(argv[1])) return 8;
  puts("ok");
  return 0;
}

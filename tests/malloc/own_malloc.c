/* A program with a malloc of its own, but not with all that goes with it. */
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
  if (object != NULL && !is_own(object)) abort();
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

int main(void) {
  pthread_t thread;
  char* text = malloc(6);
  void* result = NULL;
  void* aligned = NULL;
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
  puts("ok");
  return 0;
}

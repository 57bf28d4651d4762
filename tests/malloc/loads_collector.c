/* Loads a libgc, as Nim's programs do, and allocates by both in several threads. */
#define GC_THREADS 1
#define GC_NO_THREAD_REDIRECTS 1

#include <dlfcn.h>
#include <gc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define FIND(name) ((__typeof__(&(name)))dlsym(library, #name))

static void* library;

static void* work(void* argument) {
  struct GC_stack_base base;
  long i;
  if (FIND(GC_get_stack_base)(&base) != GC_SUCCESS) return NULL;
  FIND(GC_register_my_thread)(&base);
  __typeof__(&GC_malloc) const gc_malloc = FIND(GC_malloc);
  for (i = 0; i < 100000; ++i) {
    volatile char* collected = gc_malloc(64);
    volatile char* freed = malloc((size_t)(100 + i % 300));
    collected[0] = freed[0] = 1;
    if (i % 16 != 0) free((void*)freed);
  }
  FIND(GC_unregister_my_thread)();
  return argument;
}

int main(int argc, char** argv) {
  pthread_t threads[3];
  void* result;
  int i;
  if (argc < 2) return 2;
  library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    puts(dlerror());
    return 2;
  }
  FIND(GC_init)();
  FIND(GC_allow_register_threads)();
  for (i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, argv);
  for (i = 0; i < 3; ++i) {
    pthread_join(threads[i], &result);
    if (result != argv) return 1;
  }
  puts("ok");
  return 0;
}

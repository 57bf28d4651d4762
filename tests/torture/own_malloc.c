/* A program whose malloc is the collector's: libc, too, allocates through it, also where the
   collector asks libc about a new thread, or makes one of its own. Prints the number of threads
   whose data was whole. */
#include <gc/gc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Not to be collected: libc keeps its memory where nobody looks. */
void* malloc(size_t size) { return GC_malloc_uncollectable(size); }
/* libc's way to a new thread's memory. Whoever takes it waits for a collection, if one is under
   way, wherever libc was called from: a thread that could not be stopped there would wait for ever.
 */
static volatile int collecting;
void* calloc(size_t count, size_t size) {
  if (collecting) GC_gcollect();
  return size != 0 && count > (size_t)-1 / size ? NULL : GC_malloc_uncollectable(count * size);
}
void* realloc(void* old, size_t size) {
  return old == NULL ? GC_malloc_uncollectable(size) : GC_realloc(old, size);
}
void free(void* object) { GC_free(object); }

enum { THREADS = 20, NODES = 2000 };

struct node {
  struct node* next;
  int number;
};

static void* make_list(void* unused) {
  struct node* volatile list = NULL;
  int i;
  int right = 0;
  (void)unused;
  for (i = 0; i < NODES; ++i) {
    struct node* node = GC_malloc(sizeof *node);
    node->next = list;
    node->number = i;
    list = node;
    if (i % 500 == 0) GC_gcollect();
  }
  while (i-- > 0) {
    right += list->number == i;
    list = list->next;
  }
  return right == NODES ? unused : NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int whole = 0;
  int i;
  GC_INIT();
  collecting = 1;
  for (i = 0; i < THREADS; ++i) {
    if (pthread_create(&threads[i], NULL, make_list, threads) != 0) return 2;
  }
  for (i = 0; i < THREADS; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    whole += result != NULL;
  }
  printf("%d\n", whole);
  return whole == THREADS ? 0 : 1;
}

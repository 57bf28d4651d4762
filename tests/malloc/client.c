/* A program that knows nothing of a collector: run by malloc_test through jackdaw run --malloc.
   Its first argument says what it does. It prints "ok" and ends with status 0 if all was well. */
#define _GNU_SOURCE 1

#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void fail(const char* what, int line) {
  printf("line %d: not so: %s\n", line, what);
  fflush(stdout);
  _Exit(1);
}

/* Words that the compiler can't follow. */
void* opaque(void* p) {
  __asm__ volatile("" : "+r"(p) : : "memory");
  return p;
}

/* Far below the caller's frame, so that no word of it is left in one that is looked at. */
__attribute__((noinline)) void far_away(void (*function)(void*), void* argument) {
  volatile char frame[8192];
  frame[0] = 0;
  function(argument);
  __asm__ volatile("" : : "r"(frame) : "memory");
}

__attribute__((noinline)) void clear_stack(void) {
  volatile char frame[32768];
  size_t i;
  for (i = 0; i < sizeof frame; ++i) frame[i] = 0;
  __asm__ volatile("" : : "r"(frame) : "memory");
}

struct node* make_list(int length) {
  struct node* list = NULL;
  int i;
  for (i = 0; i < length; ++i) {
    struct node* n = malloc(sizeof *n);
    REQUIRE(n != NULL);
    n->next = list;
    n->number = i;
    memset(n->fill, i & 0xff, sizeof n->fill);
    list = n;
  }
  return list;
}

int list_is_whole(const struct node* list, int length) {
  size_t at;
  for (; list != NULL; list = list->next) {
    if (list->number != --length) return 0;
    for (at = 0; at < sizeof list->fill; ++at) {
      if (list->fill[at] != (unsigned char)(list->number & 0xff)) return 0;
    }
  }
  return length == 0;
}

/* So much that the collector has to look at everything several times. */
void make_garbage(size_t mebibytes) {
  size_t done = 0;
  while (done < mebibytes << 20) {
    const size_t size = 16 + done % 5000;
    char* p = malloc(size);
    REQUIRE(p != NULL);
    memset(p, 0x5a, size);
    done += size;
  }
  clear_stack();
}

struct test {
  const char* name;
  void (*function)(const char* argument);
};
static const struct test tests[] = {{"entries", test_entries},
                                    {"limits", test_limits},
                                    {"refused", test_refused},
                                    {"wrong-free", test_wrong_free},
                                    {"garbage", test_garbage},
                                    {"places", test_places},
                                    {"thread-places", test_thread_places},
                                    {"timers", test_timers},
                                    {"contexts", test_contexts},
                                    {"threads", test_threads},
                                    {"fork", test_fork},
                                    {"children", test_children},
                                    {"loading", test_loading},
                                    {"deep-binding", test_deep_binding},
                                    {"signals", test_signals},
                                    {"waiting", test_waiting},
                                    {"main-ends", test_main_ends},
                                    {"vfork", test_vfork},
                                    {"unnoticed-children", test_unnoticed_children},
                                    {"dead-output", test_dead_output},
                                    {"no-proc", test_no_proc},
                                    {"leaks", test_leaks},
                                    {"shrunk-leaks", test_shrunk_leaks},
                                    {"plugins-leaks", test_plugins_leaks},
                                    {"children-leaks", test_children_leaks},
                                    {"no-leaks", test_no_leaks},
                                    {"overrun", test_overrun},
                                    {"in-handler", test_in_handler},
                                    {"closed-files", test_closed_files},
                                    {"closed-others", test_closed_others},
                                    {"fork-in-handler", test_fork_in_handler},
                                    {"collectors-signals", test_collectors_signals},
                                    {"replaced-handler", test_replaced_handler},
                                    {"full-queue", test_full_queue},
                                    {"full-queue-at-the-end", test_full_queue_at_the_end},
                                    {"full-mappings", test_full_mappings},
                                    {"untouched", test_untouched},
                                    {"refused-handler", test_refused_handler},
                                    {"userfault", test_userfault},
                                    {"sparse", test_sparse},
                                    {"old-words", test_old_words},
                                    {"renamed", test_renamed},
                                    {"clear", test_clear},
                                    {"trim", test_trim},
                                    {"zeros-moved", test_zeros_moved},
                                    {"regrown", test_regrown},
                                    {NULL, NULL}};

int main(int argc, char** argv) {
  const struct test* t;
  if (argc < 2) return 2;
  for (t = tests; t->name != NULL; ++t) {
    if (strcmp(t->name, argv[1]) != 0) continue;
    t->function(argc > 2 ? argv[2] : NULL);
    puts("ok");
    return 0;
  }
  printf("there is no %s\n", argv[1]);
  return 2;
}

// Built by build_against.sh with the flags that an installed Jackdaw gives. Its argument is the
// beginning of the path of the file that GC_malloc must come from; empty, it may come from
// anywhere.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  struct node* next;
  int number;
};

int main(int argc, char** argv) {
  enum { kLength = 100000 };
  struct node* list = NULL;
  Dl_info where;
  char path[PATH_MAX];
  int i;
  if (argc != 2) {
    fprintf(stderr, "usage: program PATH-PREFIX\n");
    return 2;
  }
  GC_INIT();
  for (i = 0; i < kLength; ++i) {
    struct node* node = GC_MALLOC(sizeof *node);
    node->next = list;
    node->number = i;
    list = node;
    // Garbage between the nodes.
    if (GC_MALLOC_ATOMIC(64) == NULL) return 1;
  }
  GC_gcollect();
  for (; list != NULL; list = list->next) {
    if (list->number != --i) {
      fprintf(stderr, "node %d holds %d\n", i, list->number);
      return 1;
    }
  }
  if (i != 0) {
    fprintf(stderr, "%d nodes are lost\n", i);
    return 1;
  }
  if (argv[1][0] == '\0') return 0;  // a static program knows of no files
  if (!dladdr((void*)&GC_gcollect, &where) || realpath(where.dli_fname, path) == NULL) {
    fprintf(stderr, "no file is known for GC_gcollect\n");
    return 1;
  }
  if (strncmp(path, argv[1], strlen(argv[1])) != 0) {
    fprintf(stderr, "GC_gcollect came from %s, not from under %s\n", path, argv[1]);
    return 1;
  }
  return 0;
}

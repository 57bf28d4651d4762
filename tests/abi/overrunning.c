/* What programs of GOO's compiler do: they export YPfab_sym, by which the library knows them, and
 * write a word behind objects of 16 and 48 bytes. Nothing else may lie there. */
#include <gc/gc.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((visibility("default"))) void YPfab_sym(void); /* NOLINT: GOO's name */
void YPfab_sym(void) {}                                      /* NOLINT */

#define COUNT 10000

static uintptr_t* objects[COUNT];

static int words_of(int i) { return i % 2 == 0 ? 2 : 6; }

int main(void) {
  GC_INIT();
  for (int round = 0; round < 3; ++round) {
    /* The second half goes, so that later objects lie among others. */
    for (int i = 0; i < COUNT; ++i) {
      if (round > 0 && i < COUNT / 2) continue;
      objects[i] = GC_malloc((size_t)words_of(i) * sizeof(uintptr_t));
      if (objects[i] == NULL) return 2;
      for (int w = 0; w <= words_of(i); ++w) objects[i][w] = (uintptr_t)i;
    }
    GC_gcollect();
    for (int i = 0; i < COUNT; ++i) {
      for (int w = 0; w <= words_of(i); ++w) {
        if (objects[i][w] == (uintptr_t)i) continue;
        fprintf(stderr, "object %d: word %d was overwritten\n", i, w);
        return 1;
      }
    }
  }
  return 0;
}

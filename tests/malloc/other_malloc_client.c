/* Uses the malloc that comes first, and one library's own. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "other_malloc.h"

int main(void) {
  const int at_first = others_in_use();
  void* mine = malloc(100);
  if (others_in_use() != at_first) return 1;
  free(mine);
  for (int i = 0; i < 10000; ++i) {
    void* object = others_new();
    if (object == NULL || others_in_use() != at_first + 1) return 2;
    if (malloc_usable_size(object) < 100) return 3;
    object = realloc(object, 200);
    if (object == NULL || others_in_use() != at_first + 1) return 4;
    if (i % 2 == 0) {
      others_delete(object);
    } else {
      free(object);
    }
    if (others_in_use() != at_first) return 5;
  }
  return 0;
}

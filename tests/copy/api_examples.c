/* The examples at the top of layout.h and heap.h, line by line (examples_test.sh), in C. */
#include <jackdaw/heap.h>
#include <stdio.h>

struct pair {
  void *first, *rest;
};
static const uint64_t pair_pointers[] = {JD_POINTER(struct pair, first) |
                                         JD_POINTER(struct pair, rest)};

int main(void) {
  jd_layout* pair = jd_layout_define(
      &(jd_layout_info){.name = "pair", .size = sizeof(struct pair), .pointers = pair_pointers});
  void* variable = NULL;
  if (pair == NULL || !jd_root_add(&variable)) return 1;
  for (int i = 0; i < 1000; ++i) {
    void* q = variable;
    struct pair* p = (struct pair*)jd_new(pair);
    p->first = q;  // an ordinary store: there are no barriers
    variable = p;
  }
  jd_collect(1);
  int length = 0;
  for (struct pair* p = variable; p != NULL; p = p->first) ++length;
  if (length != 1000 || jd_layout_of(variable) != pair) return 2;
  jd_root_remove(&variable);
  return 0;
}

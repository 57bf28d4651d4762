/* list.h - the list of a functional language: cells of two words, the empty list is null. */
#pragma once

#include "typed.h"

typedef struct List {
  OBJECT;
  void* head;
  struct List* tail;
} List;
TYPE(List, head, tail);

static inline List* cons(void* head, List* tail) {
  List* cell = NEW(List);
  cell->head = head;
  cell->tail = tail;
  return cell;
}

static inline List* reverse_onto(const List* list, List* end) {
  for (; list != NULL; list = list->tail) end = cons(list->head, end);
  return end;
}

static inline List* reverse(const List* list) { return reverse_onto(list, NULL); }

static inline size_t length(const List* list) {
  size_t n = 0;
  for (; list != NULL; list = list->tail) n++;
  return n;
}

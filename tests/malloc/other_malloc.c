/* A library with a malloc of its own, as libjemalloc and others are: pieces of one length, from an
   array. What it makes under another name it makes in there, but frees by calling free, as
   libjemalloc's operators do. */
#include <stddef.h>
#include <string.h>

#include "other_malloc.h"

enum { PIECE = 256, PIECES = 1024 };
static _Alignas(16) char pieces[PIECES][PIECE];
static char in_use[PIECES];
static int used;

int others_in_use(void) { return used; }

static int is_piece(const void* object) {
  return (const char*)object >= pieces[0] && (const char*)object < pieces[0] + sizeof pieces;
}

static void* take(void) {
  for (int i = 0; i < PIECES; ++i) {
    if (in_use[i]) continue;
    in_use[i] = 1;
    ++used;
    return pieces[i];
  }
  return NULL;
}

void* malloc(size_t size) { return size <= PIECE ? take() : NULL; }

void free(void* object) {
  if (!is_piece(object)) return;
  in_use[((char*)object - pieces[0]) / PIECE] = 0;
  --used;
}

void* realloc(void* object, size_t size) {
  if (object == NULL) return malloc(size);
  return is_piece(object) && size <= PIECE ? object : NULL;
}

void* calloc(size_t count, size_t size) {
  void* object = malloc(count * size);
  return object != NULL ? memset(object, 0, count * size) : NULL;
}

size_t malloc_usable_size(void* object) { return is_piece(object) ? PIECE : 0; }

void* others_new(void) { return take(); }
void others_delete(void* object) { free(object); }

/*
 * backend_libgc.h - the objects of typed.h on libgc, which is told no more of a type than whether
 * it has pointers: every word of one that has them may be a pointer. The library that runs is
 * Debian's, or whichever libgc.so.1 LD_PRELOAD names.
 */
#pragma once

#include <gc/gc.h>
#include <stdio.h>

#ifdef HEADER_WORD
#define BACKEND_NAME "libgc-header"
#define OBJECT void* header
#else
#define BACKEND_NAME "libgc"
#define OBJECT
#endif

/* libgc knows no types. */
typedef char TypeHandle;

EMITTED TypeHandle backend_define(const Type* type) {
  (void)type;
  return 0;
}

EMITTED void* backend_new(const Type* type, TypeHandle handle) {
  (void)handle;
  return pointer_free(type) ? GC_malloc_atomic(type->size) : GC_malloc(type->size);
}

EMITTED void* backend_new_array(const Type* type, TypeHandle handle, size_t count) {
  (void)handle;
  const size_t bytes = type->size + count * type->element_size;
  return pointer_free(type) ? GC_malloc_atomic(bytes) : GC_malloc(bytes);
}

EMITTED void* backend_new_untyped(size_t bytes) { return GC_malloc(bytes); }

EMITTED void backend_collect(void) { GC_gcollect(); }

/* As little memory as can be: libgc moves nothing. */
EMITTED void backend_compact(void) { GC_gcollect_and_unmap(); }

EMITTED double backend_pinning(void) { return 0; }

EMITTED void backend_report(FILE* out) { (void)out; }

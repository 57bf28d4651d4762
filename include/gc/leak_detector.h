/*
 * leak_detector.h - turns a program's malloc family into debug allocation, for a run in
 * leak-finding mode (GC_FIND_LEAK=1 in the environment, or as below): what nothing reaches and was
 * not freed is reported with the place that allocated it. For a program as it is there is `jackdaw
 * run --malloc=leak-check`. Include it after all system headers, in every source file.
 *
 *     int main(void) { GC_set_find_leak(1); GC_INIT(); ...; CHECK_LEAKS(); }
 */
#ifndef GC_LEAK_DETECTOR_H
#define GC_LEAK_DETECTOR_H

#ifndef GC_DEBUG
#define GC_DEBUG
#endif
#include "gc.h"

#ifndef GC_DONT_INCLUDE_STDLIB
#include <stdlib.h>
#include <string.h>
#endif

#undef malloc
#undef calloc
#undef free
#undef realloc
#undef strdup
#undef strndup
#undef memalign
#undef posix_memalign
#define malloc(n) GC_MALLOC(n)
/* A product that overflows is asked for as the largest size, which fails as calloc would. */
#define calloc(m, n) GC_MALLOC(gc_leak_calloc_bytes((m), (n)))
#define free(p) GC_FREE(p)
#define realloc(p, n) GC_REALLOC(p, n)
#define strdup(s) GC_STRDUP(s)
#define strndup(s, n) GC_STRNDUP(s, n)
#define memalign(a, n) GC_memalign(a, n)
#define posix_memalign(p, a, n) GC_posix_memalign(p, a, n)

#if defined(__GNUC__)
__attribute__((__unused__))
#endif
static __inline__ size_t
gc_leak_calloc_bytes(size_t count, size_t size) {
  return size != 0 && count > (size_t)-1 / size ? (size_t)-1 : count * size;
}

/* As in the rest of the family: GC_REQUIRE_WCSDUP asks for wide strings. */
#ifdef GC_REQUIRE_WCSDUP
#include <wchar.h>
#undef wcsdup
#define wcsdup(s) GC_WCSDUP(s)
#endif

#ifndef CHECK_LEAKS
#define CHECK_LEAKS() GC_gcollect()
#endif

#endif /* GC_LEAK_DETECTOR_H */

/*
 * gc_gcj.h - objects whose first word points at a table (a vtable, say) that holds their mark
 * descriptor.
 *
 * The descriptor (gc_mark.h) is the table's second word, on every platform. An object is at least
 * two words long.
 */
#ifndef GC_GCJ_H
#define GC_GCJ_H

#ifndef GC_H
#include "gc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Must precede the first allocation; further calls do nothing. mp, a GC_mark_proc, becomes the
 * mark procedure with index mp_index, which is below GC_RESERVED_MARK_PROCS and usually
 * GC_GCJ_RESERVED_MARK_PROC_INDEX. Objects of the debug allocator are all marked by it, with an
 * environment of 1 and the address of the header that comes before the object, which has
 * GC_get_debug_header_size() bytes; if mp is null, all of their words count. Takes the lock.
 */
GC_API void GC_CALL GC_init_gcj_malloc(int mp_index, void* mp);

/*
 * A zeroed object with the table's address in its first word. The last makes the promise of
 * GC_malloc_ignore_off_page().
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL GC_gcj_malloc(size_t lb, void* table);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_gcj_malloc(size_t lb, void* table, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_gcj_malloc_ignore_off_page(size_t lb, void* table);

/* The kinds of these objects, valid after GC_init_gcj_malloc(). */
GC_API int GC_gcj_kind;
GC_API int GC_gcj_debug_kind;

#ifdef GC_DEBUG
#define GC_GCJ_MALLOC(s, d) GC_debug_gcj_malloc(s, d, GC_EXTRAS)
#define GC_GCJ_MALLOC_IGNORE_OFF_PAGE(s, d) GC_debug_gcj_malloc(s, d, GC_EXTRAS)
#else
#define GC_GCJ_MALLOC(s, d) GC_gcj_malloc(s, d)
#define GC_GCJ_MALLOC_IGNORE_OFF_PAGE(s, d) GC_gcj_malloc_ignore_off_page(s, d)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_GCJ_H */

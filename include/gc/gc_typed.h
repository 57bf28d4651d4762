/*
 * gc_typed.h - objects of which the collector knows where the pointers are.
 *
 *     struct entry { struct entry *next; unsigned long hash; void *value; };
 *
 *     GC_descr entry_descriptor(void) {          // once a type, not once an object
 *       GC_word bitmap[GC_BITMAP_SIZE(struct entry)] = {0};
 *       GC_set_bit(bitmap, GC_WORD_OFFSET(struct entry, next));
 *       GC_set_bit(bitmap, GC_WORD_OFFSET(struct entry, value));
 *       return GC_make_descriptor(bitmap, GC_WORD_LEN(struct entry));
 *     }
 *
 *     struct entry *e = GC_malloc_explicitly_typed(sizeof(struct entry), descriptor);
 */
#ifndef GC_TYPED_H
#define GC_TYPED_H

#ifndef GC_H
#include "gc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Bit i of word i / GC_WORDSZ: may the i-th word of the object be a pointer? */
typedef GC_word* GC_bitmap;
#define GC_WORDSZ (8 * sizeof(GC_word))
#define GC_get_bit(bm, index) (((bm)[(index) / GC_WORDSZ] >> ((index) % GC_WORDSZ)) & 1)
#define GC_set_bit(bm, index) ((bm)[(index) / GC_WORDSZ] |= (GC_word)1 << ((index) % GC_WORDSZ))

/* The index of field f of type t; the words of a t; the words of a t's bitmap. */
#define GC_WORD_OFFSET(t, f) (offsetof(t, f) / sizeof(GC_word))
#define GC_WORD_LEN(t) (sizeof(t) / sizeof(GC_word))
#define GC_BITMAP_SIZE(t) ((GC_WORD_LEN(t) + GC_WORDSZ - 1) / GC_WORDSZ)

/* A layout, as the allocators below take it. */
typedef GC_word GC_descr;

/*
 * The layout with these len bits; what an object has beyond them is no pointer. Falls back on a
 * layout that takes every word for a pointer when memory or the table of layouts is used up:
 * layouts are never given back. Takes the lock.
 */
GC_API GC_descr GC_CALL GC_make_descriptor(const GC_word* bitmap, size_t len);

/*
 * A zeroed object, not smaller than its layout; the second makes the promise of
 * GC_malloc_ignore_off_page(). Not for GC_realloc().
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_explicitly_typed(size_t size_in_bytes, GC_descr d);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_explicitly_typed_ignore_off_page(size_t size_in_bytes, GC_descr d);

/* A zeroed array of elements of this layout; the element size is a multiple of a pointer's. */
GC_API GC_ATTR_MALLOC GC_ATTR_CALLOC_SIZE(1, 2) void* GC_CALL
    GC_calloc_explicitly_typed(size_t nelements, size_t element_size_in_bytes, GC_descr d);

/*
 * The same in two steps, for many arrays of one length. The first fills in *p_ctd, for the second;
 * it returns 0 if the size is no number (and then the second is out of memory), else 1. What it
 * filled in can be copied and needs no freeing. A sizeof_ctd that has no room for it ends the
 * program. As of bdwgc 8.3.
 */
#define GC_CALLOC_TYPED_DESCR_WORDS 8
struct GC_calloc_typed_descr_s {
  GC_word opaque[GC_CALLOC_TYPED_DESCR_WORDS];
};
GC_API int GC_CALL GC_calloc_prepare_explicitly_typed(struct GC_calloc_typed_descr_s* p_ctd,
                                                      size_t sizeof_ctd, size_t nelements,
                                                      size_t element_size_in_bytes, GC_descr)
    GC_ATTR_NONNULL(1);
GC_API GC_ATTR_MALLOC void* GC_CALL GC_calloc_do_explicitly_typed(
    const struct GC_calloc_typed_descr_s* p_ctd, size_t sizeof_ctd) GC_ATTR_NONNULL(1);

/* The debug allocators know no layouts. */
#ifdef GC_DEBUG
#define GC_MALLOC_EXPLICITLY_TYPED(bytes, d) ((void)(d), GC_MALLOC(bytes))
#define GC_CALLOC_EXPLICITLY_TYPED(n, bytes, d) ((void)(d), GC_MALLOC((n) * (bytes)))
#else
#define GC_MALLOC_EXPLICITLY_TYPED(bytes, d) GC_malloc_explicitly_typed(bytes, d)
#define GC_CALLOC_EXPLICITLY_TYPED(n, bytes, d) GC_calloc_explicitly_typed(n, bytes, d)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_TYPED_H */

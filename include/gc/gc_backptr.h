/*
 * gc_backptr.h - asking why an object is alive.
 *
 * 8.2.2 has these functions only when it is built to record back pointers, which Debian's is not;
 * nor does this library define them yet. They are declared so that sources compile; the linker
 * names the first one that a program really calls.
 */
#ifndef GC_BACKPTR_H
#define GC_BACKPTR_H

#ifndef GC_H
#include "gc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What held an object in the last collection. */
typedef enum {
  GC_UNREFERENCED,   /* nothing did, or the object is no heap object */
  GC_NO_SPACE,       /* not recorded */
  GC_REFD_FROM_ROOT, /* the word at *base_p */
  GC_REFD_FROM_REG,  /* a register */
  GC_REFD_FROM_HEAP, /* the object *base_p, at *offset_p bytes */
  GC_FINALIZER_REFD  /* it waits for its finalizer */
} GC_ref_kind;

GC_API GC_ref_kind GC_CALL GC_get_back_ptr_info(void* dest, void** base_p, size_t* offset_p)
    GC_ATTR_NONNULL(1);
GC_API void* GC_CALL GC_generate_random_heap_address(void);
GC_API void* GC_CALL GC_generate_random_valid_address(void);
GC_API void GC_CALL GC_generate_random_backtrace(void);
GC_API void GC_CALL GC_print_backtrace(void*) GC_ATTR_NONNULL(1);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_BACKPTR_H */

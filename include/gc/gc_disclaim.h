/*
 * gc_disclaim.h - a last word on objects about to be reclaimed: cheaper than finalizers, for kinds
 * of which every object needs one.
 *
 *     static void close_handle(void *obj, void *unused) { ... }
 *     static const struct GC_finalizer_closure closer = {close_handle, 0};
 *
 *     GC_init_finalized_malloc();
 *     struct handle *h = GC_finalized_malloc(sizeof *h, &closer);
 */
#ifndef GC_DISCLAIM_H
#define GC_DISCLAIM_H

#include "gc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prepares GC_finalized_malloc(). Further calls do nothing. Takes the lock. */
GC_API void GC_CALL GC_init_finalized_malloc(void);

/* Called with the lock held for an object that was found dead. Non-zero keeps it for now. */
typedef int(GC_CALLBACK* GC_disclaim_proc)(void* obj);

/*
 * Sets the procedure for all objects of a kind. mark_from_all non-zero: what dead objects of the
 * kind point to stays until they are reclaimed (chains of them go one link a collection), so the
 * procedure may follow pointers. GC_free() does not ask. No effect in leak-finding mode.
 */
GC_API void GC_CALL GC_register_disclaim_proc(int kind, GC_disclaim_proc proc, int mark_from_all)
    GC_ATTR_NONNULL(2);

/* What to call with a dead object, and with which second argument. */
struct GC_finalizer_closure {
  GC_finalization_proc proc;
  void* cd;
};

/*
 * A zeroed object that *fc finalizes when it is found dead. The object cannot be kept by its
 * finalizer; *fc must live as long. The object sits one word into its slot, where GC_base() points.
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_finalized_malloc(size_t size, const struct GC_finalizer_closure* fc) GC_ATTR_NONNULL(2);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_DISCLAIM_H */

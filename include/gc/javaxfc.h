/*
 * javaxfc.h - for runtimes with Java's guarantees: all finalizers before exit, stopped threads.
 */
#ifndef GC_JAVAXFC_H
#define GC_JAVAXFC_H

#ifndef GC_H
#include "gc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Runs every registered finalizer, whether or not its object is reachable, until none is left:
 * finalizers that register others can keep it from ever returning. Takes the lock.
 */
GC_API void GC_CALL GC_finalize_all(void);

#ifdef GC_THREADS
#ifndef GC_SUSPEND_THREAD_ID
#define GC_SUSPEND_THREAD_ID void*
#endif
/*
 * Stops a registered thread until it is resumed; suspending does not nest. The name is its
 * pthread_t. Nothing happens, and the question says 0, for threads that are not registered; one
 * that has ended and is not joined yet is suspended in name. They take the lock.
 */
GC_API void GC_CALL GC_suspend_thread(GC_SUSPEND_THREAD_ID);
GC_API void GC_CALL GC_resume_thread(GC_SUSPEND_THREAD_ID);
GC_API int GC_CALL GC_is_thread_suspended(GC_SUSPEND_THREAD_ID);
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_JAVAXFC_H */

/*
 * gc.h - the libgc interface: garbage-collected memory for C and C++ programs.
 *
 *     #include <gc/gc.h>
 *
 *     struct node { struct node *next; int value; };
 *
 *     int main(void) {
 *       struct node *list = 0;
 *       GC_INIT();
 *       for (int i = 0; i < 1000000; i++) {
 *         struct node *n = GC_NEW(struct node);
 *         n->value = i;
 *         n->next = i % 1000 ? list : 0;
 *         list = n;
 *       }
 *       return list == 0;
 *     }
 *
 * Compile with -lgc. An object lives as long as a pointer to it, or into it, is found in a
 * register, on a stack, in static or thread-local data, or in another live object. Memory from
 * malloc() and mmap() is not searched, unless GC_add_roots() names it.
 *
 * Programs with threads define GC_THREADS before the first #include of this file, in every
 * source file. GC_DEBUG turns the GC_MALLOC family of macros into checked allocation.
 *
 * Conventions of all functions below:
 *  - Sizes are in bytes, times in milliseconds, unless the function says otherwise.
 *  - "The lock" is the allocation lock. A function "takes the lock" if calling it with the lock
 *    held (in a callback that is documented to run under it) deadlocks. A function marked
 *    "unsynchronised" neither takes nor needs it to be safe in a single-threaded program; in
 *    others call it inside GC_call_with_alloc_lock() if an exact value matters.
 *  - A thread is registered when it is made through this header, when it calls
 *    GC_register_my_thread(), or else when it first allocates.
 *  - Failing allocations return what the out-of-memory function returns: null, by default.
 *
 * The parts are in api/, one subject each, and are not included by programs directly.
 */
#ifndef GC_H
#define GC_H

#include "gc_config_macros.h"
#include "gc_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Old name of void *. */
typedef void* GC_PTR;

/* An integer as wide as a pointer, and its signed twin. */
typedef unsigned long GC_word;
typedef long GC_signed_word;

/* Results of the functions that report success as a number. */
#define GC_SUCCESS 0
#define GC_DUPLICATE 1     /* registered before: nothing new was registered */
#define GC_NO_THREADS 2    /* never returned; for old programs' switch statements */
#define GC_NO_MEMORY 2     /* no memory for the table entry, and no help from the oom function */
#define GC_UNIMPLEMENTED 3 /* not possible on this platform or in this mode */
#define GC_NOT_FOUND 4     /* nothing was registered under that address */

/* The interface's version: (major << 16) | (minor << 8) | micro, here 0x080202. */
GC_API unsigned GC_CALL GC_get_version(void);

/*
 * Prepares the collector: finds the main thread's stack and the static data, reads the
 * environment, makes the first heap. Call it from the main thread before others use the
 * collector; better by GC_INIT(), which also applies the compile-time settings. Allocation calls
 * it when nobody has. Further calls do nothing.
 */
GC_API void GC_CALL GC_init(void);

/* Non-zero once GC_init() has ended. Unsynchronised. */
GC_API int GC_CALL GC_is_init_called(void);

/* The program is done with the collector: GC_is_init_called() says 0 until GC_init() is called
 * again. Nothing else changes: what is allocated stays, and is collected. */
GC_API void GC_CALL GC_deinit(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "api/alloc.h"
#include "api/collect.h"
#include "api/debug.h"
#include "api/finalize.h"
#include "api/init.h"
#include "api/settings.h"
#include "api/stats.h"
#include "api/threads.h"

#ifdef GC_PTHREADS
#include "gc_pthread_redirects.h"
#endif

#endif /* GC_H */

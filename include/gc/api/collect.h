/*
 * api/collect.h - asking for collections, and for none.
 */
#ifndef GC_API_COLLECT_H
#define GC_API_COLLECT_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A full collection now; finalizers that became due are run. Takes the lock. */
GC_API void GC_CALL GC_gcollect(void);

/* The same, ignoring the stop function, and returns all free memory it can to the system. */
GC_API void GC_CALL GC_gcollect_and_unmap(void);

/*
 * A full collection that is given up when the function returns non-zero. It is asked before
 * anything is done, when the other threads stand still, often while objects are marked (but not
 * within a list that is all there is), by one thread then, and when the roots have been looked at;
 * not any more once everything is marked. 1 if the collection was completed; 0 if it was given up
 * or collections are disabled. The function runs with the lock held and possibly with other threads
 * stopped.
 */
typedef int(GC_CALLBACK* GC_stop_func)(void);
GC_API int GC_CALL GC_try_to_collect(GC_stop_func) GC_ATTR_NONNULL(1);

/*
 * The stop function of GC_gcollect() and of collections that allocation starts, but for those
 * without which an allocation would fail, or that are overdue: it is not asked once twice as
 * much was allocated since it first said no as makes a collection due, and 4 MiB. Not null; the
 * default never stops. Setter and getter take the lock.
 */
GC_API void GC_CALL GC_set_stop_func(GC_stop_func) GC_ATTR_NONNULL(1);
GC_API GC_stop_func GC_CALL GC_get_stop_func(void);

/*
 * Disabling nests: collections run again after as many GC_enable() as GC_disable() calls. While
 * disabled, GC_gcollect() does nothing. Both take the lock; the question does not.
 */
GC_API void GC_CALL GC_disable(void);
GC_API void GC_CALL GC_enable(void);
GC_API int GC_CALL GC_is_disabled(void);

/* The counter behind them: non-zero means disabled. */
GC_API
#ifndef GC_DONT_GC
GC_ATTR_DEPRECATED
#endif
int GC_dont_gc;

/*
 * The incremental mode. From now on most of the collections that allocation starts are partial:
 * they look at what is new, at the roots, and at pages of old objects that were written since the
 * last collection. So they take less time, and garbage that has survived one of them stays until a
 * full collection; GC_set_full_freq() says how many partial ones may come before that.
 * Where partial ones take nearly as long as full ones, they are left out for a while.
 *
 * With GC_set_time_limit(), collections that allocation starts and that take longer are done in
 * steps, between which the program runs (Boehm, Demers & Shenker 1991). Each stops the world for
 * about as long as the limit says; so does a pause that turns out not to be the last. The last one
 * sweeps, too, which takes longer in large heaps, and has no limit where the program writes to its
 * objects faster than steps can mark them. Where there is a processor for it, a thread of the
 * collector's marks while the program runs. The program's start callback and root function are
 * called in the first pause and whenever one may be the last. A GC_gcollect() in between forgets
 * the steps: it is always a full collection, whose pause is as long as without the mode.
 *
 * It can be switched on at any time, also by GC_ENABLE_INCREMENTAL in the environment, and stays on
 * for as long as the system lets it (a warning tells the end). It needs Linux 6.7 or newer, whose
 * kernel notes the writes: no signal, and system calls may write to objects. What is not noted is
 * what devices, or io_uring into registered buffers, write to an object by themselves: no pointers
 * to objects may come that way. Where the mode is not to be had, this function does no more than
 * GC_INIT(), and GC_is_incremental_mode() says 0. While the program has typed heaps
 * (jackdaw/heap.h), or leaks are looked for, every collection is a full one.
 */
GC_API void GC_CALL GC_enable_incremental(void);
/* Non-zero: the mode is on. */
GC_API int GC_CALL GC_is_incremental_mode(void);

/* What the incremental mode write-protects, so that a system call that writes there fails: these
 * bits or'ed. Always GC_PROTECTS_NONE. */
#define GC_PROTECTS_NONE 0
#define GC_PROTECTS_POINTER_HEAP 1
#define GC_PROTECTS_PTRFREE_HEAP 2
#define GC_PROTECTS_STATIC_DATA 4
#define GC_PROTECTS_STACK 8
GC_API int GC_CALL GC_incremental_protection_needs(void);

/* In the incremental mode: a partial collection, or a full one if that is due; or the first step of
 * it, or the next. Otherwise nothing. Takes the lock. */
GC_API void GC_CALL GC_start_incremental_collection(void);

/*
 * Collects if a collection is due: in the incremental mode by a partial one, as a rule. Where it is
 * done in steps, one of these, and non-zero while more are to come. Call it while the program
 * idles. Takes the lock.
 */
GC_API int GC_CALL GC_collect_a_little(void);

/* GC_disable(), but a collection that is being done in steps is done to its end first. Takes the
 * lock. As of bdwgc 8.3. */
GC_API void GC_CALL GC_finish_and_disable(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_COLLECT_H */

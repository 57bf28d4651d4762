/*
 * api/finalize.h - finalizers and weak links: what happens to an object, and to pointers at it,
 * after the program has lost it.
 *
 * A finalizer runs once, after a collection found its object unreachable, in some thread that
 * allocates or calls GC_invoke_finalizers(), without the lock. The object is whole when it runs,
 * and may be made reachable again; it needs a new registration to be finalized again.
 */
#ifndef GC_API_FINALIZE_H
#define GC_API_FINALIZE_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void(GC_CALLBACK* GC_finalization_proc)(void* obj, void* client_data);

/*
 * Registers fn for obj, in place of an earlier one of whichever variety; a null fn removes it. The
 * replaced finalizer and its data go to *ofn and *ocd, each of which may be null; they stay as
 * they were when there is no memory for the registration. obj is the first byte of an object; for
 * addresses outside the heap nothing is registered, and *ofn and *ocd become null. cd holds the
 * object it points to until the finalizer has run. Does nothing in leak-finding mode. All take the
 * lock.
 *
 * The varieties differ in which objects wait for which:
 *  - plain: an object reachable from another finalizable object waits until that one has been
 *    finalized. Objects on a cycle of pointers wait for ever.
 *  - ignore_self: likewise, but pointers of the object to itself do not count.
 *  - no_order: no waiting. The finalizer may see objects that have been finalized.
 *  - unreachable: like plain, and waits too while it is reachable from objects of the no_order
 *    variety. (bdwgc has it only while GC_get_java_finalization() is 1; here it always is there.)
 *
 * The debug versions are for objects of the debug allocators and take the user's address.
 */
GC_API void GC_CALL GC_register_finalizer(void* obj, GC_finalization_proc fn, void* cd,
                                          GC_finalization_proc* ofn, void** ocd) GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_register_finalizer_ignore_self(void* obj, GC_finalization_proc fn, void* cd,
                                                      GC_finalization_proc* ofn, void** ocd)
    GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_register_finalizer_no_order(void* obj, GC_finalization_proc fn, void* cd,
                                                   GC_finalization_proc* ofn, void** ocd)
    GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_register_finalizer_unreachable(void* obj, GC_finalization_proc fn, void* cd,
                                                      GC_finalization_proc* ofn, void** ocd)
    GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_debug_register_finalizer(void* obj, GC_finalization_proc fn, void* cd,
                                                GC_finalization_proc* ofn, void** ocd)
    GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_debug_register_finalizer_ignore_self(void* obj, GC_finalization_proc fn,
                                                            void* cd, GC_finalization_proc* ofn,
                                                            void** ocd) GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_debug_register_finalizer_no_order(void* obj, GC_finalization_proc fn,
                                                         void* cd, GC_finalization_proc* ofn,
                                                         void** ocd) GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_debug_register_finalizer_unreachable(void* obj, GC_finalization_proc fn,
                                                            void* cd, GC_finalization_proc* ofn,
                                                            void** ocd) GC_ATTR_NONNULL(1);

/*
 * Weak pointers. *link is set to null when obj becomes unreachable. A link outside the heap, or
 * in a pointer-free object, does not itself hold obj; elsewhere store the pointer hidden
 * (GC_HIDE_POINTER). Read it under the lock (GC_call_with_alloc_lock), or a collection may come
 * between the reading and the use. A registration ends when the link is cleared or unregistered,
 * or when the object that contains it dies.
 *
 * link is aligned and not null; obj is the first byte of an object. Results: GC_SUCCESS,
 * GC_DUPLICATE (the link was registered before; it now follows the new obj), GC_NO_MEMORY,
 * GC_UNIMPLEMENTED (leak-finding mode). All take the lock.
 *
 * Short links (disappearing links) are cleared before any finalizer of that collection runs, and
 * before the order of finalizers is determined. Long links survive until obj cannot be brought
 * back by a finalizer any more.
 */
/* Short; obj is the object that contains the link. */
GC_API int GC_CALL GC_register_disappearing_link(void** link) GC_ATTR_NONNULL(1);
GC_API int GC_CALL GC_general_register_disappearing_link(void** link, const void* obj)
    GC_ATTR_NONNULL(1) GC_ATTR_NONNULL(2);
GC_API int GC_CALL GC_register_long_link(void** link, const void* obj) GC_ATTR_NONNULL(1)
    GC_ATTR_NONNULL(2);

/*
 * The registration at link moves to new_link; neither word is written. GC_SUCCESS, GC_DUPLICATE
 * (there is another registration at new_link), or GC_NOT_FOUND. Equal addresses are allowed, and
 * ask whether there is a registration.
 */
GC_API int GC_CALL GC_move_disappearing_link(void** link, void** new_link) GC_ATTR_NONNULL(2);
GC_API int GC_CALL GC_move_long_link(void** link, void** new_link) GC_ATTR_NONNULL(2);

/* 1 if there was such a registration, 0 if not. */
GC_API int GC_CALL GC_unregister_disappearing_link(void** link);
GC_API int GC_CALL GC_unregister_long_link(void** link);

/*
 * Toggle references: objects with a peer outside the heap that decides, at each collection,
 * whether it holds the object. The function is called with the lock held for every registered
 * object and answers: drop the registration, hold the object, or do not hold it. Setter and getter
 * take the lock. GC_toggleref_add returns GC_SUCCESS (also without a function, and then nothing is
 * registered) or GC_NO_MEMORY, and takes the lock.
 */
typedef enum { GC_TOGGLE_REF_DROP, GC_TOGGLE_REF_STRONG, GC_TOGGLE_REF_WEAK } GC_ToggleRefStatus;
typedef GC_ToggleRefStatus(GC_CALLBACK* GC_toggleref_func)(void* obj);
GC_API void GC_CALL GC_set_toggleref_func(GC_toggleref_func);
GC_API GC_toggleref_func GC_CALL GC_get_toggleref_func(void);
GC_API int GC_CALL GC_toggleref_add(void* obj, int is_strong) GC_ATTR_NONNULL(1);

/*
 * Called with the lock held for each object whose finalizer became due. Null by default. Setter
 * and getter take the lock.
 */
typedef void(GC_CALLBACK* GC_await_finalize_proc)(void* obj);
GC_API void GC_CALL GC_set_await_finalize_proc(GC_await_finalize_proc);
GC_API GC_await_finalize_proc GC_CALL GC_get_await_finalize_proc(void);

/* ---- When finalizers run ---- */

/* Non-zero: only GC_invoke_finalizers() runs them. 0, the default: allocation does, too. */
GC_API GC_ATTR_DEPRECATED int GC_finalize_on_demand;
GC_API void GC_CALL GC_set_finalize_on_demand(int);
GC_API int GC_CALL GC_get_finalize_on_demand(void);

/*
 * Called, without the lock, after a collection that made finalizers due, when they run on demand:
 * it tells some thread to call GC_invoke_finalizers(). Null by default. The pair takes the lock.
 */
typedef void(GC_CALLBACK* GC_finalizer_notifier_proc)(void);
GC_API GC_ATTR_DEPRECATED GC_finalizer_notifier_proc GC_finalizer_notifier;
GC_API void GC_CALL GC_set_finalizer_notifier(GC_finalizer_notifier_proc);
GC_API GC_finalizer_notifier_proc GC_CALL GC_get_finalizer_notifier(void);

/* Non-zero if finalizers are due. Unsynchronised. */
GC_API int GC_CALL GC_should_invoke_finalizers(void);
/* Runs the finalizers that are due and returns how many. Takes the lock for each. */
GC_API int GC_CALL GC_invoke_finalizers(void);
/*
 * The most finalizers that one call of it runs, or an allocation that runs them; the others stay
 * due. 0, the default: all. GC_finalize_all() sets it to 0. Unsynchronised. As of bdwgc 8.3.
 */
GC_API void GC_CALL GC_set_interrupt_finalizers(unsigned);
GC_API unsigned GC_CALL GC_get_interrupt_finalizers(void);

/*
 * With bdwgc, non-zero: what finalizable objects reach is kept in a pass of its own, after all
 * objects have been examined, so that unordered finalizers see whole objects, and the "unreachable"
 * variety works. Default 1, as in Debian's library. Here it always is so: kept and reported,
 * without effect.
 */
GC_API GC_ATTR_DEPRECATED int GC_java_finalization;
GC_API void GC_CALL GC_set_java_finalization(int);
GC_API int GC_CALL GC_get_java_finalization(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_FINALIZE_H */

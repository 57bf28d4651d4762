/*
 * api/threads.h - threads, their stacks, and the lock.
 */
#ifndef GC_API_THREADS_H
#define GC_API_THREADS_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The lock ---- */

/* Calls the function with the lock held and returns its result. The lock does not nest. */
typedef void*(GC_CALLBACK* GC_fn_type)(void* client_data);
GC_API void* GC_CALL GC_call_with_alloc_lock(GC_fn_type fn, void* client_data) GC_ATTR_NONNULL(1);

/*
 * The same with the lock held together with other readers: whoever changes anything waits until the
 * last of them has returned. fn may do what needs the lock and changes nothing: it reveals hidden
 * pointers and asks for marks; what takes the lock itself, as most getters of settings do, would
 * wait for ever. Readers that come while somebody waits for the lock
 * wait, too. A release of non-zero says that fn writes what others will read under the lock; it is
 * always seen here. Does not nest, neither in itself nor in the lock. As of bdwgc 8.3.
 */
#ifdef GC_THREADS
GC_API void* GC_CALL GC_call_with_reader_lock(GC_fn_type fn, void* client_data, int release)
    GC_ATTR_NONNULL(1);
#else
#define GC_call_with_reader_lock(fn, client_data, release) ((void)(release), (fn)(client_data))
#endif

#ifdef GC_THREADS
GC_API void GC_CALL GC_alloc_lock(void);
GC_API void GC_CALL GC_alloc_unlock(void); /* only the thread that has it */
#else
#define GC_alloc_lock() (void)0
#define GC_alloc_unlock() (void)0
#endif

/* ---- Stacks ---- */

/* The cold end of a stack: the highest address of its part that is searched for pointers. */
struct GC_stack_base {
  void* mem_base;
};

/* Calls the function with a base inside the caller's frame: good enough for registration. */
typedef void*(GC_CALLBACK* GC_stack_base_func)(struct GC_stack_base* sb, void* arg);
GC_API void* GC_CALL GC_call_with_stack_base(GC_stack_base_func fn, void* arg) GC_ATTR_NONNULL(1);

/* Asks the system for the base of the calling thread's stack. GC_SUCCESS or GC_UNIMPLEMENTED. */
GC_API int GC_CALL GC_get_stack_base(struct GC_stack_base*) GC_ATTR_NONNULL(1);

/*
 * The base that the collector uses for the calling, registered thread. Returns a handle of the
 * thread, never null. Does not take the lock.
 */
GC_API void* GC_CALL GC_get_my_stackbottom(struct GC_stack_base*) GC_ATTR_NONNULL(1);

/*
 * Sets that base, for programs that switch stacks (coroutines, fibers); null is the calling
 * thread. Call it with the lock held, at the moment of the switch; before GC_init(), without the
 * lock, it sets the main thread's.
 */
GC_API void GC_CALL GC_set_stackbottom(void* gc_thread_handle, const struct GC_stack_base*)
    GC_ATTR_NONNULL(2);

/*
 * Calls fn and returns its result; meanwhile the calling thread, which is registered, is taken to
 * be blocked: it is not stopped, fn's frames are not searched, and fn must neither allocate nor
 * touch pointers into the heap. It may be left by return, an exception, pthread_exit() or a
 * cancellation, but not by longjmp(): the thread would pass for blocked. (It does so no more once a
 * request of its for memory takes more than a free slot that it has at hand.)
 * GC_call_with_gc_active turns that back on for the time of its own fn. Both nest in each other.
 */
GC_API void* GC_CALL GC_do_blocking(GC_fn_type fn, void* client_data) GC_ATTR_NONNULL(1);
GC_API void* GC_CALL GC_call_with_gc_active(GC_fn_type fn, void* client_data) GC_ATTR_NONNULL(1);

/* ---- Marker threads ---- */

/*
 * For programs written for bdwgc, which start the threads that help marking with it, in a fork()'s
 * child again. Here they start when a collection takes long enough; the call does nothing.
 */
GC_API void GC_CALL GC_start_mark_threads(void);

#ifdef GC_THREADS
/* How many markers there are beside the thread that collects; 0 until they have been started. */
GC_API GC_ATTR_DEPRECATED int GC_parallel;
GC_API int GC_CALL GC_get_parallel(void);

/* Before GC_INIT(): how many markers, the collecting thread included; 0 lets the library choose. */
GC_API void GC_CALL GC_set_markers_count(unsigned);

/* ---- Registration ---- */

/*
 * Before GC_INIT(): the signals that stop and restart threads. (Here threads are restarted without
 * one: the second is kept and reported, without effect.)
 */
GC_API void GC_CALL GC_set_suspend_signal(int);
GC_API void GC_CALL GC_set_thr_restart_signal(int);
GC_API int GC_CALL GC_get_suspend_signal(void);
GC_API int GC_CALL GC_get_thr_restart_signal(void);

/*
 * Threads that this header did not create register themselves: the main thread calls
 * GC_allow_register_threads() once, after GC_INIT(); then each thread calls GC_register_my_thread()
 * before it touches the heap, and GC_unregister_my_thread() when it is done. Registering returns
 * GC_SUCCESS, GC_DUPLICATE or GC_NO_MEMORY; unregistering returns GC_SUCCESS. They take the lock.
 *
 *     struct GC_stack_base sb;
 *     GC_get_stack_base(&sb);
 *     GC_register_my_thread(&sb);
 */
GC_API void GC_CALL GC_allow_register_threads(void);
GC_API int GC_CALL GC_register_my_thread(const struct GC_stack_base*) GC_ATTR_NONNULL(1);
GC_API int GC_CALL GC_unregister_my_thread(void);
GC_API int GC_CALL GC_thread_is_registered(void);

/*
 * With bdwgc, tells where the calling thread's stack and its alternate signal stack are, for
 * collections that stop it inside a handler on the latter. Here the collector asks the system then;
 * no effect.
 */
GC_API void GC_CALL GC_register_altstack(void* stack_start, GC_word stack_size, void* altstack_base,
                                         GC_word altstack_size);

/* Stops, and restarts, the other registered threads. In between the caller holds the lock. */
GC_API void GC_CALL GC_stop_world_external(void);
GC_API void GC_CALL GC_start_world_external(void);
#endif /* GC_THREADS */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_THREADS_H */

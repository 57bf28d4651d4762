/*
 * api/settings.h - the collector's settings: callbacks, pacing, roots policy.
 *
 * Many settings exist twice: as a variable of the old interface (deprecated; reads and writes are
 * unsynchronised, and in a non-PIC executable they are the executable's own copies) and as a pair
 * of functions. Unless a pair says otherwise it is unsynchronised: call it before threads start, or
 * inside GC_call_with_alloc_lock().
 */
#ifndef GC_API_SETTINGS_H
#define GC_API_SETTINGS_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Out of memory ---- */

/*
 * Called, without the lock, when a request of that many bytes cannot be met; what it returns is
 * the result of the allocation: null (the default), or an object from the heap. It may also not
 * return (longjmp, exit). Never null itself. Setter and getter take the lock.
 */
typedef void*(GC_CALLBACK* GC_oom_func)(size_t bytes_requested);
GC_API GC_ATTR_DEPRECATED GC_oom_func GC_oom_fn;
GC_API void GC_CALL GC_set_oom_fn(GC_oom_func) GC_ATTR_NONNULL(1);
GC_API GC_oom_func GC_CALL GC_get_oom_fn(void);

/*
 * Says "out of memory" through the abort function (see GC_set_abort_func) with a null message,
 * then exits with status 1.
 */
GC_API void GC_CALL GC_abort_on_oom(void);

/*
 * With bdwgc, how many collections are tried, after the heap could not grow, before giving up.
 * Default 0. Here kept and reported, without effect.
 */
GC_API GC_ATTR_DEPRECATED GC_word GC_max_retries;
GC_API void GC_CALL GC_set_max_retries(GC_word);
GC_API GC_word GC_CALL GC_get_max_retries(void);

/* ---- Messages ---- */

/*
 * Receives warnings: a printf format that uses at most one word-sized argument, and the argument.
 * Called without the lock, and may allocate. The default prints to the log and to standard error.
 * GC_ignore_warn_proc drops warnings (but lets them through while statistics are printed). Setter
 * and getter take the lock; the setter's argument must not be null.
 */
typedef void(GC_CALLBACK* GC_warn_proc)(char* msg, GC_word arg);
GC_API void GC_CALL GC_set_warn_proc(GC_warn_proc) GC_ATTR_NONNULL(1);
GC_API GC_warn_proc GC_CALL GC_get_warn_proc(void);
GC_API void GC_CALLBACK GC_ignore_warn_proc(char* msg, GC_word arg);

/*
 * Called once before the collector ends the program: with the message before abort(), with null
 * before exit(1). The default writes the message to stderr; what the collector finds wrong itself
 * is written there in any case. It may be called with the lock held, or with other threads stopped.
 * Must not be null. Setter and getter take the lock.
 */
typedef void(GC_CALLBACK* GC_abort_func)(const char* msg);
GC_API void GC_CALL GC_set_abort_func(GC_abort_func) GC_ATTR_NONNULL(1);
GC_API GC_abort_func GC_CALL GC_get_abort_func(void);

/* The file descriptor of the log: statistics and warnings, which go to standard error as well.
 * Default: stderr, or GC_LOG_FILE. */
GC_API void GC_CALL GC_set_log_fd(int);

/* ---- Events ---- */

/*
 * Called with the lock held and the heap's new size whenever the heap grew. May be null (the
 * default). Setter and getter take the lock.
 */
typedef void(GC_CALLBACK* GC_on_heap_resize_proc)(GC_word new_size);
GC_API GC_ATTR_DEPRECATED GC_on_heap_resize_proc GC_on_heap_resize;
GC_API void GC_CALL GC_set_on_heap_resize(GC_on_heap_resize_proc);
GC_API GC_on_heap_resize_proc GC_CALL GC_get_on_heap_resize(void);

/*
 * The steps of a collection, as reported to the two callbacks below. One that is marked in steps
 * (GC_set_time_limit) begins and ends in each pause that looks at the roots; between these, its
 * steps are only stops of the world.
 */
typedef enum {
  GC_EVENT_START, /* a collection begins */
  GC_EVENT_MARK_START,
  GC_EVENT_MARK_END,
  GC_EVENT_RECLAIM_START,
  GC_EVENT_RECLAIM_END,
  GC_EVENT_END,             /* the collection is over */
  GC_EVENT_PRE_STOP_WORLD,  /* the other threads are about to be stopped */
  GC_EVENT_POST_STOP_WORLD, /* all of them stand still */
  GC_EVENT_PRE_START_WORLD,
  GC_EVENT_POST_START_WORLD,
  GC_EVENT_THREAD_SUSPENDED,  /* only to GC_on_thread_event_proc */
  GC_EVENT_THREAD_UNSUSPENDED /* only to GC_on_thread_event_proc */
} GC_EventType;

/*
 * Called at each step of a collection, with the lock held and, between stop and start, with the
 * other threads stopped: it must not allocate, lock or call the collector. May be null (the
 * default). Setter and getter take the lock.
 */
typedef void(GC_CALLBACK* GC_on_collection_event_proc)(GC_EventType);
GC_API void GC_CALL GC_set_on_collection_event(GC_on_collection_event_proc);
GC_API GC_on_collection_event_proc GC_CALL GC_get_on_collection_event(void);

#ifdef GC_THREADS
/*
 * Called for each other thread that was stopped (GC_EVENT_THREAD_SUSPENDED) or let go
 * (GC_EVENT_THREAD_UNSUSPENDED); thread_id is its pthread_t. Same rules as above.
 */
typedef void(GC_CALLBACK* GC_on_thread_event_proc)(GC_EventType, void* thread_id);
GC_API void GC_CALL GC_set_on_thread_event(GC_on_thread_event_proc);
GC_API GC_on_thread_event_proc GC_CALL GC_get_on_thread_event(void);
#endif

/* ---- What counts as a pointer ---- */

/*
 * A pointer to any byte of an object holds the object, wherever it is found and whatever is set
 * here. 1 (the default of Debian's library and of this one): on stacks and in registers, a pointer
 * just past the end of an object holds it, too. 0: it does not. Set it before GC_INIT(), to 0 or 1.
 */
GC_API GC_ATTR_DEPRECATED int GC_all_interior_pointers;
GC_API void GC_CALL GC_set_all_interior_pointers(int);
GC_API int GC_CALL GC_get_all_interior_pointers(void);

/*
 * With bdwgc and interior pointers off, lets a pointer that is n bytes past an object's start hold
 * the object; the debug version also counts the debug header. Here every such pointer does, and
 * these have no effect.
 */
GC_API void GC_CALL GC_register_displacement(size_t n);
GC_API void GC_CALL GC_debug_register_displacement(size_t n);

/* ---- Roots ---- */

/*
 * Adds, or removes, static data [low, high) to search for pointers. Neither end needs to be
 * aligned; a range that another contains, or begins where that does, becomes one with it; removal
 * takes out the ranges that lie fully inside.
 * GC_clear_roots forgets all ranges; where libraries do not count (GC_set_no_dls), the program's
 * own data as well. They take the lock.
 */
GC_API void GC_CALL GC_add_roots(void* low, void* high);
GC_API void GC_CALL GC_remove_roots(void* low, void* high);
GC_API void GC_CALL GC_clear_roots(void);

/*
 * Promises that [low, high) of static data, or of ranges of GC_add_roots(), holds no pointer into
 * the heap. Takes the lock.
 */
GC_API void GC_CALL GC_exclude_static_roots(void* low, void* high);
/* Forgets all those promises; meant for just before GC_exclude_static_roots(). Unsynchronised. */
GC_API void GC_CALL GC_clear_exclusion_table(void);

/* Non-zero: do not search the data of shared libraries (the program names its roots itself). */
GC_API GC_ATTR_DEPRECATED int GC_no_dls;
GC_API void GC_CALL GC_set_no_dls(int);
GC_API int GC_CALL GC_get_no_dls(void);

/*
 * Asked, with the lock held, for each writable part of a shared library that would be searched:
 * zero keeps it out. May be null, the default. The setter is unsynchronised.
 */
typedef int(GC_CALLBACK* GC_has_static_roots_func)(const char* library_name, void* section_start,
                                                   size_t section_size);
GC_API void GC_CALL GC_register_has_static_roots_callback(GC_has_static_roots_func);

/*
 * The main thread's stack base, the highest address in use. Found by GC_init() when still null.
 * Prefer GC_set_stackbottom().
 */
GC_API GC_ATTR_DEPRECATED char* GC_stackbottom;

/* ---- Pacing ---- */

/*
 * Space against time. A collection starts after about N / divisor bytes of allocation, where N is
 * the work of one collection: twice the bytes in pointer-bearing objects, plus a quarter of those
 * in pointer-free ones, plus the roots. Larger values: smaller heap, more collections. Default 3; 1
 * counts as 2; with many finalizers or links, both count as 3.
 */
GC_API GC_ATTR_DEPRECATED GC_word GC_free_space_divisor;
GC_API void GC_CALL GC_set_free_space_divisor(GC_word);
GC_API GC_word GC_CALL GC_get_free_space_divisor(void);

/*
 * Allocation starts no collection before at least this many bytes were allocated since the last
 * one, as long as the heap may grow (an eighth of them will do where the tables of finalizers and
 * links have grown much). Not 0. Default 1.
 */
GC_API void GC_CALL GC_set_min_bytes_allocd(size_t);
GC_API size_t GC_CALL GC_get_min_bytes_allocd(void);

/*
 * With bdwgc: collect, rather than grow, when fewer than this many bytes were allocated per
 * finalizer registered since the last collection; 0 ignores finalizers. Default 10000. Here kept
 * and reported, without effect.
 */
GC_API void GC_CALL GC_set_allocd_bytes_per_finalizer(GC_word);
GC_API GC_word GC_CALL GC_get_allocd_bytes_per_finalizer(void);

/* Bytes that are allocated but no candidates for collection: kept up to date by the library. The
 * variable lacks what threads have counted since they last took memory from the heap, and so does
 * the function of what others than the caller have: it is 0 where the caller has freed more than
 * the others' count tells of. */
GC_API GC_ATTR_DEPRECATED GC_word GC_non_gc_bytes;
GC_API void GC_CALL GC_set_non_gc_bytes(GC_word);
GC_API GC_word GC_CALL GC_get_non_gc_bytes(void);

/* Non-zero: grow the heap only on request (GC_expand_hp) or when nothing else is left. */
GC_API GC_ATTR_DEPRECATED int GC_dont_expand;
GC_API void GC_CALL GC_set_dont_expand(int);
GC_API int GC_CALL GC_get_dont_expand(void);

/* With bdwgc, non-zero: use up all free memory of the heap before collecting. Here without effect.
 */
GC_API GC_ATTR_DEPRECATED int GC_use_entire_heap;

/* Grows the heap by that many bytes, rounded down to blocks of 16 KiB, but by at least one. 1 on
 * success, 0 otherwise. Takes the lock. */
GC_API int GC_CALL GC_expand_hp(size_t number_of_bytes);

/* The heap must not become larger than n bytes; 0, the default, is no limit. Unsynchronised. */
GC_API void GC_CALL GC_set_max_heap_size(GC_word n);

/* Non-zero: allocation never starts a collection; calls still do. The pair takes the lock. */
GC_API void GC_CALL GC_set_disable_automatic_collection(int);
GC_API int GC_CALL GC_get_disable_automatic_collection(void);

/* With bdwgc, non-zero: no collection during GC_init(). Here there never is one; no effect. */
GC_API GC_ATTR_DEPRECATED int GC_dont_precollect;
GC_API void GC_CALL GC_set_dont_precollect(int);
GC_API int GC_CALL GC_get_dont_precollect(void);

/* Non-zero: every GC_gcollect() gives back all the memory it can to the system. Default 0. */
GC_API void GC_CALL GC_set_force_unmap_on_gcollect(int);
GC_API int GC_CALL GC_get_force_unmap_on_gcollect(void);

/*
 * With bdwgc, non-zero: the heap's pages are executable. Default 0. Here they never are; kept and
 * reported, without effect.
 */
GC_API void GC_CALL GC_set_pages_executable(int);
GC_API int GC_CALL GC_get_pages_executable(void);

/* ---- Incremental mode ---- */

/* GC_enable_incremental() has what the mode is. All but the first two of these are kept and
 * reported, without effect. */

/* How many partial collections may come between two full ones; 0: none. A full one comes earlier
 * where what is alive has grown by a quarter, and a MiB, since the last. Default 19; also
 * GC_FULL_FREQUENCY in the environment. */
GC_API GC_ATTR_DEPRECATED int GC_full_freq;
GC_API void GC_CALL GC_set_full_freq(int);
GC_API int GC_CALL GC_get_full_freq(void);

/*
 * The wished longest pause, in milliseconds: collections that allocation starts mark in steps of
 * that length, if they take longer. 0: all do, in the shortest steps. GC_TIME_UNLIMITED, the
 * default: no limit. Also GC_PAUSE_TIME_TARGET in the environment. The _tv pair adds nanoseconds
 * (below one million); GC_set_time_limit() leaves them as they are.
 */
#define GC_TIME_UNLIMITED 999999
struct GC_timeval_s {
  unsigned long tv_ms;
  unsigned long tv_nsec; /* in addition, 0 to 999999 */
};
GC_API GC_ATTR_DEPRECATED unsigned long GC_time_limit;
GC_API void GC_CALL GC_set_time_limit(unsigned long);
GC_API unsigned long GC_CALL GC_get_time_limit(void);
GC_API void GC_CALL GC_set_time_limit_tv(struct GC_timeval_s);
GC_API struct GC_timeval_s GC_CALL GC_get_time_limit_tv(void);

/* The work of one GC_collect_a_little() step, in pages; not 0. */
GC_API void GC_CALL GC_set_rate(int);
GC_API int GC_CALL GC_get_rate(void);

/* How often a pause may run out of time before one is allowed to take as long as it needs. */
GC_API void GC_CALL GC_set_max_prior_attempts(int);
GC_API int GC_CALL GC_get_max_prior_attempts(void);

/*
 * Non-zero, with bdwgc, set before GC_enable_incremental(): the program reports its own pointer
 * stores, by GC_PTR_STORE_AND_DIRTY() or GC_END_STUBBORN_CHANGE(), and pages are not watched. Here
 * they are in any case. Default 0.
 */
GC_API void GC_CALL GC_set_manual_vdb_allowed(int);
GC_API int GC_CALL GC_get_manual_vdb_allowed(void);

/* ---- Leak detection ---- */

/* Non-zero: each collection, and the end of the program, reports on standard error which objects
 * nothing reaches that were not freed, the first 40 of them one by one (those of checked allocation
 * with file and line), and reclaims them. Finalizers and disappearing links are off: what they
 * would act upon has leaked. Set it before the first object is made. Default 0; also GC_FIND_LEAK
 * in the environment. */
GC_API GC_ATTR_DEPRECATED int GC_find_leak;
GC_API void GC_CALL GC_set_find_leak(int);
GC_API int GC_CALL GC_get_find_leak(void);

/* ---- fork() ---- */

/*
 * Before GC_INIT(): 1 installs pthread_atfork handlers, so that the child of a fork() may go on
 * using the collector; 0 does nothing about fork(); -1 leaves it to the program, which then calls
 * the three functions around each fork(). The functions do nothing when the handlers are installed.
 */
GC_API void GC_CALL GC_set_handle_fork(int);
GC_API void GC_CALL GC_atfork_prepare(void); /* just before fork() */
GC_API void GC_CALL GC_atfork_parent(void);  /* just after it, in the parent */
GC_API void GC_CALL GC_atfork_child(void);   /* just after it, in the child */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_SETTINGS_H */

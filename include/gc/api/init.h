/*
 * api/init.h - GC_INIT(): GC_init() and the settings that the program was compiled with.
 *
 * Each of these macros, when defined by the program, is applied at the right moment:
 *   GC_DONT_EXPAND  GC_FORCE_UNMAP_ON_GCOLLECT  GC_DONT_GC  GC_IGNORE_WARN   (no value)
 *   GC_MAX_RETRIES  GC_ALLOCD_BYTES_PER_FINALIZER  GC_FREE_SPACE_DIVISOR  GC_FULL_FREQ
 *   GC_TIME_LIMIT  GC_MARKERS  GC_SIG_SUSPEND  GC_SIG_THR_RESTART
 *   GC_MAXIMUM_HEAP_SIZE  GC_INITIAL_HEAP_SIZE                               (a number)
 */
#ifndef GC_API_INIT_H
#define GC_API_INIT_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

/* The program's data are found by GC_init() on every platform of ours. */
#define GC_INIT_CONF_ROOTS

#ifdef GC_DONT_EXPAND
#define GC_INIT_CONF_DONT_EXPAND GC_set_dont_expand(1)
#else
#define GC_INIT_CONF_DONT_EXPAND
#endif

#ifdef GC_FORCE_UNMAP_ON_GCOLLECT
#define GC_INIT_CONF_FORCE_UNMAP_ON_GCOLLECT GC_set_force_unmap_on_gcollect(1)
#else
#define GC_INIT_CONF_FORCE_UNMAP_ON_GCOLLECT
#endif

#if defined(GC_DONT_GC)
#define GC_INIT_CONF_MAX_RETRIES (void)(GC_dont_gc = 1)
#elif defined(GC_MAX_RETRIES)
#define GC_INIT_CONF_MAX_RETRIES GC_set_max_retries(GC_MAX_RETRIES)
#else
#define GC_INIT_CONF_MAX_RETRIES
#endif

#ifdef GC_ALLOCD_BYTES_PER_FINALIZER
#define GC_INIT_CONF_ALLOCD_BYTES_PER_FINALIZER \
  GC_set_allocd_bytes_per_finalizer(GC_ALLOCD_BYTES_PER_FINALIZER)
#else
#define GC_INIT_CONF_ALLOCD_BYTES_PER_FINALIZER
#endif

#ifdef GC_FREE_SPACE_DIVISOR
#define GC_INIT_CONF_FREE_SPACE_DIVISOR GC_set_free_space_divisor(GC_FREE_SPACE_DIVISOR)
#else
#define GC_INIT_CONF_FREE_SPACE_DIVISOR
#endif

#ifdef GC_FULL_FREQ
#define GC_INIT_CONF_FULL_FREQ GC_set_full_freq(GC_FULL_FREQ)
#else
#define GC_INIT_CONF_FULL_FREQ
#endif

#ifdef GC_TIME_LIMIT
#define GC_INIT_CONF_TIME_LIMIT GC_set_time_limit(GC_TIME_LIMIT)
#else
#define GC_INIT_CONF_TIME_LIMIT
#endif

#if defined(GC_MARKERS) && defined(GC_THREADS)
#define GC_INIT_CONF_MARKERS GC_set_markers_count(GC_MARKERS)
#else
#define GC_INIT_CONF_MARKERS
#endif

#if defined(GC_SIG_SUSPEND) && defined(GC_THREADS)
#define GC_INIT_CONF_SUSPEND_SIGNAL GC_set_suspend_signal(GC_SIG_SUSPEND)
#else
#define GC_INIT_CONF_SUSPEND_SIGNAL
#endif

#if defined(GC_SIG_THR_RESTART) && defined(GC_THREADS)
#define GC_INIT_CONF_THR_RESTART_SIGNAL GC_set_thr_restart_signal(GC_SIG_THR_RESTART)
#else
#define GC_INIT_CONF_THR_RESTART_SIGNAL
#endif

#ifdef GC_MAXIMUM_HEAP_SIZE
#define GC_INIT_CONF_MAXIMUM_HEAP_SIZE GC_set_max_heap_size(GC_MAXIMUM_HEAP_SIZE)
#else
#define GC_INIT_CONF_MAXIMUM_HEAP_SIZE
#endif

#ifdef GC_IGNORE_WARN
#define GC_INIT_CONF_IGNORE_WARN GC_set_warn_proc(GC_ignore_warn_proc)
#else
#define GC_INIT_CONF_IGNORE_WARN
#endif

#ifdef GC_INITIAL_HEAP_SIZE
#define GC_INIT_CONF_INITIAL_HEAP_SIZE                          \
  {                                                             \
    size_t gc_heap_size_ = GC_get_heap_size();                  \
    if (gc_heap_size_ < (GC_INITIAL_HEAP_SIZE))                 \
      (void)GC_expand_hp((GC_INITIAL_HEAP_SIZE)-gc_heap_size_); \
  }
#else
#define GC_INIT_CONF_INITIAL_HEAP_SIZE
#endif

/*
 * Initialises the collector; a statement, from the main thread, as early as possible. A block in
 * braces, because old programs write it with and without a semicolon.
 */
#define GC_INIT()                             \
  {                                           \
    GC_INIT_CONF_DONT_EXPAND;                 \
    GC_INIT_CONF_FORCE_UNMAP_ON_GCOLLECT;     \
    GC_INIT_CONF_MAX_RETRIES;                 \
    GC_INIT_CONF_ALLOCD_BYTES_PER_FINALIZER;  \
    GC_INIT_CONF_FREE_SPACE_DIVISOR;          \
    GC_INIT_CONF_FULL_FREQ;                   \
    GC_INIT_CONF_TIME_LIMIT;                  \
    GC_INIT_CONF_MARKERS;                     \
    GC_INIT_CONF_SUSPEND_SIGNAL;              \
    GC_INIT_CONF_THR_RESTART_SIGNAL;          \
    GC_INIT_CONF_MAXIMUM_HEAP_SIZE;           \
    GC_init(); /* before what needs a heap */ \
    GC_INIT_CONF_ROOTS;                       \
    GC_INIT_CONF_IGNORE_WARN;                 \
    GC_INIT_CONF_INITIAL_HEAP_SIZE            \
  }

#endif /* GC_API_INIT_H */

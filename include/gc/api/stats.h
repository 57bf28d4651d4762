/*
 * api/stats.h - counts and sizes. Unless it says otherwise a function is unsynchronised and may be
 * called from callbacks that run under the lock.
 */
#ifndef GC_API_STATS_H
#define GC_API_STATS_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Collections so far, those during initialisation included. */
GC_API GC_ATTR_DEPRECATED GC_word GC_gc_no;
GC_API GC_word GC_CALL GC_get_gc_no(void);

/* Bytes of the heap, without what was given back to the system and without side tables. */
GC_API size_t GC_CALL GC_get_heap_size(void);
/* Bytes of it that are free for certain (a lower bound), without what was given back. */
GC_API size_t GC_CALL GC_get_free_bytes(void);
/* Bytes given back to the system whose addresses are still the heap's. */
GC_API size_t GC_CALL GC_get_unmapped_bytes(void);
/* Bytes allocated since the last collection. */
GC_API size_t GC_CALL GC_get_bytes_since_gc(void);
/* Bytes freed by GC_free() since the last collection. */
GC_API size_t GC_CALL GC_get_expl_freed_bytes_since_gc(void);
/* Bytes allocated in all; wraps around, but never goes down. */
GC_API size_t GC_CALL GC_get_total_bytes(void);
/* The most that GC_get_heap_size() has been: bytes obtained from the system, without side tables.
 */
GC_API size_t GC_CALL GC_get_obtained_from_os_bytes(void);

/* Five of the above, consistent with each other; any argument may be null. Takes the lock. */
GC_API void GC_CALL GC_get_heap_usage_safe(GC_word* heap_size, GC_word* free_bytes,
                                           GC_word* unmapped_bytes, GC_word* bytes_since_gc,
                                           GC_word* total_bytes);

/* Everything, for profilers. Fields are only ever added at the end. */
struct GC_prof_stats_s {
  GC_word heapsize_full;             /* GC_get_heap_size() + GC_get_unmapped_bytes() */
  GC_word free_bytes_full;           /* GC_get_free_bytes() + GC_get_unmapped_bytes() */
  GC_word unmapped_bytes;            /* GC_get_unmapped_bytes() */
  GC_word bytes_allocd_since_gc;     /* GC_get_bytes_since_gc() */
  GC_word allocd_bytes_before_gc;    /* GC_get_total_bytes() - GC_get_bytes_since_gc() */
  GC_word non_gc_bytes;              /* GC_get_non_gc_bytes() */
  GC_word gc_no;                     /* GC_get_gc_no() */
  GC_word markers_m1;                /* GC_get_parallel() */
  GC_word bytes_reclaimed_since_gc;  /* found dead by the last collection, as far as known */
  GC_word reclaimed_bytes_before_gc; /* the same, over all collections before it */
  GC_word expl_freed_bytes_since_gc; /* GC_get_expl_freed_bytes_since_gc() */
  GC_word obtained_from_os_bytes;    /* GC_get_obtained_from_os_bytes() */
};

/*
 * Fills in the first stats_sz bytes of the structure and returns how many of them it knows; fields
 * of a newer version that it does not know become (GC_word)-1. The first takes the lock.
 */
GC_API size_t GC_CALL GC_get_prof_stats(struct GC_prof_stats_s*, size_t stats_sz);
#ifdef GC_THREADS
GC_API size_t GC_CALL GC_get_prof_stats_unsafe(struct GC_prof_stats_s*, size_t stats_sz);
#endif

/*
 * The size of the object that a request of i bytes gets, or (size_t)-1 when i is negative or no
 * small size. The collector must be initialised.
 */
GC_API size_t GC_CALL GC_get_size_map_at(int i);

/* Bytes in blocks that hold objects. Takes the lock. */
GC_API size_t GC_CALL GC_get_memory_use(void);

/*
 * From the first call on, the time of full collections is summed up (of those in steps, also that
 * of marking beside the program); in milliseconds, wraps.
 */
GC_API void GC_CALL GC_start_performance_measurement(void);
GC_API unsigned long GC_CALL GC_get_full_gc_total_time(void);
/* Beyond those milliseconds: nanoseconds, less than 1000000. As of bdwgc 8.3. */
GC_API unsigned long GC_CALL GC_get_full_gc_total_ns_frac(void);

/*
 * Prints to standard output, or to the file of GC_LOG_FILE, for people: the heap's state under a
 * name (null: the number of the collection), its blocks, the finalizable objects and links. GC_dump
 * takes the lock, the others do not.
 */
GC_API void GC_CALL GC_dump(void);
GC_API void GC_CALL GC_dump_named(const char* name);
GC_API void GC_CALL GC_dump_regions(void);
GC_API void GC_CALL GC_dump_finalization(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_STATS_H */

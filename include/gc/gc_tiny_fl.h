/*
 * gc_tiny_fl.h - sizes of the free lists that a program may keep for itself (gc_inline.h).
 *
 * Small sizes are counted in granules. A free list array has one list for each number of
 * granules below GC_TINY_FREELISTS; requests of 0 bytes use list 0, with objects of one granule.
 */
#ifndef GC_TINY_FL_H
#define GC_TINY_FL_H

#ifndef GC_GRANULE_BYTES
#if defined(__LP64__) || defined(_LP64) || defined(__x86_64__)
#define GC_GRANULE_BYTES 16
#else
#define GC_GRANULE_BYTES 8
#endif
#define GC_GRANULE_WORDS 2
#endif

/* Whole granules in n words, rounded down. */
#if GC_GRANULE_WORDS == 2
#define GC_WORDS_TO_GRANULES(n) ((n) >> 1)
#else
#define GC_WORDS_TO_GRANULES(n) ((n) * sizeof(void*) / GC_GRANULE_BYTES)
#endif

/* The number of lists in an array. */
#ifndef GC_TINY_FREELISTS
#if GC_GRANULE_BYTES == 16
#define GC_TINY_FREELISTS 25
#else
#define GC_TINY_FREELISTS 33
#endif
#endif

/* The object size, in bytes, of the i-th list; i is not 0. */
#define GC_RAW_BYTES_FROM_INDEX(i) ((i)*GC_GRANULE_BYTES)

#endif /* GC_TINY_FL_H */

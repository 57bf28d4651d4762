/*
 * gc_inline.h - allocation from free lists that the program keeps, without a call on the way.
 *
 *     static void *lists[GC_TINY_FREELISTS];     // one array a thread and kind; zeroed, in a root
 *
 *     void *pair(void *head, void *tail) {
 *       void *result;
 *       GC_CONS(result, head, tail, lists);
 *       return result;                           // null when out of memory
 *     }
 *
 * An array of lists must be visible to the collector and belong to one thread at a time and to one
 * kind. Objects on the lists are reachable, so unused ones are never reclaimed. But for
 * pointer-free ones: the collector does not follow the links in them, so such lists are only good
 * while no collection can come (GC_disable). A program that wants more should use GC_malloc(),
 * whose fast path in this library is as short.
 *
 * These macros ask for objects without bdwgc's byte of padding. With bdwgc's library they are safe
 * only when interior pointers are off (GC_set_all_interior_pointers); with this one, always.
 */
#ifndef GC_INLINE_H
#define GC_INLINE_H

#include "gc.h"
#include "gc_tiny_fl.h"

#if GC_GNUC_PREREQ(3, 0)
#define GC_EXPECT(expr, outcome) __builtin_expect(expr, outcome)
#else
#define GC_EXPECT(expr, outcome) (expr)
#endif

#ifndef GC_ASSERT
#ifdef NDEBUG
#define GC_ASSERT(expr) /* nothing */
#else
#include <assert.h>
#define GC_ASSERT(expr) assert(expr)
#endif
#endif

#ifndef GC_PREFETCH_FOR_WRITE
#if GC_GNUC_PREREQ(3, 0) && !defined(GC_NO_PREFETCH_FOR_WRITE)
#define GC_PREFETCH_FOR_WRITE(x) __builtin_prefetch((x), 1)
#else
#define GC_PREFETCH_FOR_WRITE(x) (void)0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The two kinds that always exist. */
#define GC_I_PTRFREE 0 /* what GC_malloc_atomic() allocates */
#define GC_I_NORMAL 1  /* what GC_malloc() allocates */

/*
 * Stores in *result the head of a list of new objects of size lb and the kind, linked through
 * their first words, and otherwise zeroed unless the kind is not; null if there is no memory.
 * *result must be visible to the collector, even for pointer-free kinds. Takes the lock.
 */
GC_API void GC_CALL GC_generic_malloc_many(size_t lb, int kind, void** result);

/* One object of a kind; kind GC_I_NORMAL is GC_malloc(). The second never uses thread-local lists.
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL GC_malloc_kind(size_t lb, int kind);
#ifdef GC_THREADS
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_kind_global(size_t lb, int kind);
#else
#define GC_malloc_kind_global GC_malloc_kind
#endif

/* Publishes a list's new head; other threads' markers may read it meanwhile. */
#if defined(GC_THREADS) && defined(AO_HAVE_store)
#define GC_FAST_M_AO_STORE(my_fl, next) AO_store((volatile AO_t*)(my_fl), (AO_t)(next))
#else
#define GC_FAST_M_AO_STORE(my_fl, next) (void)(*(my_fl) = (next))
#endif

/*
 * The general form; the ones below fix some of its arguments.
 *   result        variable that gets the object
 *   granules      its size; GC_TINY_FREELISTS or more uses default_expr
 *   tiny_fl       the array of lists
 *   num_direct    how many granules of a size to allocate one at a time before its list is filled;
 *                 if not 0, the lists start as (void *)1 each and count up to it
 *   kind          the objects' kind
 *   default_expr  allocates one object in the ordinary way
 *   init          statement that initialises result's first word, before the rest of the list can
 *                 be lost by a collection
 * A list's head is an object, null, or a count that is too small for an address. A list that
 * stays empty after an attempt to fill it means that memory is out: result is the oom function's.
 */
#define GC_FAST_MALLOC_GRANS(result, granules, tiny_fl, num_direct, kind, default_expr, init) \
  do {                                                                                        \
    if (GC_EXPECT((granules) >= GC_TINY_FREELISTS, 0)) {                                      \
      result = (default_expr);                                                                \
    } else {                                                                                  \
      void** gc_list_ = (tiny_fl) + (granules);                                               \
      void* gc_head_ = *gc_list_;                                                             \
      const GC_word gc_direct_ = (GC_word)(num_direct);                                       \
      if ((GC_word)gc_head_ <= gc_direct_ + GC_TINY_FREELISTS + 1) {                          \
        if (gc_head_ != 0 && (GC_word)gc_head_ <= gc_direct_) {                               \
          /* Too few allocated yet to fill a list: count, and take one. */                    \
          GC_FAST_M_AO_STORE(gc_list_, (char*)gc_head_ + (granules) + 1);                     \
          result = (default_expr);                                                            \
          break;                                                                              \
        }                                                                                     \
        GC_generic_malloc_many(                                                               \
            (granules) == 0 ? GC_GRANULE_BYTES : GC_RAW_BYTES_FROM_INDEX(granules), kind,     \
            gc_list_);                                                                        \
        gc_head_ = *gc_list_;                                                                 \
        if (gc_head_ == 0) {                                                                  \
          result = (*GC_get_oom_fn())((granules)*GC_GRANULE_BYTES);                           \
          break;                                                                              \
        }                                                                                     \
      }                                                                                       \
      {                                                                                       \
        void* gc_rest_ = *(void**)gc_head_;                                                   \
        result = (void*)gc_head_;                                                             \
        GC_FAST_M_AO_STORE(gc_list_, gc_rest_);                                               \
        init;                                                                                 \
        GC_PREFETCH_FOR_WRITE(gc_rest_);                                                      \
        if ((kind) != GC_I_PTRFREE) {                                                         \
          GC_end_stubborn_change(gc_list_);                                                   \
          GC_reachable_here(gc_rest_);                                                        \
        }                                                                                     \
        GC_ASSERT(GC_size(result) >= (granules)*GC_GRANULE_BYTES);                            \
        GC_ASSERT((kind) == GC_I_PTRFREE || ((GC_word*)result)[1] == 0);                      \
      }                                                                                       \
    }                                                                                         \
  } while (0)

/* Granules that hold n words. */
#define GC_WORDS_TO_WHOLE_GRANULES(n) GC_WORDS_TO_GRANULES((n) + GC_GRANULE_WORDS - 1)

/* An object of n words (not bytes). */
#define GC_MALLOC_WORDS_KIND(result, n, tiny_fl, kind, init)                       \
  do {                                                                             \
    size_t gc_grans_ = GC_WORDS_TO_WHOLE_GRANULES(n);                              \
    GC_FAST_MALLOC_GRANS(result, gc_grans_, tiny_fl, 0, kind,                      \
                         GC_malloc_kind(gc_grans_* GC_GRANULE_BYTES, kind), init); \
  } while (0)
#define GC_MALLOC_WORDS(result, n, tiny_fl) \
  GC_MALLOC_WORDS_KIND(result, n, tiny_fl, GC_I_NORMAL, *(void**)(result) = 0)

/* Between GC_disable() and GC_enable() only; see above. */
#define GC_MALLOC_ATOMIC_WORDS(result, n, tiny_fl) \
  GC_MALLOC_WORDS_KIND(result, n, tiny_fl, GC_I_PTRFREE, (void)0)

/* An object of two words with these contents, or null. */
#define GC_CONS(result, first, second, tiny_fl)                     \
  do {                                                              \
    void* gc_first_ = (void*)(first);                               \
    void* gc_second_ = (void*)(second);                             \
    GC_MALLOC_WORDS_KIND(result, 2, tiny_fl, GC_I_NORMAL, (void)0); \
    if ((result) != 0) {                                            \
      *(void**)(result) = gc_first_;                                \
      GC_PTR_STORE_AND_DIRTY((void**)(result) + 1, gc_second_);     \
      GC_reachable_here(gc_first_);                                 \
    }                                                               \
  } while (0)

/* Prints the library's free list of a kind and size, for people. Unsynchronised. */
GC_API void GC_CALL GC_print_free_list(int kind, size_t sz_in_granules);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_INLINE_H */

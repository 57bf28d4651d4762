/* The typed heap: objects that the collector may move.
 *
 *   jd_layout* pair = ...;  // see layout.h
 *   struct pair* p = (struct pair*)jd_new(pair);
 *   p->first = q;  // an ordinary store: there are no barriers
 *
 * Objects read as zero when they are new. They live beside what libgc's functions allocate, which
 * never moves: both may point to each other, and cycles through both die. An object moves only in a
 * collection, and only if nothing but typed words, roots and weak references mean it. A word that
 * may be a pointer (on a stack, in a register, in static data, in an object that libgc's functions
 * allocated) holds the object and pins it: it stays where it is for this collection. So a program
 * uses its objects through ordinary local variables, and needs to declare nothing but its threads.
 *
 * What must not be done: keep the only pointer to an object where the collector does not look (in
 * memory of malloc's, or disguised), or rely on an address as a number (jd_address_hash is for
 * that); free or resize by hand (GC_free, GC_realloc) an object of libgc's functions that these
 * functions were given, for its pin, hash, finalizer and weak references would be those of the next
 * one there; and touch an object from a thread that the collector does not know: such a thread is
 * neither stopped nor looked at, and finds objects moved or freed under its hands. It knows threads
 * that have allocated, those that GC_pthread_create made (with GC_THREADS defined, <gc/gc.h> has
 * pthread_create mean that), the scheduler's workers, and those that called jd_thread_register.
 * Functions may be called by every such thread, none by a signal handler, nor by a function that
 * the collector calls in the middle of a collection (GC_set_on_collection_event).
 */
#ifndef JACKDAW_HEAP_H
#define JACKDAW_HEAP_H

#include <jackdaw/layout.h>
#include <jackdaw/thread_word.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Threads ---- */

/* Makes the calling thread known to the collector, until it ends; an allocation does that, too. For
 * threads that other functions than GC_pthread_create have made, before they read their first
 * object. 0 if memory has run out. */
JD_HEAP_API int jd_thread_register(void);

/* ---- The heap ---- */

/* How objects move. JD_EVACUATE: the heap is marked, and where blocks are sparse, their objects
 * move together. JD_MCC: as Smith & Morrisett's collector does it; every collection copies all that
 * is not pinned; homogeneous layouts become JD_HEADER ones. JD_NON_MOVING: typed objects stay where
 * they are. In none of them has the incremental mode (GC_enable_incremental) any effect: while a
 * program has layouts, every collection is a full one and stops the world. */
enum jd_policy { JD_EVACUATE = 0, JD_MCC = 1, JD_NON_MOVING = 2 };

/* Chooses the policy. The last call counts that comes before the first layout is defined, root
 * added or weak reference made; 0 if it is too late, or if the value is none of them.
 * JACKDAW_POLICY overrules it, where this still returns 1 (jd_heap_get_policy tells). Never needed:
 * the default is JD_EVACUATE.
 */
JD_HEAP_API int jd_heap_set_policy(enum jd_policy policy);
JD_HEAP_API enum jd_policy jd_heap_get_policy(void);

/* ---- Allocation ---- */

/* The beginning of what a thread allocates from: [cursor, limit) is free and reads as zero. */
typedef struct jd_hole {
  char* cursor;
  char* limit;
  /* For layouts with `in_order` and for elements: byte a / 16 of these is 1 if an object's memory
   * begins at address a, so that the collector knows. The hole's own thread writes them. */
  char* starts;
} jd_hole;

/* The calling thread's holes; a layout says which is its own. This and the few lines of jd_new are
 * all that a compiler needs to emit the fast path itself: store the layout's header, if there is
 * one, and the start byte, before the cursor. In a task the word is to be looked up at each
 * allocation, for after a fork a function may go on in another thread (thread_word.h). */
extern __thread jd_hole* const* jd_holes __attribute__((tls_model("initial-exec")))
__attribute__((visibility("default")));

/* What the inline functions come to when a hole is used up. */
JD_HEAP_API void* jd_new_slowly(const jd_layout* layout);
JD_HEAP_API void* jd_new_array_slowly(const jd_layout* layout, size_t elements);

/* A new object without elements, of zeros. Null when memory has run out (GC_set_oom_fn's function
 * is asked first). It keeps its size, and only a collection frees it: GC_realloc warns and returns
 * null, GC_free warns and does nothing. */
static inline void* jd_new(const jd_layout* layout) {
  jd_hole* const* holes;
  jd_hole* hole;
  char* memory;
  char* next;
  JD_READ_THREAD_WORD(holes, jd_holes);
  hole = holes[layout->hole];
  memory = __atomic_load_n(&hole->cursor, __ATOMIC_RELAXED);
  /* In this order: a thread that is stopped in between still has the address in a register. */
  __atomic_signal_fence(__ATOMIC_ACQUIRE);
  /* Of numbers: a hole that is empty may have null pointers, to which nothing can be added. */
  if (__builtin_expect((uintptr_t)memory + layout->bytes > (uintptr_t)hole->limit, 0)) {
    return jd_new_slowly(layout);
  }
  next = memory + layout->bytes;
  if (layout->header != 0) {
    *(uint64_t*)memory = layout->header;
    if (layout->in_order) {
      __atomic_store_n(&hole->starts[(uintptr_t)memory / 16], 1, __ATOMIC_RELAXED);
    }
  }
  __atomic_signal_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&hole->cursor, next, __ATOMIC_RELAXED);
  return memory + layout->offset;
}

/* A new object with that many elements. Null when memory has run out, or if no object can be so
 * large. A layout without elements ends the program with a message, unless 0 are asked for. */
static inline void* jd_new_array(const jd_layout* layout, size_t elements) {
  if (__builtin_expect(elements <= layout->most_inline, 1)) {
    size_t used = (layout->fixed + elements * layout->element + 7) & ~(size_t)7;
    size_t bytes = (used + 15) & ~(size_t)15;
    jd_hole* const* holes;
    jd_hole* hole;
    char* memory;
    JD_READ_THREAD_WORD(holes, jd_holes);
    hole = holes[layout->array_hole];
    memory = __atomic_load_n(&hole->cursor, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    if (__builtin_expect(
            bytes <= layout->most_inline && (uintptr_t)memory + bytes <= (uintptr_t)hole->limit,
            1)) {
      if (layout->source == JD_HEADER) {
        *(uint64_t*)memory = layout->header + ((uint64_t)(used - layout->fixed) << 21);
      } else {
        *(uint64_t*)memory = layout->header;
        *(uint64_t*)(memory + layout->count_offset) = elements;
      }
      __atomic_store_n(&hole->starts[(uintptr_t)memory / 16], 1, __ATOMIC_RELAXED);
      __atomic_signal_fence(__ATOMIC_RELEASE);
      __atomic_store_n(&hole->cursor, memory + bytes, __ATOMIC_RELAXED);
      return memory + layout->offset;
    }
  }
  return jd_new_array_slowly(layout, elements);
}

/* The bytes of an object as it was allocated (its elements included, a header word not), rounded up
 * to 8; of a JD_HOMOGENEOUS layout with elements, all that the memory has room for as a rule; 0 if
 * the address is not an object's first byte, and for an object without bytes (an array of no
 * elements behind a header), which jd_layout_of tells apart. A free place that a thread has ready
 * for its next objects counts as one. Of an object without a layout it is what GC_size says: the
 * bytes of its place, which may be more than were asked for. */
JD_HEAP_API size_t jd_size_of(const void* object);

/* ---- Holding objects ---- */

/* Pins an object, and holds it, until it was unpinned as often. For memory that foreign code was
 * given. 0 when memory has run out; an address that is not an object's first byte ends the program
 * with a message, as does unpinning what is not pinned. (A free place as with jd_size_of.) */
JD_HEAP_API int jd_pin(void* object);
JD_HEAP_API void jd_unpin(void* object);

/* Makes a variable a precise root: what it points to lives, and it is rewritten when that moves.
 * For variables in memory that the collector does not look at. (Static data and stacks it looks at
 * anyway, and pins what it finds there; but not because of a word that is registered so.) The
 * variable must hold what a pointer word of an object may hold until it is removed. 0 when memory
 * has run out. Adding twice is adding once. A variable that is not aligned as a pointer ends the
 * program. */
JD_HEAP_API int jd_root_add(void* variable);
JD_HEAP_API void jd_root_remove(void* variable);

/* ---- Moving ---- */

/* Counts the collections that moved objects: while it is the same, so are all addresses. */
JD_HEAP_API uint64_t jd_epoch(void);
/* A number that stays an object's own wherever it moves; it takes some memory as long as the object
 * lives. For any object of the heap, by the address of its first byte; any other pointer ends the
 * program with a message. 0 if memory has run out, and the object has none yet. */
JD_HEAP_API uint64_t jd_address_hash(const void* object);
/* A collection. With `compact`, all that may move does where that frees memory, in as many as three
 * collections, and what is free goes back to the system. Does nothing while collections are
 * disabled (GC_disable, GC_DONT_GC). */
JD_HEAP_API void jd_collect(int compact);

/* ---- Weak references ---- */

/* Objects themselves, which live as long as they are referred to, and move. They have layouts
 * (jd_layout_of), with which jd_new makes none: it ends the program with a message. What they are
 * given is what a pointer word may hold (layout.h), tags included, and comes back so: rewritten
 * where it moved, null where it died. What lies outside of the heap never dies. */
typedef struct jd_weak jd_weak;
typedef struct jd_ephemeron jd_ephemeron;

/* A reference that does not hold its object, and reads as null as soon as nothing else does (before
 * finalizers see the object). Null when memory has run out. */
JD_HEAP_API jd_weak* jd_weak_new(void* object);
JD_HEAP_API void* jd_weak_get(const jd_weak* weak);

/* A pair whose value lives as long as the ephemeron and the key do (Hayes, "Ephemerons: A New
 * Finalization Mechanism", 1997). Both read as null once nothing but ephemerons' values leads to
 * the key, and with a null key from the start; the value is null from then on, whatever it is set
 * to. A chain in which each value leads to the next key can take a collection time that is
 * quadratic in its length. */
JD_HEAP_API jd_ephemeron* jd_ephemeron_new(void* key, void* value);
JD_HEAP_API void* jd_ephemeron_key(const jd_ephemeron* ephemeron);
JD_HEAP_API void* jd_ephemeron_value(const jd_ephemeron* ephemeron);
JD_HEAP_API void jd_ephemeron_set_value(jd_ephemeron* ephemeron, void* value);

/* Has function(object, data) called, as GC_register_finalizer does, once nothing refers to the
 * object any more; objects that it refers to, the values of ephemerons with living keys included,
 * are finalized later, and an object that leads to itself never. (A key and a value of the same
 * ephemeron may be finalized together.) The object may move until then.
 * `data` is held. A null function takes the finalizer back. 0 when memory has run out; an address
 * that is not an object's first byte ends the program with a message. */
JD_HEAP_API int jd_finalizer(void* object, void (*function)(void* object, void* data), void* data);

/* ---- Measurements ---- */

/* Since the start. Times are in nanoseconds of a stopped world. */
typedef struct jd_heap_counts {
  uint64_t collections;
  uint64_t moving_collections;
  uint64_t moved_objects;
  uint64_t moved_bytes;
  uint64_t pinned_objects;  /* in blocks that were to be emptied: by the last moving collection */
  uint64_t promoted_blocks; /* JD_MCC: kept because of pins, by the last collection */
  uint64_t dead_bytes;      /* JD_MCC: on such blocks, by the last collection */
  uint64_t typed_bytes;     /* live, as of the last collection */
  uint64_t mark_ns;
  uint64_t pin_ns;
  uint64_t move_ns; /* JD_MCC: the traversal, which copies */
  uint64_t fix_ns;
  uint64_t sweep_ns;
} jd_heap_counts;
JD_HEAP_API void jd_heap_get_counts(jd_heap_counts* counts);

#ifdef __cplusplus
}
#endif

#endif

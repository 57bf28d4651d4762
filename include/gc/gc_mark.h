/*
 * gc_mark.h - for authors of runtimes: own kinds of objects, own mark procedures, own roots.
 *
 * A kind is a number that every object has; it says how the object is marked and whether it is
 * zeroed. The mark descriptor of an object is a word whose two low bits say what the rest means.
 */
#ifndef GC_MARK_H
#define GC_MARK_H

#ifndef GC_H
#include "gc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Mark procedures ---- */

/* A place on the mark stack; a program only passes pointers to it along. */
#if defined(GC_BUILD) || defined(NOT_GCBUILD)
struct GC_ms_entry;
#else
struct GC_ms_entry {
  void* opaque;
};
#endif

/*
 * Marks what the object at addr points to: calls GC_MARK_AND_PUSH() for each pointer, passing the
 * mark stack's pointer on from call to call, and returns the last. env is the environment of the
 * descriptor. It runs with the world stopped and may run in several threads at once. It must cope
 * with objects that are zero but for their first word, and only find pointers that a conservative
 * search of the object would find, too. One call should look at about GC_PROC_BYTES.
 */
typedef struct GC_ms_entry* (*GC_mark_proc)(GC_word* addr, struct GC_ms_entry* mark_stack_ptr,
                                            struct GC_ms_entry* mark_stack_limit, GC_word env);
#define GC_PROC_BYTES 100

/* Marks the object, if obj is a pointer to one; src is where obj was found. */
GC_API struct GC_ms_entry* GC_CALL GC_mark_and_push(void* obj, struct GC_ms_entry* mark_stack_ptr,
                                                    struct GC_ms_entry* mark_stack_limit,
                                                    void** src);

/*
 * Addresses outside these bounds are no heap addresses. They change when the heap grows. Programs
 * read them through the macro, under the lock.
 */
GC_API void* GC_least_plausible_heap_addr;
GC_API void* GC_greatest_plausible_heap_addr;
#define GC_MARK_AND_PUSH(obj, msp, lim, src)                          \
  ((GC_word)(obj) >= (GC_word)GC_least_plausible_heap_addr &&         \
           (GC_word)(obj) <= (GC_word)GC_greatest_plausible_heap_addr \
       ? GC_mark_and_push(obj, msp, lim, src)                         \
       : (msp))

/* The indices of procedures: the first few are for compilers that need to know theirs. */
#define GC_LOG_MAX_MARK_PROCS 6
#define GC_MAX_MARK_PROCS (1 << GC_LOG_MAX_MARK_PROCS)
#define GC_RESERVED_MARK_PROCS 8
#define GC_GCJ_RESERVED_MARK_PROC_INDEX 0

/* Registers a procedure and returns its index. The _inner version runs under the lock. */
GC_API unsigned GC_CALL GC_new_proc(GC_mark_proc);
GC_API unsigned GC_CALL GC_new_proc_inner(GC_mark_proc);

/* ---- Mark descriptors ---- */

#define GC_DS_TAG_BITS 2
#define GC_DS_TAGS ((1 << GC_DS_TAG_BITS) - 1)

/* The object's first d bytes, a multiple of 4, are searched; 0 means none. */
#define GC_DS_LENGTH 0
/* The other bits, from the highest on, say for each word of the object whether it is searched. */
#define GC_DS_BITMAP 1
/* The object is marked by the procedure with an environment, built by GC_MAKE_PROC. */
#define GC_DS_PROC 2
#define GC_MAKE_PROC(proc_index, env)                                                        \
  (((((GC_word)(env) << GC_LOG_MAX_MARK_PROCS) | (GC_word)(proc_index)) << GC_DS_TAG_BITS) | \
   GC_DS_PROC)
/*
 * The descriptor is elsewhere. d - 3, if not negative, is its offset in the object. If it is
 * negative, the object's first word is the address of a table, and the descriptor is in there at
 * offset -(d - 3) - GC_INDIR_PER_OBJ_BIAS.
 */
#define GC_DS_PER_OBJECT 3
#define GC_INDIR_PER_OBJ_BIAS 0x10

/* ---- Kinds ---- */

/*
 * A new kind. free_list comes from GC_new_free_list() and is used for one kind. Objects have the
 * descriptor mark_descriptor_template, plus their size if add_size_to_descriptor is 1; they are
 * zeroed if clear_new_objects is 1. The _inner versions run under the lock; the others take it.
 * There are 192 kinds in all (bdwgc: 16), the library's own included; one too many aborts.
 */
GC_API void** GC_CALL GC_new_free_list(void);
GC_API void** GC_CALL GC_new_free_list_inner(void);
GC_API unsigned GC_CALL GC_new_kind(void** free_list, GC_word mark_descriptor_template,
                                    int add_size_to_descriptor, int clear_new_objects)
    GC_ATTR_NONNULL(1);
GC_API unsigned GC_CALL GC_new_kind_inner(void** free_list, GC_word mark_descriptor_template,
                                          int add_size_to_descriptor, int clear_new_objects)
    GC_ATTR_NONNULL(1);

/*
 * An object of a kind. generic_malloc: any kind. ignore_off_page: with the promise of
 * GC_malloc_ignore_off_page(). uncollectable: reclaimed by GC_free() only. generic_or_special: as
 * the allocator of that kind would, for the kinds that GC_get_kind_and_size() reports, but not
 * for those of gc_gcj.h and gc_typed.h.
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL GC_generic_malloc(size_t lb, int knd);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_generic_malloc_ignore_off_page(size_t lb, int knd);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_generic_malloc_uncollectable(size_t lb, int knd);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_generic_or_special_malloc(size_t size, int knd);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_generic_or_special_malloc(size_t size, int knd, GC_EXTRA_PARAMS);
#ifdef GC_DEBUG
#define GC_GENERIC_OR_SPECIAL_MALLOC(sz, knd) GC_debug_generic_or_special_malloc(sz, knd, GC_EXTRAS)
#else
#define GC_GENERIC_OR_SPECIAL_MALLOC(sz, knd) GC_generic_or_special_malloc(sz, knd)
#endif

/* Bytes of a block, whose objects are of one kind and size. As of bdwgc 8.3. */
GC_API GC_ATTR_CONST size_t GC_CALL GC_get_hblk_size(void);

/* The kind of the object that starts at the address, and its size if psize is not null. */
GC_API int GC_CALL GC_get_kind_and_size(const void*, size_t* psize) GC_ATTR_NONNULL(1);

/* Writes a description of p, at most GC_TYPE_DESCR_LEN bytes with the final zero. */
typedef void(GC_CALLBACK* GC_describe_type_fn)(void* p, char* out_buf);
#define GC_TYPE_DESCR_LEN 40
/* Sets it for the objects of a kind that the debug allocators report. */
GC_API void GC_CALL GC_register_describe_type_fn(int kind, GC_describe_type_fn);

/* The bytes before an object of the debug allocators, as a function and as an old variable. */
GC_API GC_ATTR_CONST size_t GC_CALL GC_get_debug_header_size(void);
#define GC_USR_PTR_FROM_BASE(p) ((void*)((char*)(p) + GC_get_debug_header_size()))
GC_API GC_ATTR_DEPRECATED
#ifdef GC_BUILD
    const
#endif
        size_t GC_debug_header_size;

/* ---- Marking and roots ---- */

/*
 * Called with the lock held at the start of each full collection. Null by default; must not call
 * the collector. Setter and getter take the lock.
 */
typedef void(GC_CALLBACK* GC_start_callback_proc)(void);
GC_API void GC_CALL GC_set_start_callback(GC_start_callback_proc);
GC_API GC_start_callback_proc GC_CALL GC_get_start_callback(void);

/*
 * Called in each collection, with the world stopped, to mark roots that only the program knows:
 * by GC_push_all() and the like. A program's procedure calls the one it replaced. Unsynchronised.
 */
typedef void(GC_CALLBACK* GC_push_other_roots_proc)(void);
GC_API void GC_CALL GC_set_push_other_roots(GC_push_other_roots_proc);
GC_API GC_push_other_roots_proc GC_CALL GC_get_push_other_roots(void);

/*
 * Search [bottom, top) for pointers: soon; at once, as a stack is searched; soon, and only in pages
 * that were written to, unless all is non-zero. The last searches the finalizers' tables. Only
 * during marking.
 */
GC_API void GC_CALL GC_push_all(void* bottom, void* top);
GC_API void GC_CALL GC_push_all_eager(void* bottom, void* top);
GC_API void GC_CALL GC_push_conditional(void* bottom, void* top, int all);
GC_API void GC_CALL GC_push_finalizer_structures(void);

/* The mark of the object that starts at the address: asked, cleared, set. Under the lock. In the
 * incremental mode a mark stays until the next full collection: an object that is marked here is
 * not scanned for that. */
GC_API int GC_CALL GC_is_marked(const void*) GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_clear_mark_bit(const void*) GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_set_mark_bit(const void*) GC_ATTR_NONNULL(1);

/* Calls the procedure, under the lock that the caller holds, for each marked object. */
typedef void(GC_CALLBACK* GC_reachable_object_proc)(void* obj, size_t bytes, void* client_data);
GC_API void GC_CALL GC_enumerate_reachable_objects_inner(GC_reachable_object_proc,
                                                         void* client_data) GC_ATTR_NONNULL(1);

/* Non-zero if the address is in a root that is looked up anew in each collection. Under the lock.
 */
GC_API int GC_CALL GC_is_tmp_root(void*);

/* Clears part of the unused stack below the caller, and returns its argument. */
GC_API void* GC_CALL GC_clear_stack(void*);

/* Declared by 8.2.2, defined neither by Debian's library nor by this one. */
GC_API void GC_CALL GC_print_trace(GC_word gc_no);
GC_API void GC_CALL GC_print_trace_inner(GC_word gc_no);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_MARK_H */

/*
 * api/debug.h - the GC_MALLOC family of macros, the debug allocators behind them, and the pointer
 * checks.
 *
 * Without GC_DEBUG the macros are the plain functions. With it each object carries a header with
 * the place of its allocation, and marks around it that GC_gcollect() and GC_FREE() check. A
 * program frees and reallocates with the family it allocated with: the addresses differ.
 */
#ifndef GC_API_DEBUG_H
#define GC_API_DEBUG_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The place of a call, as arguments and as parameters. */
#define GC_EXTRAS __FILE__, __LINE__
#define GC_EXTRA_PARAMS const char *s, int i

GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc(size_t size_in_bytes, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc_atomic(size_t size_in_bytes, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc_uncollectable(size_t size_in_bytes, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc_atomic_uncollectable(size_t size_in_bytes, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc_ignore_off_page(size_t size_in_bytes, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc_atomic_ignore_off_page(size_t size_in_bytes, GC_EXTRA_PARAMS);
GC_API GC_ATTR_DEPRECATED void* GC_CALL GC_debug_malloc_stubborn(size_t size_in_bytes,
                                                                 GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC char* GC_CALL GC_debug_strdup(const char*, GC_EXTRA_PARAMS);
GC_API GC_ATTR_MALLOC char* GC_CALL GC_debug_strndup(const char*, size_t, GC_EXTRA_PARAMS)
    GC_ATTR_NONNULL(1);
GC_API void* GC_CALL GC_debug_realloc(void* old_object, size_t new_size_in_bytes, GC_EXTRA_PARAMS)
    GC_ATTR_ALLOC_SIZE(2);
GC_API void* GC_CALL GC_debug_reallocf(void* old_object, size_t new_size_in_bytes, GC_EXTRA_PARAMS)
    GC_ATTR_ALLOC_SIZE(2);
GC_API void GC_CALL GC_debug_free(void*);
GC_API void GC_CALL GC_debug_freezero(void*, size_t bytes);
GC_API GC_ATTR_DEPRECATED void GC_CALL GC_debug_change_stubborn(const void*);
GC_API void GC_CALL GC_debug_end_stubborn_change(const void*) GC_ATTR_NONNULL(1);
GC_API void GC_CALL GC_debug_ptr_store_and_dirty(void* p, const void* q);

/* GC_debug_malloc() and GC_debug_realloc() with malloc's and realloc's parameters: the place is
 * unknown. */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_debug_malloc_replacement(size_t size_in_bytes);
GC_API GC_ATTR_ALLOC_SIZE(2) void* GC_CALL
    GC_debug_realloc_replacement(void* object_addr, size_t size_in_bytes);

#ifdef GC_DEBUG_REPLACEMENT
#define GC_MALLOC(sz) GC_debug_malloc_replacement(sz)
#define GC_REALLOC(old, sz) GC_debug_realloc_replacement(old, sz)
#elif defined(GC_DEBUG)
#define GC_MALLOC(sz) GC_debug_malloc(sz, GC_EXTRAS)
#define GC_REALLOC(old, sz) GC_debug_realloc(old, sz, GC_EXTRAS)
#else
#define GC_MALLOC(sz) GC_malloc(sz)
#define GC_REALLOC(old, sz) GC_realloc(old, sz)
#endif

#ifdef GC_DEBUG
#define GC_MALLOC_ATOMIC(sz) GC_debug_malloc_atomic(sz, GC_EXTRAS)
#define GC_MALLOC_UNCOLLECTABLE(sz) GC_debug_malloc_uncollectable(sz, GC_EXTRAS)
#define GC_MALLOC_ATOMIC_UNCOLLECTABLE(sz) GC_debug_malloc_atomic_uncollectable(sz, GC_EXTRAS)
#define GC_MALLOC_IGNORE_OFF_PAGE(sz) GC_debug_malloc_ignore_off_page(sz, GC_EXTRAS)
#define GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(sz) GC_debug_malloc_atomic_ignore_off_page(sz, GC_EXTRAS)
#define GC_STRDUP(s) GC_debug_strdup(s, GC_EXTRAS)
#define GC_STRNDUP(s, sz) GC_debug_strndup(s, sz, GC_EXTRAS)
#define GC_FREE(p) GC_debug_free(p)
#define GC_FREEZERO(p, sz) GC_debug_freezero(p, sz)
#define GC_FREEZEROALL(p) GC_debug_freezero(p, ~(size_t)0)
#define GC_REALLOCF(old, sz) GC_debug_reallocf(old, sz, GC_EXTRAS)
#define GC_REGISTER_FINALIZER(p, f, d, of, od) GC_debug_register_finalizer(p, f, d, of, od)
#define GC_REGISTER_FINALIZER_IGNORE_SELF(p, f, d, of, od) \
  GC_debug_register_finalizer_ignore_self(p, f, d, of, od)
#define GC_REGISTER_FINALIZER_NO_ORDER(p, f, d, of, od) \
  GC_debug_register_finalizer_no_order(p, f, d, of, od)
#define GC_REGISTER_FINALIZER_UNREACHABLE(p, f, d, of, od) \
  GC_debug_register_finalizer_unreachable(p, f, d, of, od)
#define GC_END_STUBBORN_CHANGE(p) GC_debug_end_stubborn_change(p)
#define GC_PTR_STORE_AND_DIRTY(p, q) GC_debug_ptr_store_and_dirty(p, q)
#define GC_GENERAL_REGISTER_DISAPPEARING_LINK(link, obj) \
  GC_general_register_disappearing_link(link, GC_base((void*)(obj)))
#define GC_REGISTER_LONG_LINK(link, obj) GC_register_long_link(link, GC_base((void*)(obj)))
#define GC_REGISTER_DISPLACEMENT(n) GC_debug_register_displacement(n)
#else
#define GC_MALLOC_ATOMIC(sz) GC_malloc_atomic(sz)
#define GC_MALLOC_UNCOLLECTABLE(sz) GC_malloc_uncollectable(sz)
#define GC_MALLOC_ATOMIC_UNCOLLECTABLE(sz) GC_malloc_atomic_uncollectable(sz)
#define GC_MALLOC_IGNORE_OFF_PAGE(sz) GC_malloc_ignore_off_page(sz)
#define GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(sz) GC_malloc_atomic_ignore_off_page(sz)
#define GC_STRDUP(s) GC_strdup(s)
#define GC_STRNDUP(s, sz) GC_strndup(s, sz)
#define GC_FREE(p) GC_free(p)
#define GC_FREEZERO(p, sz) GC_freezero(p, sz)
#define GC_FREEZEROALL(p) GC_freezero(p, ~(size_t)0)
#define GC_REALLOCF(old, sz) GC_reallocf(old, sz)
#define GC_REGISTER_FINALIZER(p, f, d, of, od) GC_register_finalizer(p, f, d, of, od)
#define GC_REGISTER_FINALIZER_IGNORE_SELF(p, f, d, of, od) \
  GC_register_finalizer_ignore_self(p, f, d, of, od)
#define GC_REGISTER_FINALIZER_NO_ORDER(p, f, d, of, od) \
  GC_register_finalizer_no_order(p, f, d, of, od)
#define GC_REGISTER_FINALIZER_UNREACHABLE(p, f, d, of, od) \
  GC_register_finalizer_unreachable(p, f, d, of, od)
#define GC_END_STUBBORN_CHANGE(p) GC_end_stubborn_change(p)
#define GC_PTR_STORE_AND_DIRTY(p, q) GC_ptr_store_and_dirty(p, q)
#define GC_GENERAL_REGISTER_DISAPPEARING_LINK(link, obj) \
  GC_general_register_disappearing_link(link, obj)
#define GC_REGISTER_LONG_LINK(link, obj) GC_register_long_link(link, obj)
#define GC_REGISTER_DISPLACEMENT(n) GC_register_displacement(n)
#endif

/* An object of a type. The type must be such that "t *" is the pointer to it. */
#define GC_NEW(t) ((t*)GC_MALLOC(sizeof(t)))
#define GC_NEW_ATOMIC(t) ((t*)GC_MALLOC_ATOMIC(sizeof(t)))
#define GC_NEW_UNCOLLECTABLE(t) ((t*)GC_MALLOC_UNCOLLECTABLE(sizeof(t)))

#ifdef GC_REQUIRE_WCSDUP
#ifdef __cplusplus
} /* extern "C" */
#endif
#include <wchar.h>
#ifdef __cplusplus
extern "C" {
#endif
/* A pointer-free copy of a wide string; null when out of memory. Not part of the library. */
static __inline__ wchar_t* GC_wcsdup(const wchar_t* str) {
  size_t bytes = (wcslen(str) + 1) * sizeof(wchar_t);
  wchar_t* copy = (wchar_t*)GC_malloc_atomic(bytes);
  return copy ? wmemcpy(copy, str, bytes / sizeof(wchar_t)) : copy;
}
static __inline__ wchar_t* GC_debug_wcsdup(const wchar_t* str, GC_EXTRA_PARAMS) {
  size_t bytes = (wcslen(str) + 1) * sizeof(wchar_t);
  wchar_t* copy = (wchar_t*)GC_debug_malloc_atomic(bytes, s, i);
  return copy ? wmemcpy(copy, str, bytes / sizeof(wchar_t)) : copy;
}
#ifdef GC_DEBUG
#define GC_WCSDUP(s) GC_debug_wcsdup(s, GC_EXTRAS)
#else
#define GC_WCSDUP(s) GC_wcsdup(s)
#endif
#endif /* GC_REQUIRE_WCSDUP */

/* ---- Pointer checks ---- */

/*
 * Each returns its (first) argument, and reports a violation through the function variable of its
 * name; the default functions print to the log and abort.
 */
/* p and q point into the same object, or both outside the heap. */
GC_API void* GC_CALL GC_same_obj(void* p, void* q);
/*
 * p is a place where the collector looks for pointers. Places are passed that the program's root
 * function might name, or a stack that the collector does not know; so is every place in a typed
 * object, and every one outside the heap while another thread has the lock.
 */
GC_API void* GC_CALL GC_is_visible(void* p);
/* If p points into the heap, it holds an object there. Always so with interior pointers on. */
GC_API void* GC_CALL GC_is_valid_displacement(void* p);
/* *p += how_much bytes, which must stay in the same object. The new, or the old, value. */
GC_API void* GC_CALL GC_pre_incr(void** p, ptrdiff_t how_much) GC_ATTR_NONNULL(1);
GC_API void* GC_CALL GC_post_incr(void** p, ptrdiff_t how_much) GC_ATTR_NONNULL(1);

typedef void(GC_CALLBACK* GC_same_obj_print_proc_t)(void* p, void* q);
typedef void(GC_CALLBACK* GC_valid_ptr_print_proc_t)(void* p);
GC_API GC_same_obj_print_proc_t GC_same_obj_print_proc;
GC_API GC_valid_ptr_print_proc_t GC_is_valid_displacement_print_proc;
GC_API GC_valid_ptr_print_proc_t GC_is_visible_print_proc;
/* Never null. Setters and getters are unsynchronised. As of bdwgc 8.3. */
GC_API void GC_CALL GC_set_same_obj_print_proc(GC_same_obj_print_proc_t) GC_ATTR_NONNULL(1);
GC_API GC_same_obj_print_proc_t GC_CALL GC_get_same_obj_print_proc(void);
GC_API void GC_CALL GC_set_is_valid_displacement_print_proc(GC_valid_ptr_print_proc_t)
    GC_ATTR_NONNULL(1);
GC_API GC_valid_ptr_print_proc_t GC_CALL GC_get_is_valid_displacement_print_proc(void);
GC_API void GC_CALL GC_set_is_visible_print_proc(GC_valid_ptr_print_proc_t) GC_ATTR_NONNULL(1);
GC_API GC_valid_ptr_print_proc_t GC_CALL GC_get_is_visible_print_proc(void);

/* Pointer arithmetic that is checked with GC_DEBUG. x is evaluated more than once. */
#if defined(GC_DEBUG) && defined(__GNUC__)
#define GC_PTR_ADD3(x, n, type_of_result) ((type_of_result)GC_same_obj((x) + (n), (x)))
#define GC_PRE_INCR3(x, n, type_of_result) \
  ((type_of_result)GC_pre_incr((void**)(&(x)), (n) * sizeof(*x)))
#define GC_POST_INCR3(x, n, type_of_result) \
  ((type_of_result)GC_post_incr((void**)(&(x)), (n) * sizeof(*x)))
#define GC_PTR_ADD(x, n) GC_PTR_ADD3(x, n, __typeof__(x))
#define GC_PRE_INCR(x, n) GC_PRE_INCR3(x, n, __typeof__(x))
#define GC_POST_INCR(x) GC_POST_INCR3(x, 1, __typeof__(x))
#define GC_POST_DECR(x) GC_POST_INCR3(x, -1, __typeof__(x))
#else
#define GC_PTR_ADD(x, n) ((x) + (n))
#define GC_PRE_INCR(x, n) ((x) += (n))
#define GC_POST_INCR(x) ((x)++)
#define GC_POST_DECR(x) ((x)--)
#endif

/* Stores the pointer q at p, a place outside the stack; checked with GC_DEBUG. */
#ifdef GC_DEBUG
#define GC_PTR_STORE(p, q) \
  (*(void**)GC_is_visible((void*)(p)) = GC_is_valid_displacement((void*)(q)))
#else
#define GC_PTR_STORE(p, q) (*(void**)(p) = (void*)(q))
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_DEBUG_H */

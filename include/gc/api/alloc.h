/*
 * api/alloc.h - allocation. See api/debug.h for the GC_MALLOC family of macros, which is how most
 * programs call these functions.
 */
#ifndef GC_API_ALLOC_H
#define GC_API_ALLOC_H

#ifndef GC_H
#error "include <gc/gc.h>, not its parts"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An object of at least size_in_bytes, aligned to 16 bytes; a request of 0 bytes gets an object,
 * too. All of these may collect, and run finalizers, before they return.
 *
 *                                  searched for pointers   zeroed   reclaimed
 *   GC_malloc                      yes                     yes      when unreachable
 *   GC_malloc_atomic               no                      no       when unreachable
 *   GC_malloc_uncollectable        yes, always             yes      by GC_free() only
 *   GC_malloc_atomic_uncollectable no                      no       by GC_free() only
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL GC_malloc(size_t size_in_bytes);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL GC_malloc_atomic(size_t size_in_bytes);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_uncollectable(size_t size_in_bytes);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_atomic_uncollectable(size_t size_in_bytes);

/*
 * For large arrays: the program promises to keep a pointer into the first 256 bytes for as long as
 * it needs the object, so words that happen to look like pointers further in are ignored.
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_ignore_off_page(size_t size_in_bytes);
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(1) void* GC_CALL
    GC_malloc_atomic_ignore_off_page(size_t size_in_bytes);

/*
 * Several zeroed objects of size lb at once, linked through their first words; the last link is
 * null. At least one object, or null when out of memory. Walk the list with GC_NEXT() and clear
 * the link of each object before it is used.
 */
GC_API GC_ATTR_MALLOC void* GC_CALL GC_malloc_many(size_t lb);
#define GC_NEXT(p) (*(void**)(p))

/*
 * Pointer-free copies of a string. GC_strdup(NULL) is null; GC_strndup copies at most n
 * characters and always terminates. When out of memory: null, and errno is ENOMEM.
 */
GC_API GC_ATTR_MALLOC char* GC_CALL GC_strdup(const char*);
GC_API GC_ATTR_MALLOC char* GC_CALL GC_strndup(const char*, size_t n) GC_ATTR_NONNULL(1);

/*
 * An object whose address is a multiple of align, a power of two. It may be an interior address of
 * a larger object, so it is not always good for GC_free() and GC_realloc(). GC_posix_memalign
 * returns 0, EINVAL (align is no power of two, or less than sizeof(void *); *memptr is not touched)
 * or ENOMEM (*memptr becomes null).
 */
GC_API GC_ATTR_MALLOC GC_ATTR_ALLOC_SIZE(2) void* GC_CALL GC_memalign(size_t align, size_t lb);
GC_API int GC_CALL GC_posix_memalign(void** memptr, size_t align, size_t lb) GC_ATTR_NONNULL(1);

/*
 * Like realloc(): the object keeps its kind and the common part of its contents; what a growing
 * object gains is zero, unless it is pointer-free. A null object: as GC_malloc(). New size 0:
 * frees and returns null. On failure: null, and the old object is untouched. Any result other
 * than the old address means that the old object is freed. Not for explicitly typed objects.
 */
GC_API void* GC_CALL GC_realloc(void* old_object, size_t new_size_in_bytes) GC_ATTR_ALLOC_SIZE(2);

/*
 * Frees an object now, instead of waiting for a collection. p is null (nothing happens) or the
 * object's first byte. The object must have no finalizer and hold no registered links.
 */
GC_API void GC_CALL GC_free(void* p);

/* GC_realloc(), but on failure the old object is freed. As of bdwgc 8.3. */
GC_API void* GC_CALL GC_reallocf(void* old_object, size_t new_size_in_bytes) GC_ATTR_ALLOC_SIZE(2);
/*
 * GC_free() of an object whose first `bytes` bytes, or all of it if it has no more, are set to zero
 * before: for keys and the like. As of bdwgc 8.3.
 */
GC_API void GC_CALL GC_freezero(void* p, size_t bytes);

/* The first byte of the object that holds the address; null if there is none. */
GC_API void* GC_CALL GC_base(void* displaced_pointer);
/* Non-zero if the address lies in the collected heap, be there an object or not. */
GC_API int GC_CALL GC_is_heap_ptr(const void*);
/* The object's size, at least the size asked for. obj_addr is its first byte. */
GC_API size_t GC_CALL GC_size(const void* obj_addr) GC_ATTR_NONNULL(1);

/* "Stubborn" objects are gone; the names remain for old programs. */
GC_API GC_ATTR_DEPRECATED void* GC_CALL GC_malloc_stubborn(size_t);
GC_API GC_ATTR_DEPRECATED void GC_CALL GC_change_stubborn(const void*);
#define GC_MALLOC_STUBBORN(sz) GC_MALLOC(sz)
#define GC_NEW_STUBBORN(t) GC_NEW(t)
#define GC_CHANGE_STUBBORN(p) GC_change_stubborn(p)

/*
 * The object at p was changed: for bdwgc's manual reporting of stores (GC_set_manual_vdb_allowed).
 * Here nothing happens, since the kernel notes a program's stores. Follow it with
 * GC_reachable_here() on each pointer stored.
 */
GC_API void GC_CALL GC_end_stubborn_change(const void* p) GC_ATTR_NONNULL(1);
/* Stores the pointer q in *(void **)p and reports it as above. */
GC_API void GC_CALL GC_ptr_store_and_dirty(void* p, const void* q);

/* The object that ptr points to is alive at this point of the program, whatever is optimised. */
#if defined(__GNUC__)
#define GC_reachable_here(ptr) __asm__ __volatile__(" " : : "X"(ptr) : "memory")
#else
#define GC_reachable_here(ptr) GC_noop1((GC_word)(ptr))
#endif
GC_API void GC_CALL GC_noop1(GC_word);

/*
 * Pointers that the collector does not recognise. Turning one back into a pointer needs the lock
 * (GC_call_with_alloc_lock), or the object may go away in between.
 */
typedef GC_word GC_hidden_pointer;
#define GC_HIDE_POINTER(p) (~(GC_hidden_pointer)(p))
#define GC_REVEAL_POINTER(p) ((void*)GC_HIDE_POINTER(p))
#if defined(I_HIDE_POINTERS) || defined(GC_I_HIDE_POINTERS)
#define HIDE_POINTER(p) GC_HIDE_POINTER(p)
#define REVEAL_POINTER(p) GC_REVEAL_POINTER(p)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GC_API_ALLOC_H */

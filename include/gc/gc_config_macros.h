/*
 * gc_config_macros.h - what the other headers of this directory are built from: whether threads
 * are wanted, how a public symbol is declared, and the compiler attributes. Included by gc.h; a
 * program has no reason to include it alone.
 *
 * A program may define before its first #include:
 *   GC_THREADS                it has more than one thread: declares the thread functions and
 *                             redirects pthread_create and its family (gc_pthread_redirects.h)
 *   GC_NO_THREAD_REDIRECTS    as above, but leave pthread_create and its family alone
 *   GC_DEBUG                  GC_MALLOC and its family record file and line, and check bounds
 *   GC_API, GC_CALL, GC_CALLBACK, GC_ATTR_*   to replace a decoration chosen here
 *
 * GC_BUILD is for the library's own sources: it exports the symbols.
 */
#ifndef GC_CONFIG_MACROS_H_JACKDAW
#define GC_CONFIG_MACROS_H_JACKDAW

#include <stddef.h>
#ifdef __linux__
#include <features.h>
#endif

/* True when the compiler speaks GNU C of at least this version (clang claims 4.2). */
#if defined(__GNUC__) && defined(__GNUC_MINOR__)
#define GC_GNUC_PREREQ(major, minor) \
  (__GNUC__ > (major) || (__GNUC__ == (major) && __GNUC_MINOR__ >= (minor)))
#else
#define GC_GNUC_PREREQ(major, minor) 0
#endif

/* ---- Threads ---- */

/* Names that older programs use to say the same thing. */
#if defined(LINUX_THREADS) && !defined(GC_LINUX_THREADS)
#define GC_LINUX_THREADS
#endif
#if defined(USE_LD_WRAP) && !defined(GC_USE_LD_WRAP)
#define GC_USE_LD_WRAP
#endif

/* The library is always built for threads; GC_LINUX_THREADS implies GC_THREADS and back. */
#if (defined(GC_LINUX_THREADS) || defined(GC_BUILD)) && !defined(GC_THREADS)
#define GC_THREADS
#endif
#if defined(GC_THREADS) && defined(__linux__) && !defined(GC_LINUX_THREADS)
#define GC_LINUX_THREADS
#endif

#undef GC_PTHREADS
#ifdef GC_THREADS
#define GC_PTHREADS
#ifndef _REENTRANT
#define _REENTRANT 1
#endif
#ifndef GC_HAVE_PTHREAD_EXIT
#define GC_HAVE_PTHREAD_EXIT
#if GC_GNUC_PREREQ(2, 7)
#define GC_PTHREAD_EXIT_ATTRIBUTE __attribute__((__noreturn__))
#else
#define GC_PTHREAD_EXIT_ATTRIBUTE
#endif
#endif
#endif /* GC_THREADS */

/* Marks that a libgc header was seen; a few programs test it. */
#define __GC

/* ---- Declarations ---- */

#ifndef GC_API
#if defined(GC_BUILD) && GC_GNUC_PREREQ(4, 0)
#define GC_API extern __attribute__((__visibility__("default")))
#else
#define GC_API extern
#endif
#endif

/* Calling conventions of functions and of callbacks: nothing special on any platform of ours. */
#ifndef GC_CALL
#define GC_CALL
#endif
#ifndef GC_CALLBACK
#define GC_CALLBACK GC_CALL
#endif

/* ---- Attributes ---- */

/*
 * The result aliases no other pointer. An out-of-memory function may return an object that exists
 * already; a program that installs such a function defines GC_OOM_FUNC_RETURNS_ALIAS.
 */
#ifndef GC_ATTR_MALLOC
#if GC_GNUC_PREREQ(3, 1) && !defined(GC_OOM_FUNC_RETURNS_ALIAS)
#define GC_ATTR_MALLOC __attribute__((__malloc__))
#else
#define GC_ATTR_MALLOC
#endif
#endif

/* Which argument is the size of the result, or which two are its factors. */
#ifndef GC_ATTR_ALLOC_SIZE
#undef GC_ATTR_CALLOC_SIZE
#if GC_GNUC_PREREQ(4, 3) || defined(__clang__)
#define GC_ATTR_ALLOC_SIZE(argnum) __attribute__((__alloc_size__(argnum)))
#define GC_ATTR_CALLOC_SIZE(n, s) __attribute__((__alloc_size__(n, s)))
#else
#define GC_ATTR_ALLOC_SIZE(argnum)
#endif
#endif
#ifndef GC_ATTR_CALLOC_SIZE
#define GC_ATTR_CALLOC_SIZE(n, s)
#endif

/*
 * An argument that must not be null. Not told to the compiler in the library's own build: there
 * it would delete the very checks that turn a client's mistake into a clear message.
 */
#ifndef GC_ATTR_NONNULL
#if GC_GNUC_PREREQ(4, 0) && !defined(GC_BUILD)
#define GC_ATTR_NONNULL(argnum) __attribute__((__nonnull__(argnum)))
#else
#define GC_ATTR_NONNULL(argnum)
#endif
#endif

/* The result depends on nothing but the arguments. */
#ifndef GC_ATTR_CONST
#if GC_GNUC_PREREQ(4, 0)
#define GC_ATTR_CONST __attribute__((__const__))
#else
#define GC_ATTR_CONST
#endif
#endif

/* The library itself must be free to use what it deprecates. */
#ifdef GC_BUILD
#undef GC_ATTR_DEPRECATED
#define GC_ATTR_DEPRECATED
#endif
#ifndef GC_ATTR_DEPRECATED
#if GC_GNUC_PREREQ(4, 0)
#define GC_ATTR_DEPRECATED __attribute__((__deprecated__))
#else
#define GC_ATTR_DEPRECATED
#endif
#endif

/*
 * Old collectors were told here that call chains can be saved for debugging objects. The debug
 * allocators of this library take file and line and nothing else (GC_EXTRAS in api/debug.h), so
 * GC_ADD_CALLER must stay undefined.
 */
#ifdef GC_ADD_CALLER
#error "GC_ADD_CALLER changes the arguments of the GC_debug_ functions; this library has none of it"
#endif
#if defined(__linux__) && !defined(GC_CAN_SAVE_CALL_STACKS)
#define GC_CAN_SAVE_CALL_STACKS
#endif
#if defined(__GLIBC__) && !defined(GC_HAVE_BUILTIN_BACKTRACE)
#define GC_HAVE_BUILTIN_BACKTRACE
#endif

#ifdef __cplusplus
#ifndef GC_ATTR_EXPLICIT
#if __cplusplus >= 201103L && !defined(__clang__)
#define GC_ATTR_EXPLICIT explicit
#else
#define GC_ATTR_EXPLICIT
#endif
#endif
#ifndef GC_NOEXCEPT
#if __cplusplus >= 201103L
#define GC_NOEXCEPT noexcept
#else
#define GC_NOEXCEPT throw()
#endif
#endif
#endif /* __cplusplus */

#endif /* GC_CONFIG_MACROS_H_JACKDAW */

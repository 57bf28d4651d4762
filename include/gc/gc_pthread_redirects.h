/*
 * gc_pthread_redirects.h - the thread functions that tell the collector about threads, and the
 * macros that put them in the place of the system's. Included by gc.h when GC_THREADS is defined.
 *
 * Each GC_ function has the parameters, results and errors of the function it stands for:
 *   GC_pthread_create   registers the new thread before it runs
 *   GC_pthread_join     keeps the thread's result reachable until it is delivered; the collector's
 *                       signal is unblocked in the caller while it waits
 *   GC_pthread_sigmask  leaves the collector's own signals unblocked
 *   GC_dlopen           is dlopen(): a collection may come at any time of it
 * and so on. GC_NO_THREAD_REDIRECTS leaves the macros out.
 */
#ifndef GC_PTHREAD_REDIRECTS_H
#define GC_PTHREAD_REDIRECTS_H

#if defined(GC_H) && defined(GC_PTHREADS)

/* GC_PTHREAD_REDIRECTS_ONLY: the macros alone, for files that must not see the declarations. */
#ifndef GC_PTHREAD_REDIRECTS_ONLY

#include <pthread.h>
#ifndef GC_NO_DLOPEN
#include <dlfcn.h>
#endif
#ifndef GC_NO_PTHREAD_SIGMASK
#include <signal.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The type of a thread's name in the functions of javaxfc.h. */
#ifndef GC_SUSPEND_THREAD_ID
#define GC_SUSPEND_THREAD_ID pthread_t
#endif

#ifndef GC_NO_DLOPEN
GC_API void* GC_dlopen(const char* path, int mode);
#endif

/* Strict C without POSIX has no sigset_t. */
#ifndef GC_NO_PTHREAD_SIGMASK
#if defined(GC_PTHREAD_SIGMASK_NEEDED) || defined(_BSD_SOURCE) || defined(_GNU_SOURCE) ||   \
    defined(_DEFAULT_SOURCE) || (defined(_POSIX_C_SOURCE) && _POSIX_C_SOURCE >= 199506L) || \
    (defined(_XOPEN_SOURCE) && _XOPEN_SOURCE >= 500)
GC_API int GC_pthread_sigmask(int how, const sigset_t*, sigset_t* old_set);
#endif
#endif

#ifndef GC_PTHREAD_CREATE_CONST
#define GC_PTHREAD_CREATE_CONST const
#endif
GC_API int GC_pthread_create(pthread_t*, GC_PTHREAD_CREATE_CONST pthread_attr_t*,
                             void* (*start)(void*), void* arg);
GC_API int GC_pthread_join(pthread_t, void** result);
GC_API int GC_pthread_detach(pthread_t);
#ifndef GC_NO_PTHREAD_CANCEL
GC_API int GC_pthread_cancel(pthread_t);
#endif
#if defined(GC_HAVE_PTHREAD_EXIT) && !defined(GC_PTHREAD_EXIT_DECLARED)
#define GC_PTHREAD_EXIT_DECLARED
GC_API void GC_pthread_exit(void* result) GC_PTHREAD_EXIT_ATTRIBUTE;
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* !GC_PTHREAD_REDIRECTS_ONLY */

/* The library's own sources mean the system's functions; so do programs linked with --wrap. */
#if !defined(GC_NO_THREAD_REDIRECTS) && !defined(GC_USE_LD_WRAP) && !defined(GC_BUILD)
#undef pthread_create
#undef pthread_join
#undef pthread_detach
#define pthread_create GC_pthread_create
#define pthread_join GC_pthread_join
#define pthread_detach GC_pthread_detach
#ifndef GC_NO_PTHREAD_SIGMASK
#undef pthread_sigmask
#define pthread_sigmask GC_pthread_sigmask
#endif
#ifndef GC_NO_DLOPEN
#undef dlopen
#define dlopen GC_dlopen
#endif
#ifndef GC_NO_PTHREAD_CANCEL
#undef pthread_cancel
#define pthread_cancel GC_pthread_cancel
#endif
#ifdef GC_HAVE_PTHREAD_EXIT
#undef pthread_exit
#define pthread_exit GC_pthread_exit
#endif
#endif

#endif /* GC_H && GC_PTHREADS */

#endif /* GC_PTHREAD_REDIRECTS_H */

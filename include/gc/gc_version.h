/*
 * gc_version.h - the version of the libgc interface that these headers describe.
 *
 * Jackdaw implements the interface of bdwgc 8.2.2, so that is the number here and the number
 * that GC_get_version() returns. Jackdaw's own version is said by `jackdaw --version`, and by
 * `pkg-config --modversion jackdaw`.
 *
 * Use: #if GC_VERSION_MAJOR > 8 || (GC_VERSION_MAJOR == 8 && GC_VERSION_MINOR >= 2)
 */
#ifndef GC_VERSION_H_JACKDAW
#define GC_VERSION_H_JACKDAW

#if defined(GC_VERSION_MAJOR) && \
    (GC_VERSION_MAJOR != 8 || GC_VERSION_MINOR != 2 || GC_VERSION_MICRO != 2)
#error "another libgc's gc_version.h was included before this one: check the include path"
#endif

#ifndef GC_VERSION_MAJOR
#define GC_VERSION_MAJOR 8
#define GC_VERSION_MINOR 2
#define GC_VERSION_MICRO 2
#endif

/* Older spelling of the same three numbers. */
#define GC_TMP_VERSION_MAJOR GC_VERSION_MAJOR
#define GC_TMP_VERSION_MINOR GC_VERSION_MINOR
#define GC_TMP_VERSION_MICRO GC_VERSION_MICRO

#endif /* GC_VERSION_H_JACKDAW */

/*
 * libgc-probe.so - measures a program's garbage collector from outside.
 *
 * `jackdaw run --stats` preloads it before libgc. It works through the public interface of
 * libgc 8.2 alone, so one binary measures any implementation of it in the same way:
 *
 *   a collection  from the event GC_EVENT_START to GC_EVENT_END
 *   a pause       from GC_EVENT_PRE_STOP_WORLD to GC_EVENT_POST_START_WORLD
 *   sizes         GC_get_heap_size() and GC_get_prof_stats_unsafe() (without threads:
 *                 GC_get_total_bytes()), read at each event and at the end
 *
 * Its callbacks run under the allocation lock, so they use only getters that do not take it.
 * A program that sets callbacks of its own goes through the setters below and is called as ever.
 *
 * libjackdaw-malloc.so (jackdaw run --malloc) has these functions under names of its own, since a
 * program may have a libgc beside it.
 *
 * Only the process that the command started is measured: a forked child, or a program with another
 * process id that inherited the environment, leaves the record alone.
 */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gc/gc.h"
#include "record.h"

#define EXPORTED __attribute__((visibility("default")))

typedef void (*set_event_fn)(GC_on_collection_event_proc);
typedef GC_on_collection_event_proc (*get_event_fn)(void);
typedef void (*set_resize_fn)(GC_on_heap_resize_proc);
typedef GC_on_heap_resize_proc (*get_resize_fn)(void);

/* The library's own functions. Written by the constructor, before the program's first thread. */
static set_event_fn real_set_event;
static set_resize_fn real_set_resize;
static size_t (*real_heap_size)(void);
static size_t (*real_total_bytes)(void);
static size_t (*real_prof_stats)(struct GC_prof_stats_s*, size_t);
static GC_word (*real_gc_no)(void);

/* Null unless this process is the one that is measured. Cleared in a forked child. */
static struct jd_record* record;

/* The program's own callbacks. Written by any thread, read under the allocation lock: atomic. */
static GC_on_collection_event_proc client_event;
static GC_on_heap_resize_proc client_resize;

/* When the collection and the pause under way began; 0: none is. Under the allocation lock. */
static uint64_t collection_began;
static uint64_t pause_began;

static void put(uint64_t* field, uint64_t value) {
  __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static uint64_t get(const uint64_t* field) { return __atomic_load_n(field, __ATOMIC_RELAXED); }

static void raise_to(uint64_t* field, uint64_t value) {
  if (value > get(field)) put(field, value);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* The record, if this process may write it. A vforked child shares the memory but not the id. */
static struct jd_record* own_record(void) {
  struct jd_record* r = __atomic_load_n(&record, __ATOMIC_ACQUIRE);
  return r != NULL && get(&r->owner) == (uint64_t)getpid() ? r : NULL;
}

/* Without the lock: it is held in a callback, and may be for ever when the program ends. */
static uint64_t total_bytes(void) {
  struct GC_prof_stats_s stats;
  if (real_prof_stats == NULL) return real_total_bytes();
  real_prof_stats(&stats, sizeof stats);
  return (uint64_t)stats.allocd_bytes_before_gc + stats.bytes_allocd_since_gc;
}

static void read_sizes(struct jd_record* r) {
  raise_to(&r->heap_peak_bytes, real_heap_size());
  put(&r->allocated_bytes, total_bytes());
  put(&r->gc_no, real_gc_no());
}

static void take_time(uint64_t* began, uint64_t* count, uint64_t* total, uint64_t* longest) {
  if (*began == 0) return; /* The start was before the probe, or was never reported. */
  uint64_t took = now_ns() - *began;
  *began = 0;
  put(count, get(count) + 1);
  put(total, get(total) + took);
  raise_to(longest, took);
}

static void GC_CALLBACK on_event(GC_EventType event) {
  struct jd_record* r = own_record();
  /* The client's callback is part of the collection and of the pause, as it is without us. */
  if (r != NULL) {
    if (event == GC_EVENT_START) {
      read_sizes(r);
      put(&r->collections_begun, get(&r->collections_begun) + 1);
      collection_began = now_ns();
    } else if (event == GC_EVENT_PRE_STOP_WORLD) {
      pause_began = now_ns();
    }
  }
  GC_on_collection_event_proc client = __atomic_load_n(&client_event, __ATOMIC_ACQUIRE);
  if (client != 0) client(event);
  if (r != NULL) {
    if (event == GC_EVENT_POST_START_WORLD) {
      take_time(&pause_began, &r->pauses, &r->pause_total_ns, &r->pause_longest_ns);
    } else if (event == GC_EVENT_END) {
      take_time(&collection_began, &r->collections_ended, &r->collect_total_ns,
                &r->collect_longest_ns);
      read_sizes(r);
    }
  }
}

static void GC_CALLBACK on_resize(GC_word new_size) {
  struct jd_record* r = own_record();
  if (r != NULL) read_sizes(r);
  GC_on_heap_resize_proc client = __atomic_load_n(&client_resize, __ATOMIC_ACQUIRE);
  if (client != 0) client(new_size);
}

/* --- the setters the program sees ------------------------------------------------------------- */

/* The next definition after the probe's. Dies aloud: only a program with a libgc gets here. */
static void* next_symbol(const char* name) {
  void* f = dlsym(RTLD_NEXT, name);
  if (f == NULL) {
    static const char message[] = "jackdaw probe: this libgc lacks a function the program calls: ";
    if (write(2, message, sizeof message - 1) < 0 || write(2, name, strlen(name)) < 0 ||
        write(2, "\n", 1) < 0) {
      /* Nothing is left to tell it to. */
    }
    abort();
  }
  return f;
}

EXPORTED void GC_CALL GC_set_on_collection_event(GC_on_collection_event_proc fn) {
  if (own_record() == NULL || real_set_event == NULL) {
    ((set_event_fn)next_symbol("GC_set_on_collection_event"))(fn);
  } else {
    __atomic_store_n(&client_event, fn, __ATOMIC_RELEASE);
  }
}

EXPORTED GC_on_collection_event_proc GC_CALL GC_get_on_collection_event(void) {
  GC_on_collection_event_proc fn = ((get_event_fn)next_symbol("GC_get_on_collection_event"))();
  return fn == on_event ? __atomic_load_n(&client_event, __ATOMIC_ACQUIRE) : fn;
}

EXPORTED void GC_CALL GC_set_on_heap_resize(GC_on_heap_resize_proc fn) {
  if (own_record() == NULL || real_set_resize == NULL) {
    ((set_resize_fn)next_symbol("GC_set_on_heap_resize"))(fn);
  } else {
    __atomic_store_n(&client_resize, fn, __ATOMIC_RELEASE);
  }
}

EXPORTED GC_on_heap_resize_proc GC_CALL GC_get_on_heap_resize(void) {
  GC_on_heap_resize_proc fn = ((get_resize_fn)next_symbol("GC_get_on_heap_resize"))();
  return fn == on_resize ? __atomic_load_n(&client_resize, __ATOMIC_ACQUIRE) : fn;
}

/* --- the process's beginning and end ------------------------------------------------------------
 */

/* The largest resident size of this very program, from /proc; 0 without one. getrusage() would
   count what the process was before exec(). */
static uint64_t resident_peak_kib(void) {
  char text[4096];
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* line = strstr(text, "VmHWM:");
  return line == NULL ? 0 : strtoull(line + 6, NULL, 10);
}

/* Takes no lock of the library's: the program may be ending inside one of its callbacks. */
static void finish(void) {
  struct jd_record* r = own_record();
  if (r == NULL) return;
  if (get(&r->state) == JD_PROBE_ATTACHED) read_sizes(r);
  put(&r->resident_peak_kib, resident_peak_kib());
  put(&r->ended, 1);
}

__attribute__((destructor)) static void probe_end(void) { finish(); }

/* _exit() and _Exit() run no destructors. */
EXPORTED __attribute__((noreturn)) void _exit(int status) {
  finish();
  for (;;) syscall(SYS_exit_group, status);
}

EXPORTED __attribute__((noreturn)) void _Exit(int status) { _exit(status); }

static void in_forked_child(void) {
  __atomic_store_n(&record, (struct jd_record*)NULL, __ATOMIC_RELEASE);
}

static struct jd_record* map_record(void) {
  const char* path = getenv(JD_PROBE_ENV);
  if (path == NULL) return NULL;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  void* p = mmap(NULL, sizeof(struct jd_record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return NULL;
  struct jd_record* r = p;
  if (r->magic == JD_PROBE_MAGIC && get(&r->owner) == (uint64_t)getpid()) return r;
  munmap(p, sizeof(struct jd_record));
  return NULL;
}

/* A process that executes another program begins anew; only `images` tells. */
static void clear(struct jd_record* r) {
  uint64_t images = get(&r->images);
  size_t from = offsetof(struct jd_record, images);
  memset((char*)r + from, 0, sizeof *r - from);
  put(&r->images, images + 1);
}

/* A function of the collector that is measured. There may be another: one serves malloc, and one is
   the program's libgc. */
static void* find(const struct jd_record* r, void* where, const char* name) {
  if (r->serves_malloc == 0) return dlsym(where, name);
  char other[64] = "jackdaw_malloc_";
  strncat(other, name, sizeof other - strlen(other) - 1);
  return dlsym(RTLD_DEFAULT, other);
}

__attribute__((constructor)) static void probe_begin(void) {
  struct jd_record* r = map_record();
  if (r == NULL) return;
  clear(r);
  real_heap_size = (size_t(*)(void))find(r, RTLD_DEFAULT, "GC_get_heap_size");
  real_total_bytes = (size_t(*)(void))find(r, RTLD_DEFAULT, "GC_get_total_bytes");
  real_prof_stats =
      (size_t(*)(struct GC_prof_stats_s*, size_t))find(r, RTLD_DEFAULT, "GC_get_prof_stats_unsafe");
  real_gc_no = (GC_word(*)(void))find(r, RTLD_DEFAULT, "GC_get_gc_no");
  real_set_event = (set_event_fn)find(r, RTLD_NEXT, "GC_set_on_collection_event");
  real_set_resize = (set_resize_fn)find(r, RTLD_NEXT, "GC_set_on_heap_resize");
  if (real_heap_size == NULL || real_total_bytes == NULL || real_gc_no == NULL ||
      real_set_event == NULL) {
    put(&r->state, JD_PROBE_NO_LIBGC);
  } else {
    Dl_info info;
    if (dladdr((void*)real_gc_no, &info) != 0 && info.dli_fname != NULL) {
      strncpy(r->library, info.dli_fname, sizeof r->library - 1);
    }
    unsigned (*version)(void) = (unsigned (*)(void))find(r, RTLD_DEFAULT, "GC_get_version");
    if (version != NULL) put(&r->version, version());
    put(&r->gc_no_at_start, real_gc_no());
    pthread_atfork(NULL, NULL, in_forked_child);
    __atomic_store_n(&record, r, __ATOMIC_RELEASE);
    real_set_event(on_event);
    if (real_set_resize != NULL) real_set_resize(on_resize);
    read_sizes(r);
    put(&r->state, JD_PROBE_ATTACHED);
    return;
  }
  __atomic_store_n(&record, r, __ATOMIC_RELEASE);
}

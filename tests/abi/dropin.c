/*
 * dropin.c - a program compiled against our headers and linked with our library. It uses what
 * debian_client.c does not reach: the rest of the interface, through the macros where there are
 * macros, with and without GC_DEBUG. Each case runs in a process of its own.
 */
#define GC_THREADS
#define GC_OOM_FUNC_RETURNS_ALIAS
#define GC_I_HIDE_POINTERS
#define GC_ASSERT(condition) CHECK(condition) /* of gc_inline.h */
#include <errno.h>
#include <gc/gc.h>
#include <gc/gc_disclaim.h>
#include <gc/gc_gcj.h>
#include <gc/gc_inline.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>
#include <gc/javaxfc.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

int check_failures;

enum { kMany = 1000, kMost = 950 };

static void __attribute__((noinline)) overwrite_stack(void) {
  volatile char junk[16384];
  size_t i;
  for (i = 0; i < sizeof junk; i++) junk[i] = 0;
}
static void __attribute__((noinline)) deep_call(void (*f)(void*), void* arg, int depth) {
  volatile char frame[512];
  frame[0] = (char)depth;
  if (depth > 0)
    deep_call(f, arg, depth - 1);
  else
    f(arg);
  frame[1] = frame[0];
}
void far_away(void (*f)(void*), void* arg) {
  deep_call(f, arg, 8);
  overwrite_stack();
}
void collect_thoroughly(void) {
  int i;
  for (i = 0; i < 4; i++) {
    overwrite_stack();
    GC_gcollect();
    while (GC_invoke_finalizers() != 0) {
    }
  }
}

/* ---- Allocation by the macros ---- */

struct node {
  struct node *left, *right;
  long value;
};
static struct node* tree(int depth) {
  struct node* n = GC_NEW(struct node);
  n->value = depth;
  if (depth > 0) {
    n->left = tree(depth - 1);
    n->right = tree(depth - 1);
    GC_END_STUBBORN_CHANGE(n);
  }
  return n;
}
static long count(const struct node* n) {
  return n == NULL ? 0 : 1 + count(n->left) + count(n->right);
}
static void macros(void) {
  struct node* kept = tree(14);
  char* text;
  int i;
  for (i = 0; i < 50; i++) tree(12);
  GC_gcollect();
  CHECK_EQ(count(kept), (1 << 15) - 1);
  text = GC_STRDUP("drop");
  text = GC_REALLOC(text, 20);
  memcpy(text + 4, "-in", sizeof "-in");
  CHECK(strcmp(GC_STRNDUP(text, 4), "drop") == 0 && strcmp(text, "drop-in") == 0);
  GC_FREE(text);
  GC_FREE(GC_NEW_UNCOLLECTABLE(struct node));
  GC_FREE(GC_MALLOC_ATOMIC_UNCOLLECTABLE(20));
  GC_FREE(GC_MALLOC_IGNORE_OFF_PAGE(200000));
  GC_FREE(GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(200000));
  GC_FREE(NULL);
  GC_PTR_STORE_AND_DIRTY(&kept->left, kept->right);
  CHECK(kept->left == kept->right);
  GC_reachable_here(kept);
}

static void aligned(void) {
  size_t align;
  void* p;
  for (align = 8; align <= 4096; align *= 2) {
    p = GC_memalign(align, 100);
    CHECK(p != NULL && (uintptr_t)p % align == 0);
    memset(p, 1, 100);
    p = NULL;
    CHECK_EQ(GC_posix_memalign(&p, align, 3000), 0);
    CHECK(p != NULL && (uintptr_t)p % align == 0);
    memset(p, 1, 3000);
  }
  p = &align;
  CHECK_EQ(GC_posix_memalign(&p, 24, 10), EINVAL);
  CHECK_EQ(GC_posix_memalign(&p, 4, 10), EINVAL);
  CHECK(p == &align);
}

static void kinds_of_objects(void) {
  size_t size;
  CHECK_EQ(GC_get_kind_and_size(GC_malloc_kind(100, GC_I_PTRFREE), &size), GC_I_PTRFREE);
  CHECK(size >= 100);
  CHECK_EQ(GC_get_kind_and_size(GC_malloc_kind_global(100, GC_I_NORMAL), NULL), GC_I_NORMAL);
  CHECK(GC_generic_or_special_malloc(100, GC_I_NORMAL) != NULL);
  CHECK(GC_generic_malloc_ignore_off_page(100000, GC_I_PTRFREE) != NULL);
  GC_free(
      GC_generic_malloc_uncollectable(100, GC_get_kind_and_size(GC_malloc_uncollectable(1), 0)));
  CHECK_EQ(GC_get_size_map_at(-1), -1);
  CHECK(GC_get_size_map_at(16) >= 16);
  CHECK_EQ(GC_get_size_map_at(1 << 20), -1);
}

static void inline_lists(void) {
  static void *normal[GC_TINY_FREELISTS], *atomic[GC_TINY_FREELISTS];
  void** kept = NULL;
  void* bytes;
  long i;
  for (i = 0; i < 100000; i++) {
    void **words, *pair;
    GC_MALLOC_WORDS(words, 1 + i % 40, normal);
    GC_CONS(pair, words, kept, normal);
    kept = i % 500 ? pair : NULL;
    CHECK(words[0] == NULL);
    words[0] = words;
  }
  for (i = 0; kept; kept = kept[1], i++) CHECK(*(void**)kept[0] == kept[0]);
  CHECK_EQ(i, 499);

  /* The collector does not follow the links of pointer-free objects. */
  GC_disable();
  for (i = 0; i < 10000; i++) {
    GC_MALLOC_ATOMIC_WORDS(bytes, 1 + i % 60, atomic);
    memset(bytes, 0xff, (size_t)(1 + i % 60) * 8);
  }
  memset(atomic, 0, sizeof atomic);
  GC_enable();
  GC_gcollect();
}

/* ---- Objects of which the layout is known ---- */

struct link_cell {
  GC_word disguise;
  struct link_cell* next;
  GC_word number;
};
static void typed_arrays(void) {
  GC_word bitmap[GC_BITMAP_SIZE(struct link_cell)] = {0};
  struct link_cell *array, *one;
  GC_descr d;
  volatile size_t too_many = SIZE_MAX / 8; /* unknown to the compiler, which would warn */
  int i;
  GC_set_bit(bitmap, GC_WORD_OFFSET(struct link_cell, next));
  CHECK(GC_get_bit(bitmap, 1) && !GC_get_bit(bitmap, 0));
  d = GC_make_descriptor(bitmap, GC_WORD_LEN(struct link_cell));
  array = GC_CALLOC_EXPLICITLY_TYPED(1000, sizeof *array, d);
  for (i = 0; i < 1000; i++) {
    one = GC_MALLOC_EXPLICITLY_TYPED(sizeof *one, d);
    CHECK(array[i].disguise == 0 && array[i].next == NULL && one->number == 0);
    one->number = (GC_word)i;
    GC_PTR_STORE(&array[i].next, one);
  }
  for (i = 0; i < 10; i++) tree(12);
  GC_gcollect();
  for (i = 0; i < 1000; i++) CHECK_EQ(array[i].next->number, i);
  CHECK(GC_malloc_explicitly_typed_ignore_off_page(100000, d) != NULL);
  CHECK(GC_calloc_explicitly_typed(too_many, 64, d) == NULL);
}

/* A table's second word describes the objects: here, that their second word is a pointer. */
static void gcj_objects(void) {
  static GC_word table[2] = {0, ((GC_word)1 << 62) | GC_DS_BITMAP};
  static void** objects[100];
  int i;
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, NULL);
  GC_init_gcj_malloc(GC_GCJ_RESERVED_MARK_PROC_INDEX, NULL);
  CHECK(GC_gcj_kind > GC_I_NORMAL);
  for (i = 0; i < 100; i++) {
    objects[i] = GC_gcj_malloc(i == 50 ? 50000 : 32, table);
    CHECK(objects[i][0] == table && objects[i][1] == NULL);
    CHECK_EQ(GC_get_kind_and_size(objects[i], NULL), GC_gcj_kind);
    objects[i][1] = GC_malloc(16);
    *(long*)objects[i][1] = i;
  }
  CHECK(*(void**)GC_gcj_malloc_ignore_off_page(100000, table) == table);
  for (i = 0; i < 10; i++) tree(12);
  GC_gcollect();
  for (i = 0; i < 100; i++) CHECK_EQ(*(long*)objects[i][1], i);
}

static int disclaimed;
static void on_disclaim(void* obj, void* data) {
  CHECK_EQ(*(long*)obj, 42);
  CHECK(data == &disclaimed);
  disclaimed++;
}
static const struct GC_finalizer_closure closure = {on_disclaim, &disclaimed};
static void make_disclaimable(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany; i++) {
    long* obj = GC_finalized_malloc(24, &closure);
    CHECK_EQ(obj[0], 0);
    obj[0] = 42;
  }
}
static void disclaiming(void) {
  int i;
  GC_init_finalized_malloc();
  GC_init_finalized_malloc();
  far_away(make_disclaimable, NULL);
  collect_thoroughly();
  /* Sweeping may be lazy: what was found dead is visited at the latest when memory is needed. */
  for (i = 0; i < 20; i++) far_away(make_disclaimable, NULL);
  collect_thoroughly();
  CHECK(disclaimed >= kMost && disclaimed <= 21 * kMany);
}

/* ---- Finalizers ---- */

static int finalized, awaited;
static void on_finalize(void* obj, void* data) {
  (void)obj;
  (void)data;
  finalized++;
}
static void on_await(void* obj) {
  CHECK(obj != NULL);
  awaited++;
}
static void make_finalizable(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany; i++)
    GC_REGISTER_FINALIZER_UNREACHABLE(GC_MALLOC(32), on_finalize, 0, 0, 0);
}
static void awaiting(void) {
  GC_set_await_finalize_proc(on_await);
  CHECK(GC_get_await_finalize_proc() == on_await);
  far_away(make_finalizable, NULL);
  collect_thoroughly();
  CHECK(finalized >= kMost);
  CHECK_EQ(awaited, finalized);
}
static void finalizing_all(void) {
  static void* reachable;
  reachable = GC_MALLOC(32);
  GC_REGISTER_FINALIZER(reachable, on_finalize, 0, 0, 0);
  GC_finalize_all();
  CHECK_EQ(finalized, 1);
  GC_finalize_all();
  CHECK_EQ(finalized, 1);
}

static GC_ToggleRefStatus toggle_answer;
static GC_ToggleRefStatus on_toggle(void* obj) {
  CHECK(obj != NULL);
  return toggle_answer;
}
static void** toggle_links;
static void make_toggles(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < 100; i++) {
    void* obj = GC_malloc(32);
    toggle_links[i] = obj;
    GC_general_register_disappearing_link(&toggle_links[i], obj);
    CHECK_EQ(GC_toggleref_add(obj, 1), GC_SUCCESS);
  }
}
static int toggles_alive(void) {
  int i, n = 0;
  for (i = 0; i < 100; i++) n += toggle_links[i] != NULL;
  return n;
}
static void toggle_references(void) {
  toggle_links = GC_malloc_atomic_uncollectable(100 * sizeof(void*));
  CHECK(GC_get_toggleref_func() == NULL);
  GC_set_toggleref_func(on_toggle);
  CHECK(GC_get_toggleref_func() == on_toggle);
  toggle_answer = GC_TOGGLE_REF_STRONG;
  far_away(make_toggles, NULL);
  collect_thoroughly();
  CHECK_EQ(toggles_alive(), 100);
  toggle_answer = GC_TOGGLE_REF_WEAK;
  collect_thoroughly();
  CHECK(toggles_alive() <= 5);
}

/* ---- Settings ---- */

static int stop_now(void) { return 1; }
static int stop_never(void) { return 0; }
static void abort_function(const char* message) { (void)message; }
static int on_section(const char* name, void* start, size_t size) {
  return name != NULL && start != NULL && size > 0;
}
static void resized(GC_word size) { (void)size; }
static void on_thread(GC_EventType event, void* thread) {
  CHECK(event == GC_EVENT_THREAD_SUSPENDED || event == GC_EVENT_THREAD_UNSUSPENDED);
  CHECK(thread != NULL);
}
#define SET_AND_GET(name, value)      \
  do {                                \
    GC_set_##name(value);             \
    CHECK_EQ(GC_get_##name(), value); \
  } while (0)
static void settings(void) {
  struct GC_timeval_s limit = {20, 500};
  CHECK_EQ(GC_get_allocd_bytes_per_finalizer(), 10000);
  CHECK_EQ(GC_get_min_bytes_allocd(), 1);
  CHECK_EQ(GC_get_rate(), 10);
  CHECK_EQ(GC_get_max_prior_attempts(), 1);
  CHECK_EQ(GC_get_disable_automatic_collection(), 0);
  CHECK_EQ(GC_get_manual_vdb_allowed(), 0);
  CHECK_EQ(GC_get_force_unmap_on_gcollect(), 0);
  CHECK_EQ(GC_get_pages_executable(), 0);
  CHECK_EQ(GC_get_dont_precollect(), 0);
  CHECK_EQ(GC_get_find_leak(), 0);
  SET_AND_GET(allocd_bytes_per_finalizer, 5000);
  SET_AND_GET(min_bytes_allocd, 4096);
  SET_AND_GET(rate, 5);
  SET_AND_GET(max_prior_attempts, 2);
  SET_AND_GET(disable_automatic_collection, 1);
  SET_AND_GET(disable_automatic_collection, 0);
  SET_AND_GET(manual_vdb_allowed, 1);
  SET_AND_GET(manual_vdb_allowed, 0);
  SET_AND_GET(force_unmap_on_gcollect, 1);
  SET_AND_GET(dont_precollect, 1);
  SET_AND_GET(full_freq, 7);
  SET_AND_GET(max_retries, 1);
  SET_AND_GET(non_gc_bytes, GC_get_non_gc_bytes());
  SET_AND_GET(on_heap_resize, resized);
  SET_AND_GET(on_thread_event, on_thread);
  SET_AND_GET(abort_func, abort_function);
  GC_set_time_limit_tv(limit);
  CHECK_EQ(GC_get_time_limit(), 20);
  CHECK_EQ(GC_get_time_limit_tv().tv_ms, 20);
  CHECK_EQ(GC_get_time_limit_tv().tv_nsec, 500);
  GC_register_has_static_roots_callback(on_section);

  CHECK(GC_get_stop_func() != NULL);
  CHECK_EQ(GC_try_to_collect(stop_never), 1);
  CHECK_EQ(GC_try_to_collect(stop_now), 0);
  GC_set_stop_func(stop_never);
  CHECK(GC_get_stop_func() == stop_never);
  GC_gcollect();

  CHECK_EQ(GC_is_incremental_mode(), 0);
  GC_start_incremental_collection();
  CHECK(GC_incremental_protection_needs() >= 0);
  GC_start_performance_measurement();
  tree(14);
  static void* volatile in_use;
  in_use = GC_MALLOC(16);
  GC_gcollect();
  CHECK(GC_get_full_gc_total_time() < 100000);
  CHECK(in_use != NULL && GC_get_memory_use() > 0);
  CHECK(GC_get_obtained_from_os_bytes() >= GC_get_heap_size());
  CHECK(GC_get_unmapped_bytes() <= GC_get_obtained_from_os_bytes());
  GC_FREE(GC_MALLOC(10000));
  CHECK(GC_get_expl_freed_bytes_since_gc() >= 10000);
}

/* ---- Reports for people: they must not fail ---- */

static void reports(void) {
  if (!freopen("/dev/null", "w", stdout)) _exit(99);
  GC_set_log_fd(STDOUT_FILENO);
  GC_dump();
  GC_dump_named("by name");
  GC_dump_regions();
  GC_dump_finalization();
  GC_print_free_list(GC_I_NORMAL, 2);
}

/* ---- Pointer checks ---- */

static int complaints;
static void complain2(void* p, void* q) {
  (void)p;
  (void)q;
  complaints++;
}
static void complain1(void* p) {
  (void)p;
  complaints++;
}
static void pointer_checks(void) {
  char* p = GC_malloc(100);
  char* q = GC_malloc(100);
  void* r = p;
  GC_same_obj_print_proc = complain2;
  GC_is_visible_print_proc = complain1;
  GC_is_valid_displacement_print_proc = complain1;
  CHECK(GC_same_obj(p, p + 50) == p);
  CHECK(GC_is_valid_displacement(p + 10) == p + 10);
  CHECK(GC_pre_incr(&r, 10) == p + 10 && r == p + 10);
  CHECK(GC_post_incr(&r, 10) == p + 10 && r == p + 20);
  CHECK_EQ(complaints, 0);
  CHECK(GC_same_obj(p, q) == p);
  CHECK_EQ(complaints, 1);
  CHECK(GC_is_visible(p + 1) == p + 1);
  CHECK_EQ(complaints, 2);
  CHECK_EQ(GC_is_tmp_root(p), 0);
  CHECK(GC_clear_stack(p) == p);
}

/* ---- Threads ---- */

static __thread void* thread_local_pointer;
static void** hidden;
static void fill_thread_local(void* unused) {
  (void)unused;
  thread_local_pointer = GC_malloc(32);
  *hidden = thread_local_pointer;
  GC_general_register_disappearing_link(hidden, thread_local_pointer);
}
/* Beyond bdwgc: thread-local data are roots in every thread, the main one included. */
static void thread_local_roots(void) {
  hidden = GC_malloc_atomic_uncollectable(sizeof *hidden);
  far_away(fill_thread_local, NULL);
  collect_thoroughly();
  CHECK(*hidden != NULL && *hidden == thread_local_pointer);
}

/* The redirected names. */
static int counter, stop; /* shared: read and written through these */
static int get(int* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static void set(int* p, int value) { __atomic_store_n(p, value, __ATOMIC_RELEASE); }
static int token;
static void* worker(void* arg) {
  struct node* n = tree(12);
  CHECK(GC_thread_is_registered());
  pthread_exit(count(n) == (1 << 13) - 1 ? arg : NULL);
}
static void* counting(void* unused) {
  struct timespec pause = {0, 100000};
  while (!get(&stop)) {
    __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED);
    nanosleep(&pause, NULL);
  }
  return unused;
}
static void redirects(void) {
  pthread_t threads[4];
  void* result;
  int i;
  for (i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, worker, &token), 0);
  for (i = 0; i < 4; i++) {
    CHECK_EQ(pthread_join(threads[i], &result), 0);
    CHECK(result == &token);
  }
}
static void suspending(void) {
  struct timespec pause = {0, 20000000};
  pthread_t thread;
  int seen;
  CHECK_EQ(pthread_create(&thread, NULL, counting, NULL), 0);
  CHECK_EQ(GC_is_thread_suspended(thread), 0);
  GC_suspend_thread(thread);
  CHECK_EQ(GC_is_thread_suspended(thread), 1);
  GC_suspend_thread(thread);
  nanosleep(&pause, NULL);
  seen = get(&counter);
  nanosleep(&pause, NULL);
  CHECK_EQ(get(&counter), seen);
  GC_gcollect();
  GC_resume_thread(thread);
  CHECK_EQ(GC_is_thread_suspended(thread), 0);
  while (get(&counter) == seen) nanosleep(&pause, NULL);

  /* The world is stopped, and the lock held, until it is started again. */
  GC_stop_world_external();
  seen = get(&counter);
  nanosleep(&pause, NULL);
  CHECK_EQ(get(&counter), seen);
  GC_start_world_external();
  while (get(&counter) == seen) nanosleep(&pause, NULL);
  set(&stop, 1);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}
static void locking(void) {
  struct GC_prof_stats_s stats;
  GC_alloc_lock();
  CHECK_EQ(GC_get_prof_stats_unsafe(&stats, sizeof stats), sizeof stats);
  GC_alloc_unlock();
  CHECK(GC_malloc(16) != NULL);
}

static long visited;
static void visit(void* obj, size_t bytes, void* data) {
  (void)obj;
  CHECK(bytes > 0 && data == &visited);
  visited++;
}
static void* enumerate(void* data) {
  GC_enumerate_reachable_objects_inner(visit, data);
  return NULL;
}
static void enumerating(void) {
  struct node* kept = tree(10);
  GC_gcollect();
  GC_call_with_alloc_lock(enumerate, &visited);
  CHECK(visited >= count(kept));
}

static void hiding(void) {
  void* p = GC_malloc(16);
  GC_hidden_pointer h = HIDE_POINTER(p);
  CHECK((void*)h != p && REVEAL_POINTER(h) == p);
}

static const struct TestCase cases[] = {{"macros", macros},
                                        {"aligned", aligned},
                                        {"kinds_of_objects", kinds_of_objects},
                                        {"inline_lists", inline_lists},
                                        {"typed_arrays", typed_arrays},
                                        {"gcj_objects", gcj_objects},
                                        {"disclaiming", disclaiming},
                                        {"awaiting", awaiting},
                                        {"finalizing_all", finalizing_all},
                                        {"toggle_references", toggle_references},
                                        {"settings", settings},
                                        {"reports", reports},
                                        {"pointer_checks", pointer_checks},
                                        {"thread_local_roots", thread_local_roots},
                                        {"redirects", redirects},
                                        {"suspending", suspending},
                                        {"locking", locking},
                                        {"enumerating", enumerating},
                                        {"hiding", hiding},
                                        {NULL, NULL}};

int main(int argc, char** argv) {
  const struct TestCase* c;
  int failed = 0, ran = 0, status;
  for (c = cases; c->name != NULL; c++) {
    pid_t child;
    if (argc > 1 && strcmp(argv[1], c->name) != 0) continue;
    fflush(stdout);
    child = fork();
    if (child == 0) {
      GC_INIT();
      c->run();
      fflush(stdout);
      _exit(check_failures != 0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return 3;
    ran++;
    if (status != 0) {
      failed++;
      printf("FAILED case %s: wait status %d\n", c->name, status);
    }
  }
  printf("%d cases, %d failed\n", ran, failed);
  return failed != 0 || ran == 0;
}

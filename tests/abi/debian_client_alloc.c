/* debian_client_alloc.c - allocation, collection, statistics, messages. See debian_client.c. */
/* The out-of-memory function below returns memory that exists already. */
#define GC_OOM_FUNC_RETURNS_ALIAS
#include <gc/gc.h>
#include <gc/gc_mark.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int all_bytes_are(const void* p, size_t n, int byte) {
  const unsigned char* bytes = p;
  size_t i;
  for (i = 0; i < n; i++)
    if (bytes[i] != byte) return 0;
  return 1;
}

static void sizes(void) {
  size_t size;
  GC_INIT();
  for (size = 0; size < 70000; size = size * 3 / 2 + 1) {
    char* p = GC_malloc(size);
    char* a = GC_malloc_atomic(size);
    char* u = GC_malloc_uncollectable(size);
    char* au = GC_malloc_atomic_uncollectable(size);
    char* big = GC_malloc_ignore_off_page(size);
    char* big_atomic = GC_malloc_atomic_ignore_off_page(size);
    CHECK(p && a && u && au && big && big_atomic);
    if (!p || !a || !u || !au || !big || !big_atomic) return;
    CHECK(((uintptr_t)p | (uintptr_t)a | (uintptr_t)u | (uintptr_t)big) % 16 == 0);
    CHECK(GC_size(p) >= size && GC_size(a) >= size && GC_size(u) >= size && GC_size(au) >= size);
    CHECK(GC_size(big) >= size && GC_size(big_atomic) >= size);
    CHECK(all_bytes_are(p, size, 0) && all_bytes_are(u, size, 0) && all_bytes_are(big, size, 0));
    memset(p, 0xff, size);
    memset(a, 0xff, size);
    CHECK(GC_base(p) == p && GC_base(p + size / 2) == p);
    CHECK(GC_is_heap_ptr(p) && GC_is_heap_ptr(a) && GC_is_heap_ptr(u));
    GC_free(u);
    GC_free(au);
    GC_free(a);
  }
  GC_free(NULL);
  CHECK(GC_base(&size) == NULL && GC_base(NULL) == NULL);
  CHECK(!GC_is_heap_ptr(&size) && !GC_is_heap_ptr(NULL));
}

/* New objects are zero although their memory held something else before. */
static void recycled_memory_is_cleared(void) {
  int i;
  GC_INIT();
  for (i = 0; i < 200000; i++) {
    size_t size = 16 + (size_t)(i % 50) * 16;
    char* p = GC_malloc(size);
    CHECK(all_bytes_are(p, size, 0));
    memset(p, 0x5a, size);
    if (check_failures) return;
  }
  CHECK(GC_get_gc_no() > 1);
}

static void reallocation(void) {
  char* p;
  int i;
  GC_INIT();
  p = GC_realloc(NULL, 20);
  CHECK(p != NULL);
  memset(p, 7, 20);
  p = GC_realloc(p, 5000);
  CHECK(all_bytes_are(p, 20, 7) && all_bytes_are(p + 20, 4980, 0));
  memset(p, 8, 5000);
  p = GC_realloc(p, 100);
  CHECK(all_bytes_are(p, 100, 8));
  p = GC_realloc(p, 4000);
  CHECK(all_bytes_are(p, 100, 8) && all_bytes_are(p + 100, 3900, 0));
  CHECK(GC_realloc(p, 0) == NULL);
  CHECK(GC_realloc(NULL, 0) != NULL);

  /* An uncollectable object stays one: its contents survive though no pointer to it is left. */
  p = GC_malloc_uncollectable(100);
  memset(p, 9, 100);
  p = GC_realloc(p, 100000);
  p = (char*)GC_HIDE_POINTER(p);
  collect_thoroughly();
  for (i = 0; i < 1000; i++) memset(GC_malloc_atomic(100000), 1, 100000);
  p = (char*)GC_REVEAL_POINTER(p);
  CHECK(all_bytes_are(p, 100, 9));
  GC_free(p);
}

static void strings(void) {
  char* copy;
  GC_INIT();
  copy = GC_strdup("jackdaw");
  CHECK(strcmp(copy, "jackdaw") == 0);
  CHECK(strcmp(GC_strndup("jackdaw", 4), "jack") == 0);
  CHECK(strcmp(GC_strndup("jackdaw", 40), "jackdaw") == 0);
  CHECK(strcmp(GC_strndup("", 4), "") == 0);
  CHECK(GC_strdup(NULL) == NULL);
}

/* Lists, trees and interior pointers survive; GC_malloc_many's lists are lists of objects. */
static void reachable_objects_survive(void) {
  struct cell {
    struct cell* next;
    long value;
  };
  struct cell* list = NULL;
  char* interior;
  void *many, *rest;
  long i, sum = 0;
  GC_INIT();
  interior = GC_malloc(5000);
  memset(interior, 3, 5000);
  interior += 2500;
  for (i = 0; i < 300000; i++) {
    struct cell* c = GC_malloc(sizeof *c);
    c->value = i;
    c->next = i % 3 ? list : NULL;
    if (i >= 299000) {
      c->next = list;
      list = c;
    } else if (i % 3 == 0) {
      list = NULL;
    }
  }
  GC_gcollect();
  for (i = 299999; list; list = list->next) sum += list->value == i--;
  CHECK_EQ(sum, 1000);
  CHECK(all_bytes_are(interior - 2500, 5000, 3));

  many = GC_malloc_many(48);
  CHECK(many != NULL);
  for (rest = many, i = 0; rest != NULL; i++) {
    void* object = rest;
    rest = GC_NEXT(rest);
    GC_NEXT(object) = NULL;
    CHECK(GC_base(object) == object && GC_size(object) >= 48);
    CHECK(all_bytes_are(object, 48, 0));
  }
  CHECK(i >= 1);
}

/* The heap does not grow for ever under a program that keeps nothing. */
static void garbage_is_reclaimed(void) {
  size_t after_warmup = 0;
  int i;
  GC_INIT();
  for (i = 0; i < 40000; i++) {
    GC_malloc(10000);
    if (i == 10000) after_warmup = GC_get_heap_size();
  }
  CHECK(GC_get_heap_size() <= 2 * after_warmup + (1 << 20));
  CHECK(GC_get_heap_size() < 100u << 20); /* 400 MB were allocated */
  CHECK(GC_get_total_bytes() >= 400000000);
}

static int starts, events[12];
static GC_EventType order[64];
static int n_events;
static void on_start(void) { starts++; }
static void on_event(GC_EventType event) {
  events[event]++;
  if (n_events < 64) order[n_events++] = event;
}

static void collections(void) {
  static const GC_EventType expected[] = {GC_EVENT_START,
                                          GC_EVENT_PRE_STOP_WORLD,
                                          GC_EVENT_POST_STOP_WORLD,
                                          GC_EVENT_MARK_START,
                                          GC_EVENT_MARK_END,
                                          GC_EVENT_PRE_START_WORLD,
                                          GC_EVENT_POST_START_WORLD,
                                          GC_EVENT_RECLAIM_START,
                                          GC_EVENT_RECLAIM_END,
                                          GC_EVENT_END};
  GC_word no;
  GC_INIT();
  CHECK(GC_get_start_callback() == NULL);
  GC_set_start_callback(on_start);
  CHECK(GC_get_start_callback() == on_start);
  CHECK(GC_get_on_collection_event() == NULL);
  GC_set_on_collection_event(on_event);
  CHECK(GC_get_on_collection_event() == on_event);

  no = GC_get_gc_no();
  GC_gcollect();
  CHECK_EQ(GC_get_gc_no(), no + 1);
  CHECK_EQ(starts, 1);
  CHECK_EQ(n_events, sizeof expected / sizeof expected[0]);
  CHECK(memcmp(order, expected, sizeof expected) == 0);

  GC_gcollect_and_unmap();
  CHECK_EQ(GC_get_gc_no(), no + 2);
  CHECK_EQ(starts, 2);

  /* Disabling nests. */
  CHECK(!GC_is_disabled());
  GC_disable();
  GC_disable();
  GC_enable();
  CHECK(GC_is_disabled());
  GC_gcollect();
  CHECK_EQ(GC_get_gc_no(), no + 2);
  CHECK_EQ(starts, 2);
  GC_enable();
  CHECK(!GC_is_disabled());
  GC_gcollect();
  CHECK_EQ(GC_get_gc_no(), no + 3);

  /* Allocation collects by itself. */
  no = GC_get_gc_no();
  while (GC_get_gc_no() == no && GC_get_total_bytes() < 2000000000) GC_malloc(1000);
  CHECK(GC_get_gc_no() > no);
  while (GC_collect_a_little()) {
  }
}

static void statistics(void) {
  struct GC_prof_stats_s stats;
  struct {
    struct GC_prof_stats_s known;
    GC_word unknown;
  } longer;
  GC_word heap, free_bytes, unmapped, since, total;
  size_t before;
  GC_INIT();
  CHECK_EQ(GC_get_version(), 0x080202);
  GC_gcollect();
  before = GC_get_total_bytes();
  GC_disable();
  GC_malloc(100000);
  CHECK(GC_get_total_bytes() - before >= 100000);
  CHECK(GC_get_bytes_since_gc() >= 100000);
  GC_get_heap_usage_safe(&heap, &free_bytes, &unmapped, &since, &total);
  CHECK(heap >= 100000 && free_bytes <= heap && since >= 100000 && total >= since);
  CHECK_EQ(heap, GC_get_heap_size());
  CHECK_EQ(free_bytes, GC_get_free_bytes());
  CHECK_EQ(total, GC_get_total_bytes());
  CHECK_EQ(since, GC_get_bytes_since_gc());
  GC_get_heap_usage_safe(NULL, NULL, NULL, NULL, NULL);

  CHECK_EQ(GC_get_prof_stats(&stats, sizeof stats), sizeof stats);
  CHECK_EQ(stats.gc_no, GC_get_gc_no());
  CHECK_EQ(stats.heapsize_full, heap + unmapped);
  CHECK_EQ(stats.free_bytes_full, free_bytes + unmapped);
  CHECK_EQ(stats.allocd_bytes_before_gc + stats.bytes_allocd_since_gc, total);
  CHECK(stats.obtained_from_os_bytes >= heap);
  longer.unknown = 5;
  CHECK_EQ(GC_get_prof_stats(&longer.known, sizeof longer), sizeof stats);
  CHECK_EQ(longer.unknown, -1);
  memset(&stats, 1, sizeof stats);
  CHECK_EQ(GC_get_prof_stats(&stats, sizeof(GC_word)), sizeof(GC_word));
  CHECK_EQ(stats.heapsize_full, heap + unmapped);
  CHECK_EQ(stats.free_bytes_full, 0x0101010101010101);
  GC_enable();

  heap = GC_get_heap_size();
  CHECK_EQ(GC_expand_hp(10u << 20), 1);
  CHECK(GC_get_heap_size() >= heap + (10u << 20));
}

static void dump_to_null(void) { GC_dump(); }
static void dump(void) {
  GC_INIT();
  CHECK_EQ(run_in_child(dump_to_null), 0);
}

static size_t wanted;
static char replacement[16];
static void* on_oom(size_t bytes) {
  wanted = bytes;
  return replacement;
}
static int warnings;
static void on_warning(char* message, GC_word arg) {
  (void)arg;
  CHECK(message != NULL);
  warnings++;
}
static void abort_on_oom(void) { GC_abort_on_oom(); }

static void out_of_memory(void) {
  GC_warn_proc default_warn;
  GC_oom_func default_oom;
  volatile size_t huge = SIZE_MAX; /* unknown to the compiler, which would warn */
  int status;
  GC_INIT();
  default_warn = GC_get_warn_proc();
  default_oom = GC_get_oom_fn();
  CHECK(default_warn != NULL && default_oom != NULL);
  GC_set_warn_proc(GC_ignore_warn_proc);
  CHECK(GC_get_warn_proc() == GC_ignore_warn_proc);
  CHECK(GC_malloc(huge) == NULL && GC_malloc_atomic(huge - 100) == NULL);
  CHECK(GC_malloc_uncollectable(huge / 2 + 1) == NULL);
  if (default_oom != NULL) CHECK(default_oom(10) == NULL);

  GC_set_warn_proc(on_warning);
  GC_set_oom_fn(on_oom);
  CHECK(GC_get_oom_fn() == on_oom);
  CHECK(GC_malloc(huge / 2) == replacement);
  CHECK(wanted >= huge / 2);
  CHECK(warnings >= 1);

  /* The collector is none the worse for it. */
  CHECK(GC_malloc(100) != NULL);
  GC_gcollect();

  status = run_in_child(abort_on_oom);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* A limit on the heap makes allocation fail, not the program. */
static int cells;
static void fill_heap(void* unused) {
  void** head = NULL;
  (void)unused;
  for (cells = 0; cells <= 4000; cells++) {
    void** cell = GC_malloc(10000);
    if (cell == NULL) break;
    *cell = head;
    head = cell;
  }
}
static void heap_limit(void) {
  GC_set_max_heap_size(20u << 20);
  GC_INIT();
  GC_set_warn_proc(GC_ignore_warn_proc);
  far_away(fill_heap, NULL);
  CHECK(cells > 1000 && cells <= 2100);
  CHECK(GC_get_heap_size() <= 20u << 20);
  collect_thoroughly();
  CHECK(GC_malloc(10000) != NULL);
}

/* Before initialisation and after it: the settings that programs read. */
static void defaults(void) {
  CHECK_EQ(GC_get_all_interior_pointers(), 1);
  CHECK_EQ(GC_get_dont_expand(), 0);
  CHECK_EQ(GC_get_finalize_on_demand(), 0);
  CHECK_EQ(GC_get_free_space_divisor(), 3);
  CHECK_EQ(GC_get_full_freq(), 19);
  CHECK_EQ(GC_get_java_finalization(), 1);
  CHECK_EQ(GC_get_max_retries(), 0);
  CHECK_EQ(GC_get_time_limit(), GC_TIME_UNLIMITED);
  CHECK_EQ(GC_is_disabled(), 0);
}
static void settings(void) {
  defaults();
  GC_INIT();
  defaults();
  GC_set_dont_expand(1);
  CHECK_EQ(GC_get_dont_expand(), 1);
  GC_set_dont_expand(0);
  GC_set_finalize_on_demand(1);
  CHECK_EQ(GC_get_finalize_on_demand(), 1);
  GC_set_free_space_divisor(5);
  CHECK_EQ(GC_get_free_space_divisor(), 5);
  GC_set_java_finalization(0);
  CHECK_EQ(GC_get_java_finalization(), 0);
  GC_set_time_limit(40);
  CHECK_EQ(GC_get_time_limit(), 40);
  CHECK(GC_malloc(100) != NULL);
}

/* With interior pointers off, static data hold objects by their first byte, or a displacement. */
static char* off_by_64;
static char* off_by_8;
static GC_hidden_pointer hidden_64, hidden_8;
static void point_inside(void* unused) {
  (void)unused;
  off_by_64 = GC_malloc(1000);
  off_by_8 = GC_malloc(1000);
  hidden_64 = GC_HIDE_POINTER(off_by_64);
  hidden_8 = GC_HIDE_POINTER(off_by_8);
  *off_by_8 = *off_by_64 = 77;
  off_by_64 += 64;
  off_by_8 += 8;
}
static void displacements(void) {
  GC_set_all_interior_pointers(0);
  CHECK_EQ(GC_get_all_interior_pointers(), 0);
  GC_INIT();
  GC_register_displacement(8);
  far_away(point_inside, NULL);
  CHECK(GC_base(off_by_8) == GC_REVEAL_POINTER(hidden_8));
  collect_thoroughly();
  CHECK_EQ(*(char*)GC_REVEAL_POINTER(hidden_8), 77);
}

static void incremental(void) {
  void** list = NULL;
  long i, n = 0;
  GC_enable_incremental();
  CHECK(GC_is_init_called());
  GC_set_time_limit(5);
  for (i = 0; i < 300000; i++) {
    void** cell = GC_malloc(32);
    cell[0] = i % 1000 ? list : NULL;
    cell[1] = (void*)i;
    GC_end_stubborn_change(cell);
    list = cell;
    if (i % 10000 == 0) GC_collect_a_little();
  }
  GC_gcollect();
  for (; list; list = list[0]) n++;
  CHECK_EQ(n, 1000);
}

static void debug_allocation(void) {
  char* p = NULL;
  int i;
  GC_INIT();
  for (i = 0; i < 1000; i++) {
    p = GC_debug_malloc(20, __FILE__, __LINE__);
    CHECK(p && all_bytes_are(p, 20, 0));
    memset(p, 1, 20);
    CHECK((char*)GC_base(p) == p - GC_get_debug_header_size());
    memset(GC_debug_malloc_atomic(30, __FILE__, __LINE__), 1, 30);
  }
  GC_gcollect();
  CHECK(all_bytes_are(p, 20, 1));
  GC_debug_free(p);
  GC_debug_free(NULL);
  p = GC_debug_malloc_uncollectable(40, __FILE__, __LINE__);
  CHECK(p && all_bytes_are(p, 40, 0));
  GC_gcollect();
  GC_debug_free(p);
  GC_gcollect();
}

static void visible(void) {
  static void* place;
  void** object;
  GC_INIT();
  object = GC_malloc(100);
  CHECK(GC_is_visible(&place) == &place);
  CHECK(GC_is_visible(object + 3) == object + 3);
}

static void* add_one(void* p) {
  ++*(int*)p;
  return p;
}
static void lock(void) {
  int n = 0;
  GC_INIT();
  CHECK(GC_call_with_alloc_lock(add_one, &n) == &n);
  CHECK_EQ(n, 1);
}

static void init_twice(void) {
  CHECK_EQ(GC_is_init_called(), 0);
  GC_deinit();
  GC_init();
  GC_init();
  CHECK_EQ(GC_is_init_called(), 1);
  GC_INIT();
}

const struct TestCase alloc_cases[] = {{"init_twice", init_twice},
                                       {"sizes", sizes},
                                       {"recycled_memory_is_cleared", recycled_memory_is_cleared},
                                       {"reallocation", reallocation},
                                       {"strings", strings},
                                       {"reachable_objects_survive", reachable_objects_survive},
                                       {"garbage_is_reclaimed", garbage_is_reclaimed},
                                       {"collections", collections},
                                       {"statistics", statistics},
                                       {"dump", dump},
                                       {"out_of_memory", out_of_memory},
                                       {"heap_limit", heap_limit},
                                       {"settings", settings},
                                       {"displacements", displacements},
                                       {"incremental", incremental},
                                       {"debug_allocation", debug_allocation},
                                       {"visible", visible},
                                       {"lock", lock},
                                       {NULL, NULL}};

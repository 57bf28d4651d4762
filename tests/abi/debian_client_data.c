/*
 * debian_client_data.c - libgc's variables. This program is not position-independent, so the
 * linker copies each of them into it, and the library must use the copies (libgc.req.data). See
 * debian_client.c.
 */
#define GC_THREADS
#include <gc/gc.h>
#include <gc/gc_gcj.h>
#include <gc/gc_mark.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* Exported, and used by ECL, but in no header. */
extern void (*GC_push_other_roots)(void);
extern GC_abort_func GC_on_abort;

static void initial_values(void) {
  CHECK_EQ(GC_all_interior_pointers, 1);
  CHECK_EQ(GC_dont_expand, 0);
  CHECK_EQ(GC_dont_gc, 0);
  CHECK_EQ(GC_dont_precollect, 0);
  CHECK_EQ(GC_finalize_on_demand, 0);
  CHECK(GC_finalizer_notifier == NULL);
  CHECK_EQ(GC_find_leak, 0);
  CHECK_EQ(GC_free_space_divisor, 3);
  CHECK_EQ(GC_full_freq, 19);
  CHECK_EQ(GC_gc_no, 0);
  CHECK_EQ(GC_gcj_kind, 0);
  CHECK_EQ(GC_gcj_debug_kind, 0);
  CHECK_EQ(GC_java_finalization, 1);
  CHECK_EQ(GC_max_retries, 0);
  CHECK_EQ(GC_no_dls, 0);
  CHECK_EQ(GC_non_gc_bytes, 0);
  CHECK(GC_on_heap_resize == NULL);
  CHECK(GC_oom_fn != NULL && GC_oom_fn(1) == NULL);
  CHECK_EQ(GC_parallel, 0);
  CHECK(GC_push_other_roots != NULL);
  CHECK(GC_on_abort != NULL);
  CHECK(GC_same_obj_print_proc && GC_is_visible_print_proc && GC_is_valid_displacement_print_proc);
  CHECK(GC_stackbottom == NULL);
  CHECK_EQ(GC_time_limit, GC_TIME_UNLIMITED);
  CHECK_EQ(GC_use_entire_heap, 0);
  CHECK_EQ(GC_debug_header_size, GC_get_debug_header_size());
}

/* Functions and variables are two ways to the same value, in both directions. */
static void variables_are_what_functions_see(void) {
  GC_INIT();
  GC_set_all_interior_pointers(0);
  CHECK_EQ(GC_all_interior_pointers, 0);
  GC_all_interior_pointers = 1;
  CHECK_EQ(GC_get_all_interior_pointers(), 1);
  GC_dont_expand = 1;
  CHECK_EQ(GC_get_dont_expand(), 1);
  GC_dont_expand = 0;
  GC_set_finalize_on_demand(1);
  CHECK_EQ(GC_finalize_on_demand, 1);
  GC_java_finalization = 0;
  CHECK_EQ(GC_get_java_finalization(), 0);
  GC_free_space_divisor = 7;
  CHECK_EQ(GC_get_free_space_divisor(), 7);
  GC_set_full_freq(3);
  CHECK_EQ(GC_full_freq, 3);
  GC_max_retries = 2;
  CHECK_EQ(GC_get_max_retries(), 2);
  GC_no_dls = 1;
  CHECK_EQ(GC_get_no_dls(), 1);
  GC_set_no_dls(0);
  CHECK_EQ(GC_no_dls, 0);
  GC_time_limit = 10;
  CHECK_EQ(GC_get_time_limit(), 10);
  GC_find_leak = 0;
  CHECK_EQ(GC_get_find_leak(), 0);
  CHECK(GC_get_oom_fn() == GC_oom_fn);
  CHECK(GC_get_push_other_roots() == GC_push_other_roots);

  CHECK_EQ(GC_gc_no, GC_get_gc_no());
  GC_gcollect();
  CHECK(GC_gc_no > 0);
  CHECK_EQ(GC_gc_no, GC_get_gc_no());

  GC_disable();
  CHECK_EQ(GC_dont_gc, 1);
  GC_enable();
  GC_dont_gc = 1;
  CHECK(GC_is_disabled());
  GC_gcollect();
  CHECK_EQ(GC_gc_no, GC_get_gc_no());
  GC_dont_gc = 0;
}

static int pushed;
static void (*real_push)(void);
static void count_and_push(void) {
  pushed++;
  real_push();
}
/* A procedure stored in the variable is called; ECL does so. */
static void push_other_roots_variable(void) {
  GC_INIT();
  real_push = GC_push_other_roots;
  GC_push_other_roots = count_and_push;
  CHECK(GC_get_push_other_roots() == count_and_push);
  GC_gcollect();
  CHECK(pushed >= 1);
}

static void* oom_result(size_t n) {
  (void)n;
  return NULL;
}
static int notified;
static void notifier(void) { notified++; }
static void resize(GC_word n) { (void)n; }
static void function_variables(void) {
  GC_INIT();
  GC_oom_fn = oom_result;
  CHECK(GC_get_oom_fn() == oom_result);
  GC_finalizer_notifier = notifier;
  CHECK(GC_get_finalizer_notifier() == notifier);
  GC_on_heap_resize = resize;
  CHECK(GC_get_on_heap_resize() == resize);
}

/* The bounds enclose every object, now and later. */
static void heap_bounds(void) {
  size_t size;
  GC_INIT();
  for (size = 16; size < 50000000; size *= 4) {
    uintptr_t p = (uintptr_t)GC_malloc(size);
    CHECK(p >= (uintptr_t)GC_least_plausible_heap_addr);
    CHECK(p + size - 1 <= (uintptr_t)GC_greatest_plausible_heap_addr);
  }
}

static void stack_bottom(void) {
  char here;
  struct GC_stack_base sb;
  GC_INIT();
  CHECK(GC_stackbottom > &here);
  CHECK_EQ(GC_get_stack_base(&sb), GC_SUCCESS);
  CHECK((char*)sb.mem_base > &here);
}

/* Set by the program before initialisation, the stack's end is believed. */
static void given_stack_bottom(void) {
  char* bottom = (char*)__builtin_frame_address(0) + 256;
  GC_stackbottom = bottom;
  GC_INIT();
  CHECK(GC_stackbottom == bottom);
  CHECK(GC_malloc(10) != NULL);
  GC_gcollect();
}

/* Milliseconds and nanoseconds are two settings, of which the first is a variable, too. */
static void time_limits(void) {
  struct GC_timeval_s limit = {5, 123};
  GC_INIT();
  GC_set_time_limit_tv(limit);
  CHECK_EQ(GC_time_limit, 5);
  GC_set_time_limit(7);
  limit = GC_get_time_limit_tv();
  CHECK_EQ(limit.tv_ms, 7);
  CHECK_EQ(limit.tv_nsec, 123);
  GC_time_limit = 9;
  limit = GC_get_time_limit_tv();
  CHECK_EQ(limit.tv_ms, 9);
}

/* All that a list of dead cells took is counted, by the collection that finds it and later ones. */
static void drop_cells(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < 10000; i++) GC_malloc(64);
}
static void reclaimed_bytes(void) {
  struct GC_prof_stats_s stats;
  int i;
  GC_INIT();
  for (i = 0; i < 3; i++) {
    far_away(drop_cells, NULL);
    collect_thoroughly();
  }
  GC_get_prof_stats(&stats, sizeof stats);
  CHECK(stats.reclaimed_bytes_before_gc + stats.bytes_reclaimed_since_gc >= 3 * 10000 * 64 / 2);
}

/* The total never goes down, whoever allocates and collects. */
static void* allocate_sizes(void* result) {
  size_t size;
  for (size = 16; size < 2000; size += 16) GC_malloc(size);
  return result;
}
static void total_bytes(void) {
  size_t last = 0;
  int i, k, lower = 0;
  GC_INIT();
  for (i = 0; i < 100; i++) {
    pthread_t thread;
    for (k = 0; k < 100; k++) {
      const size_t total = GC_get_total_bytes();
      if (total < last) lower++;
      last = total;
      allocate_sizes(NULL);
    }
    if (i % 10 == 0 && GC_pthread_create(&thread, NULL, allocate_sizes, NULL) == 0)
      GC_pthread_join(thread, NULL);
    GC_gcollect();
  }
  CHECK_EQ(lower, 0);
}

/* The reports that say so do not take the lock. */
static void* dump_with_lock(void* result) {
  GC_dump_named("by name");
  GC_dump_regions();
  GC_dump_finalization();
  return result;
}
static void dump(void) {
  GC_INIT();
  GC_malloc(10);
  alarm(20);
  CHECK(GC_call_with_alloc_lock(dump_with_lock, &pushed) == &pushed);
}
static void dumps_without_the_lock(void) { CHECK_EQ(run_in_child(dump), 0); }

const struct TestCase data_cases[] = {
    {"initial_values", initial_values},
    {"variables_are_what_functions_see", variables_are_what_functions_see},
    {"push_other_roots_variable", push_other_roots_variable},
    {"function_variables", function_variables},
    {"heap_bounds", heap_bounds},
    {"stack_bottom", stack_bottom},
    {"given_stack_bottom", given_stack_bottom},
    {"time_limits", time_limits},
    {"reclaimed_bytes", reclaimed_bytes},
    {"total_bytes", total_bytes},
    {"dumps_without_the_lock", dumps_without_the_lock},
    {NULL, NULL}};

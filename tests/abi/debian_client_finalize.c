/* debian_client_finalize.c - finalizers and weak links. See debian_client.c. */
#include <gc/gc.h>
#include <string.h>

#include "check.h"

enum { kMany = 1000, kMost = 950 };

/* Counts in *data, or in the object's second word if data is null. */
static int finalized;
static void count(void* obj, void* data) {
  CHECK(obj != NULL);
  CHECK(data == &finalized);
  finalized++;
}

typedef void register_fn(void*, GC_finalization_proc, void*, GC_finalization_proc*, void**);

static void make_many(void* arg) {
  register_fn* reg = *(register_fn**)arg;
  int i;
  for (i = 0; i < kMany; i++) {
    GC_finalization_proc old = count;
    void* old_data = &old;
    void* obj = GC_malloc(32);
    reg(obj, count, &finalized, &old, &old_data);
    CHECK(old == 0 && old_data == NULL);
  }
}

static void expect_finalized_once(register_fn* reg) {
  finalized = 0;
  far_away(make_many, &reg);
  collect_thoroughly();
  CHECK(finalized >= kMost && finalized <= kMany);
}

static void each_variety_runs(void) {
  GC_INIT();
  expect_finalized_once(GC_register_finalizer);
  expect_finalized_once(GC_register_finalizer_ignore_self);
  expect_finalized_once(GC_register_finalizer_no_order);
}

static void make_many_debug(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany; i++)
    GC_debug_register_finalizer_ignore_self(GC_debug_malloc(32, __FILE__, __LINE__), count,
                                            &finalized, NULL, NULL);
}
static void debug_variety_runs(void) {
  GC_INIT();
  finalized = 0;
  far_away(make_many_debug, NULL);
  collect_thoroughly();
  CHECK(finalized >= kMost && finalized <= kMany);
}

static void other(void* obj, void* data) {
  (void)obj;
  (void)data;
  CHECK(!"a finalizer that was replaced or removed has run");
}

static void* kept[2];
static void replacing_and_removing(void) {
  GC_finalization_proc old = 0;
  void* data = NULL;
  int i = 0;
  GC_INIT();
  kept[0] = GC_malloc(16);
  GC_register_finalizer(kept[0], other, &i, NULL, NULL);
  GC_register_finalizer_no_order(kept[0], count, &finalized, &old, &data);
  CHECK(old == other && data == &i);
  GC_register_finalizer(kept[0], 0, 0, &old, &data);
  CHECK(old == count && data == &finalized);

  kept[1] = GC_malloc(16);
  GC_register_finalizer(kept[1], other, 0, 0, 0);
  GC_register_finalizer(kept[1], 0, 0, 0, 0);
  kept[1] = NULL;
  kept[0] = NULL;
  collect_thoroughly();
  CHECK_EQ(finalized, 0);

  /* Not an object of the heap. */
  old = other;
  data = &i;
  GC_register_finalizer(&i, count, &finalized, &old, &data);
  CHECK(old == 0 && data == NULL);
}

/* a points to b: a is finalized first, and b only after another collection. */
static char sequence[16];
static void append(void* obj, void* data) {
  (void)obj;
  sequence[strlen(sequence)] = (char)(long)data;
}
static void make_chain(void* reg) {
  void** b = GC_malloc(16);
  void** a = GC_malloc(16);
  void** c = GC_malloc(16);
  a[0] = b;
  b[0] = c;
  (*(register_fn**)reg)(c, append, (void*)'c', 0, 0);
  (*(register_fn**)reg)(a, append, (void*)'a', 0, 0);
  (*(register_fn**)reg)(b, append, (void*)'b', 0, 0);
}
static void expect_order(register_fn* reg) {
  memset(sequence, 0, sizeof sequence);
  far_away(make_chain, &reg);
  collect_thoroughly();
  /* A stray word may have kept the chain; what ran, ran in order. */
  CHECK(strncmp(sequence, "abc", strlen(sequence)) == 0);
}
static void ordered(void) {
  int i;
  GC_INIT();
  for (i = 0; i < 20; i++) {
    expect_order(GC_register_finalizer);
    expect_order(GC_register_finalizer_ignore_self);
  }
  CHECK(strcmp(sequence, "abc") == 0);
}

/* A cycle waits for ever in the plain order, and not with ignore_self or without order. */
static void make_selfish(void* arg) {
  register_fn* reg = *(register_fn**)arg;
  int i;
  for (i = 0; i < kMany; i++) {
    void** obj = GC_malloc(32);
    obj[1] = obj;
    reg(obj, count, &finalized, 0, 0);
  }
}
static int count_selfish(register_fn* reg) {
  finalized = 0;
  far_away(make_selfish, &reg);
  collect_thoroughly();
  return finalized;
}
static void cycles(void) {
  GC_INIT();
  CHECK(count_selfish(GC_register_finalizer_ignore_self) >= kMost);
  CHECK(count_selfish(GC_register_finalizer_no_order) >= kMost);
  GC_gcollect();
  GC_set_warn_proc(GC_ignore_warn_proc); /* about the cycles */
  CHECK_EQ(count_selfish(GC_register_finalizer), 0);
}

static int notified;
static void notifier(void) { notified++; }
static void on_demand(void) {
  register_fn* reg = GC_register_finalizer;
  int ran;
  GC_INIT();
  GC_set_finalize_on_demand(1);
  GC_set_finalizer_notifier(notifier);
  CHECK(GC_get_finalizer_notifier() == notifier);
  CHECK_EQ(GC_should_invoke_finalizers(), 0);
  CHECK_EQ(GC_invoke_finalizers(), 0);
  far_away(make_many, &reg);
  GC_gcollect();
  GC_gcollect();
  CHECK_EQ(finalized, 0);
  CHECK(GC_should_invoke_finalizers());
  CHECK(notified >= 1);
  ran = GC_invoke_finalizers();
  CHECK_EQ(ran, finalized);
  CHECK(finalized >= kMost);
  CHECK_EQ(GC_should_invoke_finalizers(), 0);
}

/* The object is whole in its finalizer, and may be kept by it. */
static void** rescued;
static void rescue(void* obj, void* data) {
  (void)data;
  rescued = obj;
}
static void make_rescued(void* unused) {
  void** obj = GC_malloc(64);
  char* text = GC_malloc_atomic(32);
  (void)unused;
  memcpy(text, "still here", sizeof "still here");
  obj[3] = text;
  GC_register_finalizer_no_order(obj, rescue, 0, 0, 0);
}
static void resurrection(void) {
  int i;
  GC_INIT();
  for (i = 0; i < 20 && rescued == NULL; i++) {
    far_away(make_rescued, NULL);
    collect_thoroughly();
  }
  CHECK(rescued != NULL);
  if (rescued == NULL) return;
  for (i = 0; i < 5; i++) {
    GC_gcollect();
    memset(GC_malloc(64), 0xff, 64);
  }
  CHECK(strcmp(rescued[3], "still here") == 0);
}

/* ---- Weak links ---- */

/* Atomic memory hides pointers. */
static void** make_links(void) { return GC_malloc_atomic(kMany * sizeof(void*)); }

static void** links;
static void* strong[kMany];
static void make_weak(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany; i++) {
    void* obj = GC_malloc(32);
    if (i % 2) strong[i] = obj;
    links[i] = obj;
    CHECK_EQ(GC_general_register_disappearing_link(&links[i], obj), GC_SUCCESS);
  }
}
static void weak_links(void) {
  int i, cleared = 0, held = 0;
  GC_INIT();
  links = make_links();
  memset(links, 0, kMany * sizeof(void*));
  far_away(make_weak, NULL);
  collect_thoroughly();
  for (i = 0; i < kMany; i++) {
    if (i % 2)
      held += links[i] == strong[i];
    else
      cleared += links[i] == NULL;
  }
  CHECK_EQ(held, kMany / 2);
  CHECK(cleared >= kMost / 2);
}

static void link_results(void) {
  void** a;
  void** b;
  void* obj;
  GC_INIT();
  a = GC_malloc_atomic(sizeof(void*));
  b = GC_malloc_atomic(sizeof(void*));
  obj = GC_malloc(32);
  *a = *b = obj;
  CHECK_EQ(GC_unregister_disappearing_link(a), 0);
  CHECK_EQ(GC_general_register_disappearing_link(a, obj), GC_SUCCESS);
  CHECK_EQ(GC_general_register_disappearing_link(a, obj), GC_DUPLICATE);
  CHECK_EQ(GC_move_disappearing_link(a, a), GC_SUCCESS);
  CHECK_EQ(GC_move_disappearing_link(b, a), GC_NOT_FOUND);
  CHECK_EQ(GC_move_disappearing_link(a, b), GC_SUCCESS);
  CHECK_EQ(GC_unregister_disappearing_link(a), 0);
  CHECK_EQ(GC_general_register_disappearing_link(a, obj), GC_SUCCESS);
  CHECK_EQ(GC_move_disappearing_link(a, b), GC_DUPLICATE);
  CHECK_EQ(GC_unregister_disappearing_link(a), 1);
  CHECK_EQ(GC_unregister_disappearing_link(b), 1);
  CHECK_EQ(GC_unregister_disappearing_link(b), 0);
  CHECK_EQ(GC_register_long_link(a, obj), GC_SUCCESS);
  CHECK_EQ(GC_register_long_link(a, obj), GC_DUPLICATE);
  CHECK_EQ(GC_move_long_link(a, b), GC_SUCCESS);
  CHECK_EQ(GC_unregister_long_link(b), 1);
  CHECK_EQ(GC_unregister_long_link(b), 0);
  GC_reachable_here(obj);
}

/* A link that was unregistered, or moved away, is not cleared; the new place is. */
static void make_moved(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany / 2; i++) {
    void* obj = GC_malloc(32);
    links[i] = links[kMany / 2 + i] = obj;
    GC_general_register_disappearing_link(&links[i], obj);
    if (i % 2)
      GC_move_disappearing_link(&links[i], &links[kMany / 2 + i]);
    else
      GC_unregister_disappearing_link(&links[i]);
  }
}
static void moved_links(void) {
  int i, untouched = 0, moved = 0;
  GC_INIT();
  links = make_links();
  far_away(make_moved, NULL);
  collect_thoroughly();
  for (i = 0; i < kMany / 2; i++) {
    untouched += links[i] != NULL;
    moved += i % 2 && links[kMany / 2 + i] == NULL;
  }
  CHECK_EQ(untouched, kMany / 2);
  CHECK(moved >= kMost / 4);
}

/* Short links go before finalizers run, long links after the object is really gone. */
static int short_cleared_first, long_kept;
static void look_at_links(void* obj, void* data) {
  void** pair = data;
  short_cleared_first += pair[0] == NULL;
  long_kept += pair[1] == obj;
}
static void make_linked(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany / 2; i++) {
    void* obj = GC_malloc(32);
    links[2 * i] = links[2 * i + 1] = obj;
    GC_general_register_disappearing_link(&links[2 * i], obj);
    GC_register_long_link(&links[2 * i + 1], obj);
    GC_register_finalizer_no_order(obj, look_at_links, &links[2 * i], 0, 0);
  }
}
static void short_and_long_links(void) {
  int i, gone = 0;
  GC_INIT();
  links = make_links();
  far_away(make_linked, NULL);
  collect_thoroughly();
  CHECK(short_cleared_first >= kMost / 2);
  CHECK_EQ(long_kept, short_cleared_first);
  for (i = 0; i < kMany / 2; i++) gone += links[2 * i + 1] == NULL;
  CHECK(gone >= kMost / 2);
}

const struct TestCase finalize_cases[] = {{"each_variety_runs", each_variety_runs},
                                          {"debug_variety_runs", debug_variety_runs},
                                          {"replacing_and_removing", replacing_and_removing},
                                          {"ordered", ordered},
                                          {"cycles", cycles},
                                          {"on_demand", on_demand},
                                          {"resurrection", resurrection},
                                          {"weak_links", weak_links},
                                          {"link_results", link_results},
                                          {"moved_links", moved_links},
                                          {"short_and_long_links", short_and_long_links},
                                          {NULL, NULL}};

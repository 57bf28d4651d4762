/* debian_client_kinds.c - kinds, descriptors, mark procedures, roots. See debian_client.c. */
#include <gc/gc.h>
#include <gc/gc_inline.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { kMany = 1000, kMost = 950 };

/* Objects whose death can be seen: links[i] is cleared when the i-th object dies. */
static void** links;
static void make_links(void) {
  links = GC_malloc_atomic_uncollectable(kMany * sizeof(void*));
  memset(links, 0, kMany * sizeof(void*));
}
static void* tracked(int i) {
  void* obj = GC_malloc(32);
  GC_unregister_disappearing_link(&links[i]); /* of a case's earlier round */
  links[i] = obj;
  CHECK_EQ(GC_general_register_disappearing_link(&links[i], obj), GC_SUCCESS);
  return obj;
}
static int alive(int from, int to) {
  int i, n = 0;
  for (i = from; i < to; i++) n += links[i] != NULL;
  return n;
}

/* ---- Typed objects ---- */

static void** typed[kMany / 2];
static GC_descr descriptor;
static void fill_typed(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany / 2; i++) {
    typed[i] = GC_malloc_explicitly_typed(4 * sizeof(void*), descriptor);
    CHECK(typed[i][0] == NULL && typed[i][3] == NULL);
    typed[i][0] = tracked(i);             /* not a pointer, the layout says */
    typed[i][2] = tracked(kMany / 2 + i); /* a pointer */
  }
}
static void typed_objects(void) {
  GC_word bitmap[1] = {0};
  GC_INIT();
  make_links();
  GC_set_bit(bitmap, 2);
  descriptor = GC_make_descriptor(bitmap, 4);
  far_away(fill_typed, NULL);
  collect_thoroughly();
  CHECK(alive(0, kMany / 2) <= kMany - kMost);
  CHECK_EQ(alive(kMany / 2, kMany), kMany / 2);
}

/* Layouts longer than a word of bits, and none at all. */
static void long_layouts(void) {
  enum { kWords = 300 };
  GC_word bitmap[kWords / 64 + 1] = {0};
  static void** object;
  int i;
  GC_INIT();
  make_links();
  for (i = 0; i < kWords; i += 3) GC_set_bit(bitmap, i);
  descriptor = GC_make_descriptor(bitmap, kWords);
  object = GC_malloc_explicitly_typed(kWords * sizeof(void*), descriptor);
  for (i = 0; i < kWords; i += 3) object[i] = tracked(i);
  collect_thoroughly();
  for (i = 0; i < kWords; i += 3) CHECK(links[i] != NULL && links[i] == object[i]);
  memset(bitmap, 0, sizeof bitmap);
  CHECK(GC_malloc_explicitly_typed(64, GC_make_descriptor(bitmap, 8)) != NULL);
}

/* ---- Own kinds ---- */

/* Marks the first word and nothing else; env is what GC_MAKE_PROC was given. */
static int proc_calls;
static struct GC_ms_entry* mark_first(GC_word* addr, struct GC_ms_entry* top,
                                      struct GC_ms_entry* limit, GC_word env) {
  CHECK_EQ(env, 5);
  __atomic_add_fetch(&proc_calls, 1, __ATOMIC_RELAXED);
  return GC_MARK_AND_PUSH((void*)addr[0], top, limit, (void**)addr);
}
static unsigned kind;
static void** of_kind[kMany / 2];
static void fill_kind(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < kMany / 2; i++) {
    of_kind[i] = GC_generic_malloc(4 * sizeof(void*), (int)kind);
    CHECK(of_kind[i][1] == NULL && of_kind[i][3] == NULL);
    of_kind[i][0] = tracked(i);
    of_kind[i][1] = tracked(kMany / 2 + i);
  }
}
static void mark_procedures(void) {
  unsigned proc;
  GC_INIT();
  make_links();
  proc = GC_new_proc(mark_first);
  CHECK(proc >= GC_RESERVED_MARK_PROCS && proc < GC_MAX_MARK_PROCS);
  kind = GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(proc, 5), 0, 1);
  CHECK(kind > GC_I_NORMAL && kind < 16);
  far_away(fill_kind, NULL);
  collect_thoroughly();
  CHECK(proc_calls >= kMany / 2);
  CHECK_EQ(alive(0, kMany / 2), kMany / 2);
  CHECK(alive(kMany / 2, kMany) <= kMany - kMost);
}

/* A kind that is searched whole, and one that is not searched: GC_DS_LENGTH. */
static void length_kinds(void) {
  static void *whole, *opaque;
  unsigned searched, unsearched;
  size_t size;
  void* link;
  GC_INIT();
  make_links();
  searched = GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1);
  unsearched = GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 0, 0);
  CHECK(searched != unsearched);
  whole = GC_generic_malloc(100000, (int)searched);
  opaque = GC_generic_malloc(100, (int)unsearched);
  ((void**)whole)[10000] = tracked(0);
  CHECK_EQ(GC_get_kind_and_size(whole, &size), searched);
  CHECK(size >= 100000);
  CHECK_EQ(GC_get_kind_and_size(opaque, NULL), unsearched);
  CHECK_EQ(GC_get_kind_and_size(GC_malloc(16), NULL), GC_I_NORMAL);
  CHECK_EQ(GC_get_kind_and_size(GC_malloc_atomic(16), NULL), GC_I_PTRFREE);
  collect_thoroughly();
  CHECK(links[0] != NULL);

  /* Lists of objects of a kind, as runtimes keep them. */
  link = NULL;
  GC_generic_malloc_many(64, (int)searched, &link);
  CHECK(link != NULL);
  for (size = 0; link != NULL; size++) {
    void* object = link;
    link = GC_NEXT(object);
    GC_NEXT(object) = NULL;
    CHECK(GC_base(object) == object);
    CHECK_EQ(GC_get_kind_and_size(object, NULL), searched);
  }
  CHECK(size >= 1);
}

/* The inline macros, compiled from Debian's header. */
static void inline_allocation(void) {
  static void* lists[GC_TINY_FREELISTS];
  void* list = NULL;
  long i, n = 0;
  /* bdwgc does not search the last word of an object when it adds a byte for past-the-end pointers,
   * which it does with interior pointers on; these macros ask for no such byte. */
  GC_set_all_interior_pointers(0);
  GC_INIT();
  for (i = 0; i < 200000; i++) {
    void* pair;
    GC_CONS(pair, (void*)(i * 2 + 1), i % 1000 ? list : NULL, lists);
    list = pair;
  }
  for (; list; list = ((void**)list)[1], n++) CHECK_EQ(*(long*)list, (200000 - 1 - n) * 2 + 1);
  CHECK_EQ(n, 1000);
}

/* ---- Marks ---- */

static void* read_mark(void* object) {
  GC_set_mark_bit(object);
  CHECK_EQ(GC_is_marked(object), 1);
  GC_clear_mark_bit(object);
  CHECK_EQ(GC_is_marked(object), 0);
  GC_set_mark_bit(object);
  return NULL;
}
static void mark_bits(void) {
  void* object;
  GC_INIT();
  object = GC_malloc(100);
  GC_call_with_alloc_lock(read_mark, object);
  GC_reachable_here(object);
  GC_gcollect();
}

/* ---- Roots ---- */

/* Memory that libgc does not know. */
static void** foreign;
static int n_foreign = 256;
static void map_foreign(void) {
  foreign = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void fill_foreign(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < n_foreign; i++) foreign[i] = tracked(i);
}

static void added_roots(void) {
  GC_INIT();
  make_links();
  map_foreign();
  GC_add_roots(foreign, foreign + n_foreign);
  far_away(fill_foreign, NULL);
  collect_thoroughly();
  CHECK_EQ(alive(0, n_foreign), n_foreign);
  GC_remove_roots(foreign, foreign + n_foreign);
  collect_thoroughly();
  CHECK(alive(0, n_foreign) <= 16);
}

/* Only what is registered later is a root; stacks still are. */
static int in_main_data = 5;
static void cleared_roots(void) {
  void* on_stack;
  GC_INIT();
  GC_clear_roots();
  GC_add_roots(&in_main_data, &in_main_data + 1);
  GC_add_roots(&links, &links + 1);
  make_links();
  on_stack = tracked(0);
  collect_thoroughly();
  CHECK(links[0] == on_stack);
}

static void (*previous_push)(void);
static enum { kPushAll, kPushAllEager, kPushConditional, kPushNothing } how;
static int pushes;
static void push_foreign(void) {
  pushes++;
  switch (how) {
    case kPushAll:
      GC_push_all(foreign, foreign + n_foreign);
      break;
    case kPushAllEager:
      GC_push_all_eager(foreign, foreign + n_foreign);
      break;
    case kPushConditional:
      GC_push_conditional(foreign, foreign + n_foreign, 1);
      break;
    case kPushNothing:
      break;
  }
  if (previous_push) previous_push();
}
static void pushed_roots(void) {
  GC_INIT();
  make_links();
  map_foreign();
  previous_push = GC_get_push_other_roots();
  GC_set_push_other_roots(push_foreign);
  CHECK(GC_get_push_other_roots() == push_foreign);
  for (how = kPushAll; how < kPushNothing; how++) {
    far_away(fill_foreign, NULL);
    collect_thoroughly();
    CHECK_EQ(alive(0, n_foreign), n_foreign);
  }
  CHECK(pushes >= 3);
  how = kPushNothing;
  collect_thoroughly();
  CHECK(alive(0, n_foreign) <= 16);
}

/* Without dynamic libraries' data; the program's own data and its stack still count. */
static void* in_data;
static void no_dynamic_libraries(void) {
  GC_set_no_dls(1);
  CHECK_EQ(GC_get_no_dls(), 1);
  GC_INIT();
  GC_add_roots(&in_data, &in_data + 1);
  GC_add_roots(&links, &links + 1);
  make_links();
  in_data = tracked(0);
  collect_thoroughly();
  CHECK(links[0] == in_data);
}

const struct TestCase kinds_cases[] = {{"typed_objects", typed_objects},
                                       {"long_layouts", long_layouts},
                                       {"mark_procedures", mark_procedures},
                                       {"length_kinds", length_kinds},
                                       {"inline_allocation", inline_allocation},
                                       {"mark_bits", mark_bits},
                                       {"added_roots", added_roots},
                                       {"cleared_roots", cleared_roots},
                                       {"pushed_roots", pushed_roots},
                                       {"no_dynamic_libraries", no_dynamic_libraries},
                                       {NULL, NULL}};

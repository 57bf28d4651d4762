/* headers_all.c: all C headers at once; headers_test.sh only compiles it. */
#include <gc/gc.h>
#include <gc/gc_backptr.h>
#include <gc/gc_disclaim.h>
#include <gc/gc_gcj.h>
#include <gc/gc_inline.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>
#include <gc/javaxfc.h>

#if GC_VERSION_MAJOR != 8 || GC_VERSION_MINOR != 2 || GC_VERSION_MICRO != 2
#error "these are not the headers of 8.2.2"
#endif

struct entry {
  struct entry* next;
  GC_word hash;
  void* value;
};

static void* lists[GC_TINY_FREELISTS];

static void finalizer(void* obj, void* data) {
  (void)obj;
  *(int*)data = 1;
}
static void* under_lock(void* data) { return data; }
static struct GC_ms_entry* mark(GC_word* addr, struct GC_ms_entry* top, struct GC_ms_entry* limit,
                                GC_word env) {
  (void)env;
  return GC_MARK_AND_PUSH((void*)addr[0], top, limit, (void**)addr);
}

int main(void) {
  static int finalized;
  void *words, *atomic_words, *pair;
  GC_word bitmap[GC_BITMAP_SIZE(struct entry)] = {0};
  GC_descr descriptor;
  struct entry* e;
  char* text;
  void* link;
  GC_hidden_pointer hidden;
  unsigned proc;

  GC_INIT();
  e = GC_NEW(struct entry);
  (void)GC_NEW_ATOMIC(struct entry);
  (void)GC_NEW_UNCOLLECTABLE(struct entry);
  (void)GC_MALLOC_IGNORE_OFF_PAGE(100000);
  (void)GC_MALLOC_ATOMIC_IGNORE_OFF_PAGE(100000);
  (void)GC_MALLOC_ATOMIC_UNCOLLECTABLE(10);
  e = (struct entry*)GC_REALLOC(e, 2 * sizeof *e);
  text = GC_STRDUP("a");
  text = GC_STRNDUP(text, 1);
  GC_PTR_STORE(&e->next, e);
  GC_PTR_STORE_AND_DIRTY(&e->value, text);
  GC_END_STUBBORN_CHANGE(e);
  GC_reachable_here(text);
  text = GC_PTR_ADD(text, 1);
  (void)GC_PRE_INCR(text, -1);
  (void)GC_POST_INCR(text);
  (void)GC_POST_DECR(text);
  GC_REGISTER_FINALIZER(e, finalizer, &finalized, 0, 0);
  GC_REGISTER_FINALIZER_IGNORE_SELF(e, finalizer, &finalized, 0, 0);
  GC_REGISTER_FINALIZER_NO_ORDER(e, finalizer, &finalized, 0, 0);
  GC_REGISTER_FINALIZER_UNREACHABLE(e, finalizer, &finalized, 0, 0);
  link = e;
  (void)GC_GENERAL_REGISTER_DISAPPEARING_LINK(&link, e);
  (void)GC_REGISTER_LONG_LINK(&link, e);
  GC_REGISTER_DISPLACEMENT(8);
  hidden = GC_HIDE_POINTER(e);
  e = (struct entry*)GC_REVEAL_POINTER(hidden);
#ifdef GC_I_HIDE_POINTERS
  e = (struct entry*)REVEAL_POINTER(HIDE_POINTER(e));
#endif
#ifdef GC_REQUIRE_WCSDUP
  (void)GC_WCSDUP(L"wide");
#endif

  GC_set_bit(bitmap, GC_WORD_OFFSET(struct entry, next));
  GC_set_bit(bitmap, GC_WORD_OFFSET(struct entry, value));
  descriptor = GC_make_descriptor(bitmap, GC_WORD_LEN(struct entry));
  (void)GC_MALLOC_EXPLICITLY_TYPED(sizeof(struct entry), descriptor);
  (void)GC_CALLOC_EXPLICITLY_TYPED(3, sizeof(struct entry), descriptor);
  proc = GC_new_proc(mark);
  (void)GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(proc, 0), 0, 1);
  (void)GC_GENERIC_OR_SPECIAL_MALLOC(16, GC_I_NORMAL);
  (void)GC_GCJ_MALLOC(16, bitmap);
  (void)GC_GCJ_MALLOC_IGNORE_OFF_PAGE(16, bitmap);

  GC_MALLOC_WORDS(words, 3, lists);
  GC_MALLOC_ATOMIC_WORDS(atomic_words, 3, lists);
  GC_CONS(pair, words, atomic_words, lists);
  (void)GC_malloc_kind_global(16, GC_I_PTRFREE);

  GC_alloc_lock();
  GC_alloc_unlock();
  (void)GC_call_with_alloc_lock(under_lock, pair);
  (void)GC_call_with_reader_lock(under_lock, pair, 1);
  pair = GC_REALLOCF(pair, 100);
  GC_FREEZERO(pair, 10);
  GC_FREEZEROALL(words);
  GC_FREE(e);
  GC_INIT()
  return finalized;
}

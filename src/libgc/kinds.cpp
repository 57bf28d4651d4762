// Kinds and mark procedures that programs make, objects with disclaim functions, gcj-style objects.
#include "heap/kinds.hpp"

#include "gc/gc_disclaim.h"
#include "gc/gc_gcj.h"
#include "heap/arena.hpp"
#include "libgc/support.hpp"
#include "mark/descriptor.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

// Free lists are an argument that kinds don't need here. Programs index them by granules up to
// half a page.
constexpr size_t kFreeListSlots = 129;

void** make_free_list() {
  auto** list = static_cast<void**>(heap::arena_take(kFreeListSlots * sizeof(void*)));
  if (list == nullptr) abort_with("no memory for a kind's free lists");
  return list;
}

unsigned make_kind(GC_word descriptor, bool add_size, bool clear) {
  const unsigned kind = heap::add_kind(descriptor, add_size, clear);
  if (kind == heap::kMaxKinds) abort_with("Too many kinds");
  return kind;
}

unsigned make_procedure(GC_mark_proc procedure) {
  const unsigned number =
      heap::add_mark_procedure(reinterpret_cast<heap::MarkProcedure>(procedure));
  if (number == heap::kMaxProcedures) abort_with("Too many mark procedures");
  return number;
}

// Objects whose first word points to a closure that finalizes them; the low bit says that the
// object is whole, so that a slot without a closure is left alone.
constexpr base::Word kHasClosure = 1;
// Of such objects; 0 until it is made. Written once under the lock (release: the kind is made),
// read by whoever allocates (acquire).
std::atomic<unsigned> finalized_kind{0};

int run_closure(void* object) {
  const base::Word first = *static_cast<base::Word*>(object);
  if ((first & kHasClosure) == 0) return 0;
  const auto* closure = reinterpret_cast<const GC_finalizer_closure*>(first & ~kHasClosure);
  closure->proc(static_cast<base::Word*>(object) + 1, closure->cd);
  return 0;
}

GC_ms_entry* no_gcj_procedure(GC_word*, GC_ms_entry*, GC_ms_entry*, GC_word) {
  abort_with("a gcj-style object names the mark procedure that GC_init_gcj_malloc did not get");
}

}  // namespace

extern "C" {

size_t GC_get_hblk_size() { return heap::kBlockSize; }

GC_API void** GC_new_free_list() {
  cycle::start();
  LockGuard guard(heap_lock);
  return make_free_list();
}
GC_API void** GC_new_free_list_inner() { return make_free_list(); }

GC_API unsigned GC_new_kind(void**, GC_word descriptor, int add_size, int clear) {
  cycle::start();
  LockGuard guard(heap_lock);
  return make_kind(descriptor, add_size != 0, clear != 0);
}
GC_API unsigned GC_new_kind_inner(void**, GC_word descriptor, int add_size, int clear) {
  return make_kind(descriptor, add_size != 0, clear != 0);
}
GC_API unsigned GC_new_proc(GC_mark_proc procedure) {
  LockGuard guard(heap_lock);
  return make_procedure(procedure);
}
GC_API unsigned GC_new_proc_inner(GC_mark_proc procedure) { return make_procedure(procedure); }

void GC_register_disclaim_proc(int kind, GC_disclaim_proc function, int mark_unconditionally) {
  const heap::KindNumber number = known_kind(kind, "GC_register_disclaim_proc: no such kind");
  if (GC_find_leak != 0) return;
  LockGuard guard(heap_lock);
  heap::set_disclaim(number, function, mark_unconditionally != 0);
}

void GC_init_finalized_malloc() {
  if (finalized_kind.load(std::memory_order_acquire) != 0) return;
  cycle::start();
  LockGuard guard(heap_lock);
  if (finalized_kind.load(std::memory_order_relaxed) != 0) return;
  const unsigned kind = make_kind(0, true, true);
  // As other finalizers, off while leaks are looked for.
  if (GC_find_leak == 0) heap::set_disclaim(kind, run_closure, true);
  finalized_kind.store(kind, std::memory_order_release);
}
void* GC_finalized_malloc(size_t bytes, const GC_finalizer_closure* closure) {
  GC_init_finalized_malloc();
  auto* object = static_cast<base::Word*>(alloc::allocate(
      bytes_and(bytes, sizeof(Word)),
      static_cast<heap::KindNumber>(finalized_kind.load(std::memory_order_relaxed))));
  if (object == nullptr) return nullptr;
  *object = base::as_word(closure) | kHasClosure;
  return object + 1;
}

void GC_init_gcj_malloc(int procedure_number, void* procedure) {
  cycle::start();
  LockGuard guard(heap_lock);
  if (GC_gcj_kind != 0) return;
  if (procedure_number < 0 || procedure_number >= static_cast<int>(heap::mark_procedure_count)) {
    abort_with("GC_init_gcj_malloc: no such mark procedure number");
  }
  heap::mark_procedures[procedure_number] =
      procedure != nullptr ? reinterpret_cast<heap::MarkProcedure>(procedure)
                           : reinterpret_cast<heap::MarkProcedure>(no_gcj_procedure);
  // The descriptor is the second word of what the object's first word points to.
  const base::Word through_first_word =
      (static_cast<base::Word>(0) - sizeof(base::Word) - heap::kIndirectBias) | heap::kTagPerObject;
  GC_gcj_kind = static_cast<int>(make_kind(through_first_word, false, true));
  // The program's procedure, told by its environment that a header comes before the object. Without
  // one, all words count.
  GC_gcj_debug_kind = static_cast<int>(
      procedure != nullptr
          ? make_kind(mark::procedure_descriptor(static_cast<unsigned>(procedure_number), 1), false,
                      true)
          : make_kind(0, true, true));
}
void* GC_gcj_malloc(size_t bytes, void* type) {
  if (GC_gcj_kind == 0) abort_with("GC_gcj_malloc before GC_init_gcj_malloc");
  const auto kind = static_cast<heap::KindNumber>(GC_gcj_kind);
  auto** object = static_cast<void**>(alloc::allocate(bytes, kind));
  if (room_in(object, kind) != 0) *object = type;
  return object;
}
void* GC_gcj_malloc_ignore_off_page(size_t bytes, void* type) { return GC_gcj_malloc(bytes, type); }
}

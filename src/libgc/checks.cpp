// Questions about addresses.
#include "gc/gc_mark.h"
#include "libgc/support.hpp"
#include "mark/concurrent.hpp"
#include "os/context.hpp"
#include "world/roots.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

// A noinline sink: what goes in counts as used.
volatile GC_word noop_sink;

// False only where no collection looks: outside of roots and objects, and in free slots. Objects
// without pointers pass, as in bdwgc: programs keep hidden pointers and links there.
bool may_be_visible(const void* p) {
  if (base::as_word(p) % sizeof(void*) != 0) return false;
  if (GC_is_heap_ptr(p)) {
    return while_in_place(p, [p] {
      heap::Place place;
      return heap::find_object(base::as_word(p), &place);
    });
  }
  // The program's own root function may name anything. Nor can anything be looked up while the lock
  // is taken, perhaps by our caller.
  const bool other_roots = GC_push_other_roots != nullptr && GC_push_other_roots != no_other_roots;
  if (other_roots || !mark::concurrent.try_lock_heap()) return true;
  const bool root = !world::update_static_roots() || world::may_be_root_address(p);
  heap_lock.release();
  return root;
}

// Is p one past the end of the object? (Of one that leaves room in its slot, that is inside.)
bool is_end(const void* p, const char* object) {
  if (object == nullptr) return false;
  return while_in_place(object, [p, object] {
    heap::Place place;
    return heap::find_place(base::as_word(object), &place) && place.ends_at(base::as_word(p));
  });
}

}  // namespace

extern "C" {

void* GC_base(void* p) { return base_of(p); }

size_t GC_size(const void* object) {
  return while_in_place(object, [object]() -> size_t {
    heap::Place place;
    return heap::find_place(base::as_word(object), &place) ? place.size() : 0;
  });
}
GC_API int GC_get_kind_and_size(const void* object, size_t* size) {
  return while_in_place(object, [object, size]() -> int {
    heap::Place place{};
    if (!heap::find_place(base::as_word(object), &place)) {
      abort_with("GC_get_kind_and_size: not an object of the collector's heap");
    }
    if (size != nullptr) *size = place.size();
    return place.block->kind;
  });
}
int GC_is_heap_ptr(const void* p) {
  return base::as_word(p) >= heap::block_address(1) && heap::in_heap(base::as_word(p));
}

// Do both lie in one object? A pointer just past its end still does, if no other begins there, or
// if such pointers hold objects.
void* GC_same_obj(void* p, void* q) {
  cycle::start();
  const char* first = base_of(p);
  const char* second = base_of(q);
  const bool ends_hold = cycle::ends_hold_objects();
  const bool same = first == second || ((ends_hold || first == nullptr) && is_end(p, second)) ||
                    ((ends_hold || second == nullptr) && is_end(q, first));
  if (!same) GC_same_obj_print_proc(p, q);
  return p;
}

void* GC_is_valid_displacement(void* p) {
  cycle::start();
  // Every displacement into an object is valid; a free slot has none.
  if (p != nullptr && GC_is_heap_ptr(p) && base_of(p) == nullptr) {
    GC_is_valid_displacement_print_proc(p);
  }
  return p;
}

// Will a pointer stored at p be seen by the collector?
void* GC_is_visible(void* p) {
  cycle::start();
  if (!may_be_visible(p)) GC_is_visible_print_proc(p);
  return p;
}

void* GC_pre_incr(void** p, ptrdiff_t bytes) {
  void* old = *p;
  *p = static_cast<char*>(old) + bytes;
  GC_same_obj(*p, old);
  return *p;
}
void* GC_post_incr(void** p, ptrdiff_t bytes) {
  void* old = *p;
  GC_pre_incr(p, bytes);
  return old;
}

void GC_noop1(GC_word word) { noop_sink = word; }
GC_API void* GC_clear_stack(void* p) {
  os::clear_stack_below();
  return p;
}
}

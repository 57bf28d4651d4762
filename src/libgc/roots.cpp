// Roots that programs name, and the functions by which their own root function and mark procedures
// tell the marker.
#include "cycle/roots.hpp"

#include "libgc/support.hpp"
#include "mark/descriptor.hpp"
#include "mark/marker.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

heap::Place place_of(const void* object) {
  heap::Place place{};
  if (!heap::find_place(base::as_word(object), &place)) {
    abort_with("not an object of the collector's heap");
  }
  return place;
}

}  // namespace

extern "C" {

void GC_add_roots(void* low, void* high) {
  cycle::start();
  LockGuard guard(heap_lock);
  if (!world::add_roots(static_cast<char*>(low), static_cast<char*>(high))) {
    abort_with("no memory for another root range");
  }
}
void GC_remove_roots(void* low, void* high) {
  LockGuard guard(heap_lock);
  world::remove_roots(static_cast<char*>(low), static_cast<char*>(high));
}
void GC_clear_roots() {
  cycle::start();
  LockGuard guard(heap_lock);
  world::clear_roots();
}
void GC_exclude_static_roots(void* low, void* high) {
  cycle::start();
  LockGuard guard(heap_lock);
  if (!world::exclude_static_roots(static_cast<char*>(low), static_cast<char*>(high))) {
    abort_with("no memory for another excluded range");
  }
}
// Without the lock, which the caller may hold.
GC_API void GC_clear_exclusion_table() { world::clear_exclusions(); }
void GC_register_has_static_roots_callback(GC_has_static_roots_func function) {
  world::set_static_roots_filter(function);
}
GC_API int GC_is_tmp_root(void* p) { return world::is_library_data(p); }
void GC_set_no_dls(int value) { GC_no_dls = value; }
int GC_get_no_dls() { return GC_no_dls; }

void GC_set_push_other_roots(GC_push_other_roots_proc function) { GC_push_other_roots = function; }
GC_push_other_roots_proc GC_get_push_other_roots() { return GC_push_other_roots; }

GC_API void GC_push_all(void* low, void* high) { cycle::push_client_roots(low, high); }
GC_API void GC_push_all_eager(void* low, void* high) { cycle::push_client_stack(low, high); }
// Whole, dirty or not: what is no object's is not watched.
GC_API void GC_push_conditional(void* low, void* high, int) { cycle::push_client_roots(low, high); }

GC_ms_entry* GC_mark_and_push(void* object, GC_ms_entry* stack_pointer, GC_ms_entry*, void**) {
  if (mark::push_instead != nullptr) {
    mark::push_instead(base::as_word(object));
    return stack_pointer;
  }
  // What mark procedures get for a stack is the marker that called them.
  auto* marker = reinterpret_cast<mark::Marker*>(stack_pointer);
  if (marker == nullptr) marker = &mark::marker;
  marker->mark_word(base::as_word(object));
  return stack_pointer;
}

int GC_is_marked(const void* object) { return counts_as_marked(place_of(object)); }
void GC_set_mark_bit(const void* object) { place_of(object).set_mark_beside_others(); }
void GC_clear_mark_bit(const void* object) { place_of(object).clear_mark_beside_others(); }
}

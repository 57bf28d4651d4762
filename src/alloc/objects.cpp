#include "alloc/objects.hpp"

#include "alloc/allocate.hpp"
#include "os/log.hpp"

namespace jd::alloc {

// Where it was freed, weak references, pins and numbers would go over to the next object there.
static void refuse_typed(const void* object, const char* name) {
  os::warn(name, "(", object, "): an object with a layout is only collected; ignored");
}

bool is_handed_out(const heap::Place& place) {
  if (!place.allocated()) return false;
  if (place.is_in_run()) return true;
  const char* const object = base::as_pointer(place.address());
  return !is_in_hole(*place.block, object, place.slot) && !is_in_magazine(object);
}

bool is_object(const void* object, const char* name, heap::Place* place) {
  const Word address = base::as_word(object);
  // Before its place is looked for: a collection may come in between, and move what lies there.
  if (heap::in_heap(address) &&
      heap::space.blocks[heap::block_number(address)].state == heap::BlockState::Mixed) {
    refuse_typed(object, name);
    return false;
  }
  if (!heap::find_place(address, place)) {
    // A free large object's blocks do not tell what they were.
    os::warn(name, "(", object,
             heap::in_heap(address) ? "): already free, or never an object; ignored"
                                    : "): not an object of the collector's heap; ignored");
    return false;
  }
  if (has_layout(*place->block)) {
    refuse_typed(object, name);
    return false;
  }
  if (place->address() != address) {
    os::warn(name, "(", object, "): not the beginning of an object, which is ",
             static_cast<const void*>(base::as_pointer(place->address())), "; ignored");
    return false;
  }
  if (!is_handed_out(*place)) {
    os::warn(name, "(", object, "): already free; ignored");
    return false;
  }
  return true;
}

bool check_object(const void* object, const char* name) {
  heap::Place place;
  const Hole* only = nullptr;
  return is_small_object(object, &place, &only) || is_object(object, name, &place);
}

}  // namespace jd::alloc

// Objects that grow and shrink.
#include "alloc/allocate.hpp"
#include "alloc/objects.hpp"
#include "alloc/pacer.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"

namespace jd::alloc {
namespace {

using heap::Block;
using heap::heap_lock;
using heap::Place;
using os::LockGuard;

// An object at the heap's end, or with free blocks alone behind it, grows with the heap. False if
// that doesn't help, or if it has room elsewhere: a heap of which little lives would grow and grow
// while its free blocks wait. Pre: the lock is held, and may be released meanwhile.
bool make_room_behind(const Block& block, std::size_t bytes) {
  // A collection would not see what such a thread holds.
  if (is_never_stopped() || heap::has_run(heap::blocks_for(bytes))) return false;
  const heap::BlockNumber first = heap::number_of(&block);
  heap::BlockNumber end = first + block.run;
  if (end < heap::space.committed && heap::space.blocks[end].state == heap::BlockState::Free) {
    end += heap::space.blocks[end].run;
  }
  const heap::BlockNumber wanted = first + heap::blocks_for(bytes);
  return end == heap::space.committed && wanted > end && pacer.make_room(wanted - end, 0);
}

bool resize_large_in_place(const Place& place, std::size_t bytes) {
  std::size_t rounded = 0;
  if (!base::checked_add(bytes, padding + heap::kGranule - 1, &rounded)) return false;
  rounded = base::align_down(rounded, heap::kGranule);
  // What fits a slot is better off in one.
  if (rounded <= heap::kMaxSmall) return false;
  if (rounded / heap::kBlockSize >= heap::space.reserved) return false;
  std::size_t size = 0;
  {
    LockGuard guard(heap_lock);
    // Another thread may have freed it by mistake.
    const auto is_there = [&place] { return place.is_large() && place.allocated(); };
    if (!is_there()) return false;
    size = place.size();
    if (!heap::resize_large(place.block, rounded)) {
      if (!make_room_behind(*place.block, rounded)) return false;
      if (!is_there() || place.size() != size) return false;
      if (!heap::resize_large(place.block, rounded)) return false;
    }
    if (rounded < size) {
      add_freed(size - rounded);
      // What the granule has beyond the object's end may be its own again.
      if (heap::kinds[place.block->kind].clear) {
        base::clear_bytes(base::as_pointer(place.address() + bytes), rounded - bytes);
      }
      return true;
    }
    add_allocated(rounded - size);
    if (!heap::kinds[place.block->kind].clear) return true;
    // A collection may come before what it gained is clear: until then it ends where it did.
    heap::extra_of(place.block).bytes = size;
  }
  base::clear_bytes(base::as_pointer(place.address() + size), rounded - size);
  // Release: this thread may be stopped right behind it, and then the words are read.
  __atomic_store_n(&heap::extra_of(place.block).bytes, rounded, __ATOMIC_RELEASE);
  return true;
}

bool resize_place(const Place& place, void* object, std::size_t bytes) {
  const std::size_t size = place.size();
  // In place while it fits and does not waste more than half.
  const std::size_t most = size - heap::unused_at_end(*place.block) - padding;
  const bool leaves_blocks =
      place.is_large() && heap::blocks_for(bytes + padding) < place.block->run;
  if (bytes <= most && bytes >= size / 2 && !leaves_blocks) {
    if (heap::kinds[place.block->kind].clear) {
      base::clear_bytes(static_cast<char*>(object) + bytes, size - bytes);
    }
    return true;
  }
  return place.is_large() && resize_large_in_place(place, bytes);
}

}  // namespace

bool resize_in_place(void* object, std::size_t bytes) {
  Place place;
  return heap::find_place(base::as_word(object), &place) && resize_place(place, object, bytes);
}

Resized reallocate(void* object, std::size_t bytes, const char* name) {
  Place place;
  if (!is_small_object(object, &place) && !is_object(object, name, &place)) return {nullptr, 0};
  const std::size_t size = place.size();
  const KindNumber kind = place.block->kind;
  const auto result = [size, kind](void* now, std::size_t size_now) -> Resized {
    return {now, heap::is_uncollectable(kind) ? size_now - size : 0};
  };
  if (resize_place(place, object, bytes)) return result(object, place.size());
  void* moved = allocate(bytes, kind);
  if (moved == nullptr) return {nullptr, 0};
  base::copy_bytes(moved, object, base::min_of(bytes, size));
  free_object(object, name);
  Place there;
  // Memory of the out-of-memory function lies elsewhere, and counts for nothing.
  return result(moved, heap::find_place(base::as_word(moved), &there) ? there.size() : 0);
}

}  // namespace jd::alloc

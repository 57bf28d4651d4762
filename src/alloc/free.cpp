// Explicit freeing and resizing.
#include <errno.h>

#include "alloc/allocate.hpp"
#include "alloc/collecting.hpp"
#include "alloc/refill.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "os/log.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

using heap::Block;
using heap::BlockExtra;
using heap::heap_lock;
using heap::Place;
using os::LockGuard;

// Where it was freed, weak references, pins and numbers would go over to the next object there.
void refuse_typed(const void* object, const char* name) {
  os::warn(name, "(", object, "): an object with a layout is only collected; ignored");
}

// Does not look at the kinds of most objects.
bool has_layout(const Block& block) {
  return block.kind >= heap::kBuiltInKinds && heap::kinds[block.kind].source != heap::Source::None;
}

// The usual case of is_object: true if the address is the beginning of an object in a slot, which
// may be freed or resized.
[[gnu::always_inline]] inline bool is_small_object(const void* object, Place* place) {
  const Word address = base::as_word(object);
  if (!heap::in_heap(address)) return false;
  const heap::BlockNumber number = heap::block_number(address);
  Block* block = &heap::space.blocks[number];
  if (block->state != heap::BlockState::Small || has_layout(*block)) return false;
  const std::size_t offset = address & (heap::kBlockSize - 1);
  const unsigned slot = block->slot_of(offset);
  if (slot >= block->slots || std::size_t{slot} * block->slot_size != offset) return false;
  if (!block->is_allocated(slot)) return false;
  // Slots of a hole count as allocated, but nobody has them.
  const auto* hole = static_cast<const Hole*>(
      __atomic_load_n(&heap::space.extras[number].owner, __ATOMIC_ACQUIRE));
  if (hole != nullptr && hole->contains_slot(object, slot)) return false;
  *place = {block, slot};
  return true;
}

// True if the address is the beginning of an object that may be freed or resized; says why not.
[[gnu::noinline]] bool is_object(const void* object, const char* name, Place* place) {
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
  bool free_slot = !place->allocated();
  if (!free_slot && !place->is_large()) {
    // Slots of a hole count as allocated, but nobody has them.
    const auto* hole = static_cast<const Hole*>(
        __atomic_load_n(&heap::extra_of(place->block).owner, __ATOMIC_ACQUIRE));
    free_slot = hole != nullptr && hole->contains_slot(object, place->slot);
  }
  if (free_slot) {
    os::warn(name, "(", object, "): already free; ignored");
    return false;
  }
  return true;
}

// Pre: the lock is held.
bool free_large(const Place& place) {
  // Twice at the same time, by two threads: the second finds nothing.
  if (place.block->state != heap::BlockState::LargeHead || !place.allocated()) return false;
  add_freed(heap::extra_of(place.block).bytes);
  __atomic_store_n(&place.block->allocated[0], 0, __ATOMIC_RELAXED);
  heap::release_block(heap::number_of(place.block));
  return true;
}

// The slot just before the cursor of the calling thread's own hole: take it back.
bool undo_take(const Place& place, char* object) {
  HoleRow* row = cache->rows[place.block->kind];
  if (row == nullptr || every_allocation_is_slow) return false;
  Hole* hole = &row->holes[place.block->size_class];
  // The blocks in the hole's reserve are its own, too, and the last slot of one may end where the
  // hole's block begins.
  if (__atomic_load_n(&heap::extra_of(place.block).owner, __ATOMIC_RELAXED) != hole) return false;
  if (heap::number_of(place.block) != hole->block) return false;
  if (object + hole->slot_size() != hole->cursor) return false;
  const heap::Kind& kind = heap::kinds[place.block->kind];
  if (kind.clear) {
    base::clear_bytes(object, hole->slot_size());
  } else if (heap::begins_with_zero(kind)) {
    base::clear_bytes(object, sizeof(Word));
  }
  __atomic_store_n(&hole->cursor, object, __ATOMIC_RELAXED);
  // The hole was counted when it was taken; the slot counts again, as it does in what was freed.
  cache->count_taken(hole->slot_size());
  return true;
}

// Of a block with so many bit words. Without the lock it may be another by now, whose first
// allocated words are read then.
bool is_empty(const Block& block, unsigned words) {
  for (unsigned w = 0; w < words; ++w) {
    // Acquire: as heap::count_bits.
    if (__atomic_load_n(&block.allocated[w], __ATOMIC_ACQUIRE) != 0) return false;
  }
  return true;
}

// Clears the slot's bit. True if its block, which nobody looks through, has to be listed, or is
// listed and may have become empty. Pre: no collection can begin meanwhile but by stopping the
// calling thread.
[[gnu::always_inline]] inline bool give_slot_back(const Place& place, char* object) {
  Block* block = place.block;
  add_freed(block->slot_size);
  if (heap::poison_freed) heap::poison(base::as_word(object), block->slot_size);
  // The block may be one whose free slots are zero; or become one in a collection from now on.
  if (heap::sweep_policy.eager) base::clear_bytes(object, block->slot_size);
  if (undo_take(place, object)) return false;
  const std::uint64_t bit = std::uint64_t{1} << (place.slot % 64);
  // As long as it has this object: then another thread may free the block.
  const unsigned words = block->bit_words();
  // Release: whatever was done to the object comes before it is cleared for another.
  base::note_atomic(&block->allocated[place.slot / 64]);
  const std::uint64_t before =
      __atomic_fetch_and(&block->allocated[place.slot / 64], ~bit, __ATOMIC_RELEASE);
  // Else its owner or the next taker looks at the bits. Without the lock: what is stale leaves a
  // free slot uncounted, or an empty block on its list, until the next collection.
  const BlockExtra& extra = heap::extra_of(block);
  if (__atomic_load_n(&extra.owner, __ATOMIC_RELAXED) != nullptr) return false;
  return !__atomic_load_n(&extra.listed, __ATOMIC_RELAXED) ||
         (before == bit && is_empty(*block, words));
}

// A slot of the block was freed. Pre: the lock is held.
void list_or_release(Block* block) {
  BlockExtra& extra = heap::extra_of(block);
  const heap::BlockNumber number = heap::number_of(block);
  // Acquire: its last owner may have left it without the lock (leave_used_block).
  if (block->state != heap::BlockState::Small ||
      __atomic_load_n(&extra.owner, __ATOMIC_ACQUIRE) != nullptr) {
    return;
  }
  if (!extra.listed && extra.free_slots < block->slots) ++extra.free_slots;
  // The count runs ahead where slots were freed while the block had an owner, and stands still
  // while the block is listed.
  const bool may_be_empty = extra.listed || extra.free_slots == block->slots;
  if (may_be_empty && is_empty(*block, block->bit_words())) return heap::release_block(number);
  heap::list_block(number);
}

// No collection stops this thread: it is not registered, or in a blocking section. (It does not
// register here. libc frees what it keeps for a thread when nothing of ours is called any more.)
bool is_never_stopped() {
  const world::Thread* thread = world::self();
  return thread == nullptr || thread->blocked;
}

bool free_without_being_stopped(void* object, const char* name) {
  // What a collection finds and writes is in the very words that are looked at and changed here.
  LockGuard guard(heap_lock);
  Place place;
  if (!is_object(object, name, &place)) return false;
  if (place.is_large()) return free_large(place);
  if (give_slot_back(place, static_cast<char*>(object))) list_or_release(place.block);
  return true;
}

}  // namespace

// Out of line, and errno stays as it is.
[[gnu::noinline]] static void make_own_cache() {
  const int kept = errno;
  own_cache(world::self());
  errno = kept;
}

bool free_small_object(void* object) {
  if (__builtin_expect(is_never_stopped(), 0)) return false;
  Place place;
  if (!is_small_object(object, &place)) return false;
  // A thread that only frees counts what it freed there; without memory for it, with the others.
  if (__builtin_expect(cache->is_nobodys(), 0)) make_own_cache();
  if (give_slot_back(place, static_cast<char*>(object))) {
    LockGuard guard(heap_lock);
    list_or_release(place.block);
  }
  // Other threads collect until the bits say that it is free. A collection that found no pointer to
  // the object would free its place, and another thread could have that by the time we do it.
  asm volatile("" : : "r"(object) : "memory");
  return true;
}

namespace {

// A large object; one of a thread that no collection stops; none at all. Out of line: what is
// frequent needs none of its registers.
[[gnu::noinline]] bool free_unusual_object(void* object, const char* name) {
  if (__builtin_expect(is_never_stopped(), 0)) return free_without_being_stopped(object, name);
  Place place;
  if (!is_object(object, name, &place)) return false;
  LockGuard guard(heap_lock);
  bool freed = true;
  if (place.is_large()) {
    freed = free_large(place);
  } else if (give_slot_back(place, static_cast<char*>(object))) {
    list_or_release(place.block);
  }
  asm volatile("" : : "r"(object) : "memory");  // as above
  return freed;
}

}  // namespace

bool free_object(void* object, const char* name) {
  if (object == nullptr) return false;
  return free_small_object(object) || free_unusual_object(object, name);
}

namespace {

// An object at the heap's end, or with free blocks alone behind it, grows with the heap. False if
// that doesn't help. Pre: the lock is held, and may be released meanwhile.
bool make_room_behind(const Block& block, std::size_t bytes) {
  // A collection would not see what such a thread holds.
  if (is_never_stopped()) return false;
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
  // In place while it fits and does not waste more than half. A slot's last word stays unused where
  // its class says so: the marker takes an address past its end for that of the next object alone.
  const bool loose = !place.is_large() && !heap::is_full_class(place.block->size_class);
  const std::size_t most = (loose ? size - sizeof(Word) : size) - padding;
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

bool check_object(const void* object, const char* name) {
  Place place;
  return is_small_object(object, &place) || is_object(object, name, &place);
}

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
    return {now, heap::kinds[kind].uncollectable ? size_now - size : 0};
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

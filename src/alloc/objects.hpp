// Addresses that programs hand in, as objects to be freed or resized. Not for other rooms.
#pragma once

#include "alloc/magazine.hpp"
#include "world/thread.hpp"

namespace jd::alloc {

// Does not look at the kinds of most objects.
inline bool has_layout(const heap::Block& block) {
  return block.kind >= heap::kBuiltInKinds && heap::kinds[block.kind].has_layout();
}

// The hole that has the block, or one without slots.
[[gnu::always_inline]] inline const Hole& owner_of(const heap::Block& block) {
  static constexpr Hole kNone{};
  const auto* hole =
      static_cast<const Hole*>(__atomic_load_n(&heap::extra_of(&block).owner, __ATOMIC_ACQUIRE));
  return hole != nullptr ? *hole : kNone;
}

// Slots of a hole count as allocated, but nobody has them. Pre: the slot of the block, which is a
// small one, with this address.
inline bool is_in_hole(const heap::Block& block, const void* address, unsigned slot) {
  return owner_of(block).contains_slot(block, address, slot);
}

// The hole for objects of the block's kind and size, where the calling thread's are all that there
// are, and it is worth while to ask them; or null.
[[gnu::always_inline]] inline const Hole* only_hole_for(const heap::Block& block) {
  if (__builtin_expect(!__atomic_load_n(&own_magazines_tell, __ATOMIC_RELAXED), 1)) return nullptr;
  const HoleRow* row = cache->rows[block.kind];
  if (row == nullptr) return nullptr;
  const Hole& hole = row->holes[block.size_class];
  // Otherwise it is another thread that has the holes, and the row is that of threads without.
  return hole.last_byte != 0 ? &hole : nullptr;
}

// May the slot be in a magazine, so that it was freed before? Where the thread's own magazine is
// the only one for it, without a look at the object, which would mostly be a cache miss.
[[gnu::always_inline]] inline bool may_be_in_magazine(const Hole* only, const void* object) {
  if (only == nullptr) return is_in_magazine(object);
  return only->magazine != nullptr && only->magazine->may_hold(object);
}

// True if the address is the beginning of a slot that is an object, or a hole's. *only: as
// only_hole_for says.
[[gnu::always_inline]] inline bool is_taken_slot(const void* object, heap::Place* place,
                                                 const Hole** only) {
  const Word address = base::as_word(object);
  if (!heap::in_heap(address)) return false;
  heap::Block* block = &heap::space.blocks[heap::block_number(address)];
  if (block->state != heap::BlockState::Small || has_layout(*block)) return false;
  const std::uint64_t product = (address & (heap::kBlockSize - 1)) * block->magic;
  const auto slot = static_cast<unsigned>(product >> 32);
  if (slot >= block->slots || !heap::is_slot_begin(product, block->magic)) return false;
  if (!block->is_allocated(slot)) return false;
  *only = only_hole_for(*block);
  if (may_be_in_magazine(*only, object)) return false;
  *place = {block, slot};
  return true;
}

// The usual case of is_object: true if the address is the beginning of an object in a slot, which
// may be freed or resized. *only: as only_hole_for says.
[[gnu::always_inline]] inline bool is_small_object(const void* object, heap::Place* place,
                                                   const Hole** only) {
  if (!is_taken_slot(object, place, only)) return false;
  const heap::Block& block = *place->block;
  if (*only == nullptr) return !owner_of(block).contains_slot(block, object, place->slot);
  // Nobody but the calling thread changes it; and few of a large heap's blocks are a hole's.
  return (*only)->block != heap::number_of(&block) ||
         (*only)->holds(block, object, place->slot) == 0;
}

// True if the address is the beginning of an object that may be freed or resized; says why not.
[[gnu::noinline]] bool is_object(const void* object, const char* name, heap::Place* place);

// Frees an object that was found there, and that the caller has held since.
void free_found(const heap::Place& place, void* object, const char* name);

// A slot of the block, which nobody looks through, was freed. Pre: the lock is held.
void list_or_release(heap::Block* block);

// No collection stops this thread: it is not registered, or in a blocking section. (It does not
// register here. libc frees what it keeps for a thread when nothing of ours is called any more.)
inline bool is_never_stopped() {
  const world::Thread* thread = world::self();
  return thread == nullptr || thread->blocked;
}

}  // namespace jd::alloc

// Requests for memory: from the thread's hole or magazine, else by the slow path.
#include "alloc/allocate.hpp"

#include "alloc/magazine.hpp"
#include "alloc/pacer.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "heap/blocks.hpp"
#include "os/thread.hpp"
#include "world/blocking.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

using heap::heap_lock;
using heap::kBlockSize;
using os::LockGuard;

// Must an object have a slot of just its size? A layout has chosen its hole, and its elements fill
// their slot; a power of two has to lie at its multiple.
bool needs_its_size(KindNumber kind, std::size_t alignment) {
  return alignment > heap::kGranule || heap::kinds[kind].has_layout();
}

Hole& hole_of(HoleRow* row, std::size_t bytes, KindNumber kind, std::size_t alignment) {
  return needs_its_size(kind, alignment) ? row->holes[heap::class_for(bytes)]
                                         : row->hole_for(bytes);
}

void* allocate_small(std::size_t bytes, std::size_t alignment, KindNumber kind) {
  world::Thread* thread = world::self();
  ThreadCache* owner = own_cache(thread);
  if (owner == nullptr) return nullptr;
  HoleRow* row = owner->rows[kind];
  if (row == nullptr || !row->is_set_up) {
    LockGuard guard(heap_lock);
    row = make_row(owner, kind);
    if (row == nullptr) return nullptr;
  }
  Refill refill{owner, row, &hole_of(row, bytes, kind, alignment), kind};
  for (;;) {
    {
      world::NoStop guard(thread);
      void* slot = refill.hole->take();
      if (slot == nullptr && refill_from_blocks(refill)) slot = refill.hole->take();
      if (slot != nullptr) return slot;
    }
    if (!next_block(&refill, bytes, !needs_its_size(kind, alignment))) return nullptr;
  }
}

// From what the thread has at hand: in its magazine, or claimed by its hole. Null if that is
// nothing.
void* take_at_hand(std::size_t bytes, KindNumber kind) {
  HoleRow* row = cache->rows[kind];
  if (row == nullptr || bytes > heap::kMaxSmall - padding) return nullptr;
  Hole& hole = hole_of(row, bytes + padding, kind, heap::kGranule);
  // Finalizers that are due, and what else waits for a thread to come by, would wait for ever where
  // magazines have all that is asked for: they wait for some kilobytes, a guess.
  constexpr std::size_t kPassedBy = 4 * base::kKiB;
  if (void* slot = take_from_magazine(hole, kind)) {
    if (__builtin_expect(cache->taken % kPassedBy < hole.slot_size(), 0)) pacer.on_slow_path();
    return slot;
  }
  if (hole.cursor >= hole.end && hole.claimed == 0) return nullptr;
  const world::NoStop no_stop(world::self());
  return refill_from_blocks({cache, row, &hole, kind}) ? hole.take() : nullptr;
}

// Null when memory has run out, and the out-of-memory function is yet to be called.
void* try_to_allocate(std::size_t bytes, std::size_t alignment, KindNumber kind, Run run) {
  if (!ready_to_allocate()) return nullptr;
  pacer.on_slow_path();
  std::size_t wanted = 0;
  // A large object has a block at least.
  if (!base::checked_add(base::max_of(bytes, std::size_t{1}), padding, &wanted)) return nullptr;
  if (alignment > heap::kGranule && alignment <= heap::kMaxSmall) {
    // Slots of a power of two lie at their multiples.
    wanted = base::max_of(wanted, alignment);
    if (wanted <= heap::kMaxSmall) wanted = std::size_t{2} << base::log2_floor(wanted - 1);
  }
  if (wanted <= heap::kMaxSmall && alignment <= heap::kMaxSmall) {
    return allocate_small(wanted, alignment, kind);
  }
  return allocate_in_run(wanted, alignment, kind, run);
}

// False if there is no memory.
bool store_list(std::size_t bytes, KindNumber kind, void** result) {
  // What bdwgc's lists are at most: a page.
  constexpr std::size_t kListBytes = 4 * base::kKiB;
  void* first = allocate(bytes, kind);
  world::Thread* thread = world::self();
  // Without a record, or a row for the kind, the out-of-memory function's memory is all there is.
  if (first == nullptr || bytes > heap::kMaxSmall - padding || thread == nullptr ||
      cache->rows[kind] == nullptr) {
    if (first != nullptr) *static_cast<void**>(first) = nullptr;
    *result = first;
    return first != nullptr;
  }
  world::NoStop guard(thread);
  bytes += padding;
  // From the block that the first came from, whose free slots may be scattered.
  HoleRow* row = cache->rows[kind];
  Hole* hole = &row->hole_for(bytes);
  void** link = static_cast<void**>(first);
  for (std::size_t size = 2 * hole->slot_size(); size <= kListBytes; size += hole->slot_size()) {
    void* next = hole->take();
    if (next == nullptr && refill_from_blocks({cache, row, hole, kind})) next = hole->take();
    if (next == nullptr) break;
    *link = next;
    link = static_cast<void**>(next);
  }
  *link = nullptr;
  *result = first;
  return true;
}

}  // namespace

bool collection_waits = false;

bool ready_to_allocate() {
  if (world::Thread* const self = world::self(); __builtin_expect(self != nullptr, 1)) {
    if (__builtin_expect(self->blocked, 0)) world::end_blocking();
    return true;
  }
  pacer.start();
  return world::register_self(within_libc ? os::own_stack_by_mapping() : os::Extent{});
}

void* allocate_slowly(std::size_t bytes, KindNumber kind) {
  if (void* slot = take_at_hand(bytes, kind)) {
    if (every_allocation_is_slow) pacer.on_slow_path();
    return slot;
  }
  return allocate_aligned(bytes, heap::kGranule, kind);
}

void* allocate(std::size_t bytes, KindNumber kind) {
  if (bytes <= heap::kMaxSmall) {
    if (HoleRow* row = cache->rows[kind]) {
      if (void* slot = row->hole_for(bytes).take()) return slot;
    }
  }
  return allocate_slowly(bytes, kind);
}

void* allocate_laid_out(std::size_t bytes, KindNumber kind) {
  if (bytes <= heap::kMaxSmall) {
    if (HoleRow* row = cache->rows[kind]) {
      if (void* slot = row->holes[heap::class_for(bytes)].take()) return slot;
    }
  }
  return allocate_slowly(bytes, kind);
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment, KindNumber kind) {
  void* object = try_to_allocate(bytes, alignment, kind, Run::MayBeShared);
  return object != nullptr ? object : pacer.out_of_memory(bytes);
}

void* allocate_held_by_first_block(std::size_t bytes, KindNumber kind) {
  if (bytes <= kBlockSize) return allocate(bytes, kind);
  void* object = try_to_allocate(bytes, heap::kGranule, kind, Run::Own);
  // What that returns may be an object that the program has already.
  if (object == nullptr) return pacer.out_of_memory(bytes);
  // A collection before this line only keeps the object for longer.
  heap::space.extras[heap::block_number(base::as_word(object))].held_by_first_block = true;
  return object;
}

// A collection that had to wait for that may have called a mark procedure of the program's that
// drops the thread's lists, this one among them (Whippet's does).
void allocate_list(std::size_t bytes, KindNumber kind, void** result) {
  while (store_list(bytes, kind, result) && __atomic_load_n(result, __ATOMIC_RELAXED) == nullptr) {
  }
}

std::size_t usable_size_for(std::size_t bytes) {
  bytes += padding;
  return bytes <= heap::kMaxSmall ? heap::slot_size_of(class_now_for(bytes)) : size_in_run(bytes);
}

}  // namespace jd::alloc

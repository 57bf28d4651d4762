// Explicit freeing.
#include <optional>

#include "alloc/allocate.hpp"
#include "alloc/magazine.hpp"
#include "alloc/objects.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "heap/blocks.hpp"
#include "heap/snapshot.hpp"
#include "heap/spans.hpp"
#include "heap/sweep.hpp"
#include "os/kept_errno.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

using heap::Block;
using heap::BlockExtra;
using heap::heap_lock;
using heap::Place;
using os::LockGuard;

// A collection may come meanwhile, and the other bits of the word are its own. Where the kind
// disclaims, the mark stays: what is swept while the world runs is kept by its mark alone
// (heap::disclaim_deferred), and another thread may be at that.
void unmark(const Place& place) {
  if (heap::is_marking_in_steps()) return heap::pass_for_free(place);
  if (heap::kinds[place.block->kind].disclaim != nullptr) return;
  place.clear_mark_beside_others();
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

// As free_large.
bool free_in_span(const Place& place) {
  if (!place.is_in_span() || place.slot >= place.block->slots || !place.allocated()) return false;
  add_freed(place.block->slot_size);
  if (__atomic_load_n(&marks_are_kept, __ATOMIC_RELAXED)) unmark(place);
  if (heap::poison_freed) heap::poison(place.address(), place.block->slot_size);
  heap::give_slot(place);
  return true;
}

// As free_large, for any object in a run of blocks.
bool free_in_run(const Place& place) {
  return place.is_large() ? free_large(place) : free_in_span(place);
}

bool is_before_cursor(const Place& place, const Hole& hole, const char* object) {
  return object + place.block->slot_size == hole.cursor;
}

// Takes the slot back that may be just before the cursor of the calling thread's own hole.
bool undo_take(const Place& place, Hole* hole, char* object) {
  // A collection in the midst of it would take the hole back, and the slot would stay allocated.
  const world::NoStop no_stop(world::self());
  if (every_allocation_is_slow || !is_before_cursor(place, *hole, object)) return false;
  // The blocks in the hole's reserve are its own, too, and the last slot of one may end where the
  // hole's block begins.
  if (__atomic_load_n(&heap::extra_of(place.block).owner, __ATOMIC_RELAXED) != hole) return false;
  if (heap::number_of(place.block) != hole->block) return false;
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

// Until it is free, a collection may ask it what it is: then it has no words, and no descriptor.
void poison_object(char* object, const Block& block) {
  std::size_t asked = 0;
  if (heap::begins_with_zero(heap::kinds[block.kind])) {
    __atomic_store_n(reinterpret_cast<Word*>(object), Word{0}, __ATOMIC_RELAXED);
    asked = sizeof(Word);
  }
  heap::poison(base::as_word(object) + asked, block.slot_size - asked);
}

// Puts the slot into the thread's hole or magazine, or clears its bit. True if its block, which
// nobody looks through, has to be listed, or is listed and may have become empty. Pre: no
// collection can begin meanwhile but by stopping the calling thread.
bool give_slot_back(const Place& place, char* object, bool may_be_kept) {
  Block* block = place.block;
  add_freed(block->slot_size);
  if (heap::poison_freed) poison_object(object, *block);
  // The block may be one whose free slots are zero; or become one in a collection from now on.
  if (heap::sweep_policy.eager) base::clear_bytes(object, block->slot_size);
  HoleRow* row = cache->rows[block->kind];
  // A thread that only frees objects of the kind has no use for their slots.
  Hole* hole = row != nullptr && row->is_set_up ? &row->holes[block->size_class] : nullptr;
  const bool has_mark = __atomic_load_n(&marks_are_kept, __ATOMIC_RELAXED);
  // Which takes the lock, and so comes first.
  if (has_mark && may_be_kept && hole != nullptr && hole->magazine == nullptr) make_magazine(hole);
  // With its mark gone, and before something says that it is free, a collection in steps would take
  // it for an object: until the end the thread's stop is put off, if it can be stopped.
  std::optional<world::NoStop> no_stop;
  if (has_mark && world::self() != nullptr) no_stop.emplace(world::self());
  if (has_mark) unmark(place);
  if (hole != nullptr) {
    if (undo_take(place, hole, object)) return false;
    const bool has_magazine =
        hole->magazine != nullptr || (may_be_kept && !has_mark && make_magazine(hole));
    if (may_be_kept && has_magazine && keep_in_magazine(hole->magazine, object)) return false;
  }
  const std::uint64_t bit = std::uint64_t{1} << (place.slot % 64);
  // As long as it has this object: then another thread may free the block.
  const unsigned words = block->bit_words();
  const std::uint64_t* const word = &block->allocated[place.slot / 64];
  base::note_atomic(word);
  block->give_back(place.slot / 64, bit);
  // Otherwise its owner or the next taker looks at the bits. Without the lock: what is stale leaves
  // a free slot uncounted, or an empty block on its list, until the next collection.
  const BlockExtra& extra = heap::extra_of(block);
  if (__atomic_load_n(&extra.owner, __ATOMIC_RELAXED) != nullptr) return false;
  return !__atomic_load_n(&extra.listed, __ATOMIC_RELAXED) ||
         (__atomic_load_n(word, __ATOMIC_RELAXED) == 0 && is_empty(*block, words));
}

}  // namespace

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

namespace {

bool free_without_being_stopped(void* object, const char* name) {
  // What a collection finds and writes is in the very words that are looked at and changed here.
  LockGuard guard(heap_lock);
  Place place;
  if (!is_object(object, name, &place)) return false;
  if (place.is_in_run()) return free_in_run(place);
  if (give_slot_back(place, static_cast<char*>(object), false)) list_or_release(place.block);
  return true;
}

}  // namespace

// Out of line, and errno stays as it is.
[[gnu::noinline]] static void make_own_cache() {
  const os::KeptErrno kept;
  own_cache(world::self());
}

namespace {

// Out of line: what is frequent needs none of its registers.
[[gnu::noinline]] void free_slot_slowly(Place place, char* object) {
  // A thread that only frees counts what it freed there; without memory for it, with the others.
  if (__builtin_expect(cache->is_nobodys(), 0)) make_own_cache();
  if (give_slot_back(place, object, true)) {
    LockGuard guard(heap_lock);
    list_or_release(place.block);
  }
  // Other threads collect until the bits say that it is free. A collection that found no pointer to
  // the object would free its place, and another thread could have that by the time we do it.
  asm volatile("" : : "r"(object) : "memory");
}

// The thread's magazine that the slot may go to as it is; or null. `only`: as only_hole_for says.
[[gnu::always_inline]] inline Magazine* magazine_for(const Place& place, const char* object,
                                                     const Hole* only) {
  if (__atomic_load_n(&frees_are_treated, __ATOMIC_RELAXED)) return nullptr;
  if (only == nullptr) {
    const HoleRow* row = cache->rows[place.block->kind];
    if (row == nullptr) return nullptr;
    only = &row->holes[place.block->size_class];
  }
  return is_before_cursor(place, *only, object) ? nullptr : only->magazine;
}

// Pre: an object in a slot, of a thread that collections stop.
[[gnu::always_inline]] inline void free_found_slot(const Place& place, char* slot,
                                                   const Hole* only) {
  Magazine* magazine = magazine_for(place, slot, only);
  if (__builtin_expect(magazine != nullptr && keep_in_magazine(magazine, slot), 1)) {
    cache->count_freed(place.block->slot_size);
  } else {
    free_slot_slowly(place, slot);
  }
}

// Frees an object in a slot. False if it is none.
template <bool counts_uncollectable>
[[gnu::always_inline]] inline bool free_slot(void* object) {
  if (__builtin_expect(is_never_stopped(), 0)) return false;
  Place place;
  const Hole* only = nullptr;
  if (!is_small_object(object, &place, &only)) return false;
  if (counts_uncollectable && heap::is_uncollectable(place.block->kind)) {
    add_uncollectable(0 - std::size_t{place.block->slot_size});
  }
  free_found_slot(place, static_cast<char*>(object), only);
  return true;
}

// An object in a run; one of a thread that no collection stops; none at all. Out of line, as above.
[[gnu::noinline]] bool free_unusual_object(void* object, const char* name) {
  if (__builtin_expect(is_never_stopped(), 0)) return free_without_being_stopped(object, name);
  Place place;
  if (!is_object(object, name, &place)) return false;
  LockGuard guard(heap_lock);
  bool freed = true;
  if (place.is_in_run()) {
    freed = free_in_run(place);
  } else if (give_slot_back(place, static_cast<char*>(object), false)) {
    list_or_release(place.block);
  }
  asm volatile("" : : "r"(object) : "memory");  // as above
  return freed;
}

}  // namespace

bool free_in_slot(void* object) { return free_slot<false>(object); }
bool free_in_slot_and_count(void* object) { return free_slot<true>(object); }

void free_found(const Place& place, void* object, const char* name) {
  if (__builtin_expect(is_never_stopped() || place.is_in_run(), 0)) {
    free_unusual_object(object, name);
  } else {
    free_found_slot(place, static_cast<char*>(object), nullptr);
  }
}

bool free_object(void* object, const char* name) {
  if (object == nullptr) return false;
  return free_in_slot(object) || free_unusual_object(object, name);
}

}  // namespace jd::alloc

// Objects that grow and shrink.
#include "alloc/allocate.hpp"
#include "alloc/objects.hpp"
#include "alloc/pacer.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "heap/blocks.hpp"
#include "heap/resident.hpp"
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
  if (is_never_stopped()) return false;
  const auto has_room_elsewhere = [bytes] { return heap::has_run(heap::blocks_for(bytes)); };
  if (has_room_elsewhere()) return false;
  while (give_back_unused(cache)) {
    if (has_room_elsewhere()) return false;
  }
  const heap::BlockNumber first = heap::number_of(&block);
  heap::BlockNumber end = first + block.run;
  if (end < heap::space.committed && heap::space.blocks[end].state == heap::BlockState::Free) {
    end += heap::space.blocks[end].run;
  }
  const heap::BlockNumber wanted = first + heap::blocks_for(bytes);
  return wanted <= end || (end == heap::space.committed && pacer.make_room(wanted - end, 0));
}

// What a large object has gained.
struct Gain {
  const heap::Kind& kind;
  Word from;  // its bytes
  std::size_t bytes;
  heap::BlockNumber first;  // its blocks
  heap::BlockNumber blocks;

  // Pre: the lock is held.
  [[nodiscard]] bool needs_clearing() const {
    return kind.clear || (kind.clear_reclaimed && heap::has_dropped_words(first, blocks));
  }
  void clear() const {
    if (kind.clear) {
      base::clear_bytes(base::as_pointer(from), bytes);
    } else {
      heap::clear_dropped_words(first, blocks);
    }
  }
};

Gain gain_of(const Block& block, std::size_t size, std::size_t bytes) {
  const heap::BlockNumber first = heap::number_of(&block);
  const heap::BlockNumber had = heap::blocks_for(size);
  return {heap::kinds[block.kind], heap::block_address(first) + size, bytes - size, first + had,
          block.run - had};
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
    if (!gain_of(*place.block, size, rounded).needs_clearing()) return true;
    // A collection may come before what it gained is clear: until then it ends where it did.
    heap::extra_of(place.block).bytes = size;
  }
  gain_of(*place.block, size, rounded).clear();
  // Release: this thread may be stopped right behind it, and then the words are read.
  __atomic_store_n(&heap::extra_of(place.block).bytes, rounded, __ATOMIC_RELEASE);
  return true;
}

// An object stays in its place while it fits there and does not waste more than half of it.
inline bool fits(const Block& block, std::size_t size, std::size_t bytes) {
  return bytes <= size - heap::unused_at_end(block) - padding && bytes >= size / 2;
}

// What an object of `size` bytes, a multiple of the granule, does not use any more is clear, if its
// kind is. Mostly that is the end of a granule: no call for a few words.
inline void clear_end(const Block& block, void* object, std::size_t bytes, std::size_t size) {
  if (!heap::kinds[block.kind].clear) return;
  auto* at = static_cast<char*>(object) + bytes;
  char* const end = static_cast<char*>(object) + size;
  if (__builtin_expect(size - bytes > 2 * heap::kGranule, 0)) {
    return base::clear_bytes(at, size - bytes);
  }
  for (; base::as_word(at) % sizeof(Word) != 0; ++at) *at = 0;
  // Atomic, or GCC makes it a call.
  for (; at < end; at += sizeof(Word)) {
    __atomic_store_n(reinterpret_cast<Word*>(at), Word{0}, __ATOMIC_RELAXED);
  }
}

bool resize_place(const Place& place, void* object, std::size_t bytes) {
  const std::size_t size = place.size();
  const bool leaves_blocks =
      place.is_large() && heap::blocks_for(bytes + padding) < place.block->run;
  if (fits(*place.block, size, bytes) && !leaves_blocks) {
    clear_end(*place.block, object, bytes, size);
    return true;
  }
  return place.is_large() && resize_large_in_place(place, bytes);
}

}  // namespace

bool resize_in_place(void* object, std::size_t bytes) {
  Place place;
  return heap::find_place(base::as_word(object), &place) && resize_place(place, object, bytes);
}

// What GC_non_gc_bytes is to be told of an uncollectable object that has moved. Memory of the
// out-of-memory function lies elsewhere, and counts for nothing.
static std::size_t gained(KindNumber kind, const void* moved, std::size_t size_before) {
  if (!heap::is_uncollectable(kind)) return 0;
  Place there;
  const bool ours = heap::find_place(base::as_word(moved), &there);
  return (ours ? there.size() : 0) - size_before;
}

// Out of line, as the next one: what is frequent needs none of its registers.
[[gnu::noinline]] static Resized move(Place place, void* object, std::size_t bytes,
                                      const char* name) {
  const std::size_t size = place.size();
  const KindNumber kind = place.block->kind;
  void* moved = allocate(bytes, kind);
  if (moved == nullptr) return {nullptr, 0};
  base::copy_bytes(moved, object, base::min_of(bytes, size));
  free_found(place, object, name);
  return {moved, gained(kind, moved, size)};
}

[[gnu::noinline]] static Resized reallocate_unusual(void* object, std::size_t bytes,
                                                    const char* name) {
  Place place;
  if (!is_object(object, name, &place)) return {nullptr, 0};
  const std::size_t size = place.size();
  if (!resize_place(place, object, bytes)) return move(place, object, bytes, name);
  const bool counts = heap::is_uncollectable(place.block->kind);
  return {object, counts ? place.size() - size : 0};
}

Resized reallocate(void* object, std::size_t bytes, const char* name) {
  Place place;
  const Hole* only = nullptr;
  if (!is_taken_slot(object, &place, &only)) return reallocate_unusual(object, bytes, name);
  const std::size_t size = place.block->slot_size;
  if (!fits(*place.block, size, bytes)) {
    const bool is_free = is_in_hole(*place.block, object, place.slot);
    return is_free ? reallocate_unusual(object, bytes, name) : move(place, object, bytes, name);
  }
  clear_end(*place.block, object, bytes, size);
  return {object, 0};
}

}  // namespace jd::alloc

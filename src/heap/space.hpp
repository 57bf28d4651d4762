// The reservation, the table of records beside it, and the way from an address to its object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/block.hpp"
#include "heap/kinds.hpp"
#include "heap/size_class.hpp"
#include "os/lock.hpp"
#include "os/readers.hpp"

namespace jd::heap {

// Block numbers count from the reservation's beginning. Block 0 is never used: it stands for
// "none" in links, and keeps an address just under the first object from being another object's.
using BlockNumber = std::uint32_t;

constexpr std::size_t bytes_of(BlockNumber blocks) { return std::size_t{blocks} << kBlockShift; }
inline constexpr BlockNumber kNoBlock = 0;

struct Space {
  // Set once at the start.
  Word base = 0;
  Block* blocks = nullptr;
  BlockExtra* extras = nullptr;
  BlockNumber reserved = 0;  // blocks in the reservation

  // Bytes from `base` that are committed: addresses below base + span may be dereferenced. Grows
  // under the heap's lock; the marker reads it in a stopped world, others at any time (both
  // relaxed). A thread that uses a stale, smaller span only fails to recognise objects which it
  // can't have heard of.
  std::size_t span = 0;
  BlockNumber committed = 0;  // the same in blocks; under the heap's lock
};
extern Space space;

// Serialises everything but the fast paths: blocks and runs, kinds, the thread registry, roots,
// finalisation tables, and collections. It is what the ABI calls the allocation lock.
//
// The order of locks, of which a thread that holds one may take those that follow: the one that
// starts the runtime in malloc/serve.cpp; the scheduler's, in the order of before_fork
// (task/process_fork.cpp); this one; the loader's, which a collection takes to look at what is
// loaded (world/static_roots.cpp); the one over the markers' packets (mark/exchange.hpp); the one
// over our own address ranges (os/own_ranges.cpp). That over exception states
// (task/exceptions.cpp) goes with none.
extern os::Lock heap_lock;
// Threads that only read what it guards, and hold it together (GC_call_with_reader_lock). Nobody
// else need know of them.
extern os::Readers heap_readers;

inline bool in_heap(Word address) {
  return address - space.base < __atomic_load_n(&space.span, __ATOMIC_RELAXED);
}
inline BlockNumber block_number(Word address) {
  return static_cast<BlockNumber>((address - space.base) >> kBlockShift);
}
inline Word block_address(BlockNumber number) { return space.base + (Word{number} << kBlockShift); }
inline BlockNumber number_of(const Block* block) {
  return static_cast<BlockNumber>(block - space.blocks);
}
// Does a run with objects, one or several, begin here?
inline bool is_head(const Block& block) {
  return block.state == BlockState::LargeHead || block.state == BlockState::SpanHead;
}
// Is the block, or the run that begins here, cut into slots of one size?
inline bool has_slots_of_one_size(const Block& block) {
  return block.state == BlockState::Small || block.state == BlockState::SpanHead;
}
inline BlockExtra& extra_of(const Block* block) { return space.extras[number_of(block)]; }

// Address space that a heap may have, 16 TiB: the sum of three numbers of blocks in it is one, too.
inline constexpr std::size_t kMostReserved = std::size_t{1} << 44;
static_assert(3 * (kMostReserved >> kBlockShift) <= UINT32_MAX);

// Reserves address space for about `wanted` bytes of heap and for its tables; takes half and half
// again while the system refuses. False if not even a few megabytes are to be had. Once for a
// process; tests make one space after another, and each begins empty.
[[nodiscard]] bool reserve_space(std::size_t wanted);

// Commits `count` more blocks, which become a clean free run. False if the reservation is used up
// or the system refuses. Pre: the lock is held.
[[nodiscard]] bool grow(BlockNumber count);

// In a mixed block (heap/mixed.hpp): the bytes of an object; the object that contains an address.
struct Place;
std::size_t mixed_size(const Place& place);
bool find_mixed(Word address, Place* place);

// Of the object that the head of a large one stands for. It may be growing where it is
// (BlockExtra).
inline std::uint64_t bytes_of_large(const Block& head) {
  return __atomic_load_n(&extra_of(&head).bytes, __ATOMIC_RELAXED);
}

// Usable bytes of a slot of a block or a span, or of a large object.
inline std::size_t unmixed_size(const Block& block) {
  return block.state == BlockState::LargeHead ? bytes_of_large(block) : block.slot_size;
}

// Where an address leads: the record of its block (the head's, in a run), and the slot.
struct Place {
  Block* block;
  unsigned slot;

  [[nodiscard]] bool is_large() const { return block->state == BlockState::LargeHead; }
  [[nodiscard]] bool is_in_run() const { return is_head(*block); }
  [[nodiscard]] bool is_in_span() const { return block->state == BlockState::SpanHead; }
  [[nodiscard]] bool is_mixed() const { return block->state == BlockState::Mixed; }
  [[nodiscard]] Word address() const {
    return block_address(number_of(block)) + Word{slot} * block->slot_size;
  }
  // Usable bytes of the slot or the large object.
  [[nodiscard]] std::size_t size() const {
    if (__builtin_expect(is_mixed(), 0)) return mixed_size(*this);
    return unmixed_size(*block);
  }
  // Does the object end there, so that a word which points there may mean it? In a loose slot that
  // address is the slot's, and no object's end (size_class.hpp).
  [[nodiscard]] bool ends_at(Word word) const {
    return unused_at_end(*block) == 0 && address() + size() == word;
  }
  // Does a pointer to this address, which lies in the object, hold it? Programs may promise to keep
  // a pointer to a large object's first block (GC_malloc_ignore_off_page).
  [[nodiscard]] bool is_held_by(Word pointer) const {
    return !is_large() || pointer - address() < kBlockSize || !extra_of(block).held_by_first_block;
  }
  [[nodiscard]] bool allocated() const { return block->is_allocated(slot); }
  [[nodiscard]] bool marked() const { return block->marked(slot); }
  void set_mark() const { block->marks[slot / 64] |= std::uint64_t{1} << (slot % 64); }
  void clear_mark() const { block->marks[slot / 64] &= ~(std::uint64_t{1} << (slot % 64)); }
  // The same while other threads may write other bits of the word. True if the mark was not set.
  bool set_mark_beside_others() const {
    const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
    return (__atomic_fetch_or(&block->marks[slot / 64], bit, __ATOMIC_RELAXED) & bit) == 0;
  }
  void clear_mark_beside_others() const {
    __atomic_fetch_and(&block->marks[slot / 64], ~(std::uint64_t{1} << (slot % 64)),
                       __ATOMIC_RELAXED);
  }
};

// Finds the slot or large object that contains the address, allocated or not. False for every
// other word, however hostile (heap.req.hostile).
inline bool find_place(Word address, Place* place) {
  if (!in_heap(address)) return false;
  Block* block = &space.blocks[block_number(address)];
  if (block->state == BlockState::Small) {
    const unsigned slot = block->slot_of(address & (kBlockSize - 1));
    if (slot >= block->slots) return false;
    *place = {block, slot};
    return true;
  }
  if (block->state == BlockState::Body) {
    // A stale body in a free run leads to something that is not its head, or no longer so long.
    const std::uint32_t distance = block->run;
    if (distance > number_of(block)) return false;
    block -= distance;
    if (!is_head(*block) || distance >= block->run) return false;
  }
  if (block->state == BlockState::Mixed) return find_mixed(address, place);
  if (!is_head(*block)) return false;
  const Word offset = address - block_address(number_of(block));
  if (block->state == BlockState::LargeHead) {
    *place = {block, 0};
    return offset < bytes_of_large(*block);
  }
  *place = {block, block->slot_of(offset)};
  return place->slot < block->slots;
}

// The same for addresses that must be an allocated object.
inline bool find_object(Word address, Place* place) {
  // In a mixed block only objects are found, and new ones have no bit yet.
  return find_place(address, place) && (place->allocated() || place->is_mixed());
}

}  // namespace jd::heap

// The allocated bits of a hole's slots. Not for other rooms.
#pragma once

#include "alloc/hole.hpp"
#include "heap/walk.hpp"

namespace jd::alloc {

// The slots [from, to) of the hole's block, given by addresses.
struct SlotRange {
  heap::Block* block;
  unsigned from;
  unsigned to;
};

inline SlotRange slots_between(const Hole& hole, const char* from, const char* to) {
  heap::Block* block = &heap::space.blocks[hole.block];
  const Word start = heap::block_address(hole.block);
  return {block, static_cast<unsigned>((base::as_word(from) - start) / hole.slot_size()),
          static_cast<unsigned>((base::as_word(to) - start) / hole.slot_size())};
}

// Whoever sees a hole without a last slot has none claimed either.
template <class Change>
void change_claimed(const Hole& hole, Change change) {
  if (hole.claimed == 0) return;
  change(&heap::space.blocks[hole.block], hole.claimed_word(hole.end), hole.claimed);
}

template <class Change>
void change_bits(const SlotRange& slots, Change change) {
  for (unsigned w = slots.from / 64; w * 64 < slots.to; ++w) {
    change(slots.block, w, heap::bits_between(w, slots.from, slots.to));
  }
}

// In a stopped world, where only threads that no collection stops may read the word (GC_free's
// first look at an address).
inline void set_word(heap::Block* block, unsigned w, std::uint64_t bits) {
  __atomic_store_n(&block->allocated[w], bits, __ATOMIC_RELAXED);
}

}  // namespace jd::alloc

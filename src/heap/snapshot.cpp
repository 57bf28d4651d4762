#include "heap/snapshot.hpp"

#include "heap/side_table.hpp"
#include "heap/walk.hpp"

namespace jd::heap {

bool marking_in_steps = false;

namespace {

// Of blocks that it does not cover, nothing was allocated.
SideTable<BlockBits> snapshot;

// By whoever frees something, also without the lock (relaxed): a step that misses it comes upon
// what another one freed while the world ran, and by then it is known.
bool freed_in_steps = false;

}  // namespace

bool begin_marking_in_steps() {
  if (!snapshot.cover()) return false;
  for_each_block([](BlockNumber number, const Block& block) {
    BlockBits& bits = snapshot[number];
    for (unsigned w = 0; w < block.bit_words(); ++w) bits.words[w] = block.allocated[w];
  });
  freed_in_steps = false;
  __atomic_store_n(&marking_in_steps, true, __ATOMIC_RELAXED);
  return true;
}

std::uint64_t noted_objects(const Block& block, unsigned word) {
  const BlockNumber number = number_of(&block);
  if (number >= snapshot.covered()) return 0;
  // The program may be freeing one (mark/concurrent.hpp).
  return __atomic_load_n(&snapshot[number].words[word], __ATOMIC_RELAXED);
}

void end_marking_in_steps() { __atomic_store_n(&marking_in_steps, false, __ATOMIC_RELAXED); }

void discard_snapshot() { snapshot.discard(); }

bool was_noted(Word address) {
  Place place;
  if (!find_place(address, &place)) return false;
  if ((noted_objects(*place.block, place.slot / 64) >> (place.slot % 64) & 1) == 0) return false;
  // Elements of a described array wait as addresses within it.
  return place.is_in_run() || place.address() == address;
}

void pass_for_new(Block* block) {
  const BlockNumber number = number_of(block);
  for (unsigned w = 0; w < block->bit_words(); ++w) {
    block->marks[w] = ~std::uint64_t{0};
    if (number < snapshot.covered()) snapshot[number].words[w] = 0;
  }
}

void pass_for_free(const Place& place) {
  const std::uint64_t bit = std::uint64_t{1} << (place.slot % 64);
  const BlockNumber number = number_of(place.block);
  place.set_mark_beside_others();
  if (number < snapshot.covered()) {
    __atomic_fetch_and(&snapshot[number].words[place.slot / 64], ~bit, __ATOMIC_RELAXED);
  }
  note_released();
}

void note_released() { __atomic_store_n(&freed_in_steps, true, __ATOMIC_RELAXED); }

bool take_freed_in_steps() { return __atomic_exchange_n(&freed_in_steps, false, __ATOMIC_RELAXED); }

}  // namespace jd::heap

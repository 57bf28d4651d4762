#include "alloc/hole.hpp"

#include "alloc/refill.hpp"
#include "alloc/slots.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "heap/blocks.hpp"

namespace jd::alloc {
namespace {

constexpr std::uint16_t offset_of(unsigned size_class) {
  return static_cast<std::uint16_t>(size_class * sizeof(Hole));
}

constexpr HoleOffsets offsets_of(const heap::ClassTable& table) {
  HoleOffsets offsets{};
  for (std::size_t words = 0; words < table.size(); ++words)
    offsets[words] = offset_of(table[words]);
  return offsets;
}

}  // namespace

constinit HoleOffsets hole_offset_of_words = offsets_of(heap::kCoarseClassOfWords);

void use_classes(const heap::ClassTable& table) {
  for (std::size_t words = 0; words < table.size(); ++words) {
    __atomic_store_n(&hole_offset_of_words[words], offset_of(table[words]), __ATOMIC_RELAXED);
  }
}

// Of what was a piece, the block's owner claims the slots without the lock.
void retire(Hole* hole) {
  heap::BlockExtra& extra = heap::space.extras[hole->block];
  const auto give_back = [](heap::Block* b, unsigned w, std::uint64_t bits) {
    base::note_block_atomic();
    b->give_back(w, bits);
  };
  if (hole->cursor < hole->end) {
    give_back_taken(static_cast<std::size_t>(hole->end - hole->cursor));
    change_bits(slots_between(*hole, hole->cursor, hole->end), give_back);
  }
  change_claimed(*hole, give_back);
  // What was a piece may be another hole's block by now, whose thread leaves it without the lock.
  if (__atomic_load_n(&extra.owner, __ATOMIC_RELAXED) == hole) {
    __atomic_store_n(&extra.owner, nullptr, __ATOMIC_RELEASE);
    extra.free_slots = heap::count_free_slots(heap::space.blocks[hole->block]);
    forget_zeroes(&extra);
    heap::list_block(hole->block);
  }
  hole->move_to(nullptr, nullptr, 0);
  hole->block = heap::kNoBlock;
}

}  // namespace jd::alloc

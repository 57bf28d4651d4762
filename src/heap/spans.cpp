#include "heap/spans.hpp"

#include "heap/blocks.hpp"
#include "heap/walk.hpp"

namespace jd::heap {
namespace {

// Is the slot of every byte found by the reciprocal? That is too large, by what grows with the
// offset, and so goes wrong first at a slot's last byte.
constexpr bool reciprocals_are_exact() {
  for (const SpanClass& span : kSpans) {
    const std::uint64_t magic = magic_for(span.slot_size);
    for (std::uint64_t slot = 0; slot < span.slots(); ++slot) {
      const std::uint64_t first = slot * span.slot_size;
      const std::uint64_t last = first + span.slot_size - 1;
      if ((first * magic) >> 32 != slot || (last * magic) >> 32 != slot) return false;
    }
  }
  return true;
}
static_assert(reciprocals_are_exact());

// What a span has behind its last slot, for the sizes are multiples of a granule, is a few
// granules: 128 bytes at most.
constexpr bool sizes_ascend_and_fill_spans() {
  std::size_t before = kMaxSmall;
  for (const SpanClass& span : kSpans) {
    if (span.slot_size <= before || span.slot_size % kGranule != 0 || span.slots() > 32) {
      return false;
    }
    if (span.bytes() - span.slots() * std::size_t{span.slot_size} > 8 * kGranule) return false;
    before = span.slot_size;
  }
  return true;
}
static_assert(sizes_ascend_and_fill_spans());

}  // namespace

unsigned span_class_for(std::size_t bytes) {
  for (unsigned c = 0; c < kSpanClasses; ++c) {
    if (bytes > kSpans[c].slot_size) continue;
    return kSpans[c].slot_size < std::size_t{blocks_for(bytes)} * kBlockSize ? c : kSpanClasses;
  }
  return kSpanClasses;
}

Block* find_span(KindNumber kind, std::size_t bytes, std::size_t most) {
  for (unsigned c = 0; c < kSpanClasses && kSpans[c].slot_size <= most; ++c) {
    if (kSpans[c].slot_size < bytes) continue;
    const BlockNumber listed = listed_blocks(kind, size_class_of_span(c)).head();
    if (listed != kNoBlock) return &space.blocks[listed];
  }
  return nullptr;
}

Place take_slot(Block* span, OldWords* words) {
  BlockExtra& extra = extra_of(span);
  const unsigned slot = base::lowest_bit(free_slots(*span, 0));
  const std::uint32_t bit = std::uint32_t{1} << slot;
  *words = (extra.span.zeroed & bit) != 0    ? OldWords::None
           : (extra.span.dropped & bit) != 0 ? OldWords::Dropped
                                             : OldWords::Freed;
  extra.span.zeroed &= ~bit;
  extra.span.dropped &= ~bit;
  __atomic_store_n(&span->allocated[0], span->allocated[0] | bit, __ATOMIC_RELAXED);
  if (--extra.free_slots == 0) unlist_block(number_of(span));
  return {span, slot};
}

void give_slot(const Place& place) {
  Block* const span = place.block;
  const std::uint64_t bit = std::uint64_t{1} << place.slot;
  // Release: as give_slot_back in alloc/free.cpp.
  __atomic_store_n(&span->allocated[0], span->allocated[0] & ~bit, __ATOMIC_RELEASE);
  ++extra_of(span).free_slots;
  const BlockNumber number = number_of(span);
  if (span->allocated[0] == 0) return release_block(number);
  list_block(number);
}

}  // namespace jd::heap

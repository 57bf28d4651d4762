#include "heap/mixed.hpp"

#include <atomic>

#include "heap/block_bits.hpp"
#include "heap/blocks.hpp"
#include "heap/layout.hpp"
#include "heap/runs.hpp"
#include "heap/side_table.hpp"
#include "heap/size_class.hpp"
#include "heap/walk.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

struct alignas(128) Gaps : BlockBits {};
// By block number. Reserved when the first mixed block is made, committed for the blocks that there
// are then. Under the heap's lock; a block's words as its record's.
SideTable<Gaps> gaps;

std::uint64_t load(const std::uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }
void set(std::uint64_t* words, unsigned granule) {
  std::uint64_t& word = words[granule / 64];
  __atomic_store_n(&word, word | std::uint64_t{1} << (granule % 64), __ATOMIC_RELAXED);
}
void clear(std::uint64_t* words, unsigned granule) {
  std::uint64_t& word = words[granule / 64];
  __atomic_store_n(&word, word & ~(std::uint64_t{1} << (granule % 64)), __ATOMIC_RELAXED);
}
bool has(const std::uint64_t* words, unsigned granule) {
  return (load(words[granule / 64]) >> (granule % 64)) & 1;
}

std::uint64_t boundaries(BlockNumber number, unsigned word) {
  return load(space.blocks[number].allocated[word]) | load(gaps[number].words[word]);
}

// The next boundary at or behind a granule; the block's end if there is none.
unsigned next_boundary(BlockNumber number, unsigned from) {
  for (unsigned w = from / 64; w < kBitWords; ++w) {
    std::uint64_t bits = boundaries(number, w);
    if (w == from / 64) bits &= ~std::uint64_t{0} << (from % 64);
    if (bits != 0) return w * 64 + base::lowest_bit(bits);
  }
  return kMixedGranules;
}

// The last boundary at or before a granule; 0, where something always begins, if there is none.
unsigned last_boundary(BlockNumber number, unsigned granule) {
  for (unsigned w = granule / 64 + 1; w-- > 0;) {
    std::uint64_t bits = boundaries(number, w);
    if (w == granule / 64) bits &= ~std::uint64_t{0} >> (63 - granule % 64);
    if (bits != 0) return w * 64 + base::log2_floor(bits);
  }
  return 0;
}

Word granule_address(BlockNumber number, unsigned granule) {
  return block_address(number) + Word{granule} * kGranule;
}

char* start_byte(BlockNumber number, unsigned granule) {
  return base::as_pointer(block_address(number) + kStartBytes + granule);
}

// The hole's granules, of a block that a thread owns; none otherwise. To whoever does not hold the
// thread up, perhaps from the beginning of one gap to the end of another: a thread goes from gap to
// gap, and may come back to the block.
Granules hole_in(BlockNumber number) {
  const auto* hole =
      static_cast<const MixedHole*>(__atomic_load_n(&space.extras[number].owner, __ATOMIC_ACQUIRE));
  if (hole == nullptr) return {kMixedGranules, kMixedGranules};
  const char* end = __atomic_load_n(&hole->end, __ATOMIC_ACQUIRE);
  const char* cursor = __atomic_load_n(&hole->cursor, __ATOMIC_RELAXED);
  if (cursor == nullptr || cursor >= end) return {kMixedGranules, kMixedGranules};
  return {granule_of(number, cursor), granule_of(number, end)};
}

BlockBits granules_of_gaps(BlockNumber number) {
  BlockBits firsts;
  BlockBits all;
  for (unsigned w = 0; w < kBitWords; ++w) {
    firsts.words[w] = load(gaps[number].words[w]);
    all.words[w] = boundaries(number, w);
  }
  return tiles(firsts, all);
}

// The start bytes of 64 granules as bits. They are 0 or 1; but those of free granules are anything.
std::uint64_t start_bits(BlockNumber number, unsigned word) {
  const char* const bytes = start_byte(number, word * 64);
  std::uint64_t bits = 0;
#if defined(__SSE2__)
  using Bytes [[gnu::vector_size(16), gnu::may_alias]] = char;
  using Halves [[gnu::vector_size(16)]] = std::uint16_t;
  for (unsigned quarter = 0; quarter < 4; ++quarter) {
    // The lowest bit of each byte becomes its highest.
    const auto low = reinterpret_cast<Halves>(reinterpret_cast<const Bytes*>(bytes)[quarter]) << 7;
    const int mask = __builtin_ia32_pmovmskb128(reinterpret_cast<Bytes>(low));
    bits |= std::uint64_t{static_cast<std::uint16_t>(mask)} << (quarter * 16);
  }
#else
  for (unsigned eighth = 0; eighth < 8; ++eighth) {
    std::uint64_t eight = 0;
    __builtin_memcpy(&eight, bytes + std::size_t{eighth} * 8, sizeof eight);
    // The product's highest byte has the sum, weighed by powers of two.
    eight &= 0x0101010101010101u;
    bits |= (eight * 0x0102040810204080u >> 56) << (eighth * 8);
  }
#endif
  return bits;
}

}  // namespace

BlockNumber make_mixed_block(KindNumber kind) {
  if (!gaps.cover()) return kNoBlock;
  const BlockNumber number = make_small_block(kind, class_for(kGranule));
  if (number == kNoBlock) return kNoBlock;
  for (std::uint64_t& word : gaps[number].words) word = 0;
  set(gaps[number].words, 0);
  space.blocks[number].set_known_starts(Starts::Known);
  space.blocks[number].state = BlockState::Mixed;
  return number;
}

void discard_unused_gaps() {
  const auto step = static_cast<BlockNumber>(os::page_size() / sizeof(Gaps));
  for (BlockNumber first = 0; first + step <= gaps.covered(); first += step) {
    bool used = false;
    for (BlockNumber b = first; b < first + step; ++b) {
      used |= space.blocks[b].state == BlockState::Mixed;
    }
    if (!used) os::discard(&gaps[first], os::page_size());
  }
}

bool find_gap(BlockNumber number, unsigned from, unsigned least, Granules* gap) {
  for (unsigned w = from / 64; w < kBitWords; ++w) {
    std::uint64_t bits = gaps[number].words[w];
    if (w == from / 64) bits &= ~std::uint64_t{0} << (from % 64);
    for (; bits != 0; bits &= bits - 1) {
      const unsigned first = w * 64 + base::lowest_bit(bits);
      *gap = {first, next_boundary(number, first + 1)};
      if (gap->count() >= least) return true;
    }
  }
  return false;
}

void take_gap(BlockNumber number, unsigned first) {
  space.blocks[number].set_known_starts(Starts::Open);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // The first object begins where the gap did.
  set(space.blocks[number].allocated, first);
  clear(gaps[number].words, first);
}

char* starts_of(BlockNumber number) {
  return base::as_pointer(base::as_word(start_byte(number, 0)) - block_address(number) / kGranule);
}

void clear_start_bytes(BlockNumber number, Granules granules) {
  base::clear_bytes(start_byte(number, granules.from), granules.count());
}

void give_gap(BlockNumber number, unsigned first) {
  set(gaps[number].words, first);
  clear(space.blocks[number].allocated, first);
}

static_assert(kLeastGap == 8);
unsigned usable_granules(BlockNumber number) {
  return count_in_stretches_of_eight(granules_of_gaps(number));
}

void learn_starts(BlockNumber number) {
  if (space.blocks[number].known_starts() != Starts::Open) return;
  const Granules hole = hole_in(number);
  Block& block = space.blocks[number];
  const BlockBits free = granules_of_gaps(number);
  // Several markers may be here: all write the same.
  for (unsigned w = 0; w < kBitWords; ++w) {
    const std::uint64_t found =
        start_bits(number, w) & ~free.words[w] & ~bits_between(w, hole.from, hole.to);
    __atomic_store_n(&block.allocated[w], load(block.allocated[w]) | found, __ATOMIC_RELAXED);
  }
  space.blocks[number].set_known_starts(hole.count() == 0 ? Starts::Known
                                                          : Starts::KnownBesideHole);
}

void unmark_hole(const MixedHole& hole) {
  if (hole.cursor == nullptr || hole.cursor >= hole.end) return;
  clear(space.blocks[hole.block].marks, granule_of(hole.block, hole.cursor));
}

unsigned used_granules(BlockNumber number) {
  return kMixedGranules - hole_in(number).count() - count(granules_of_gaps(number));
}

unsigned live_granules(BlockNumber number) {
  const Block& block = space.blocks[number];
  BlockBits live;
  BlockBits all;
  for (unsigned w = 0; w < kBitWords; ++w) {
    live.words[w] = block.marks[w] & block.allocated[w];
    all.words[w] = boundaries(number, w);
  }
  const Granules hole = hole_in(number);
  if (hole.count() != 0) set(all.words, hole.from);
  return count(tiles(live, all));
}

unsigned tile_end(BlockNumber number, unsigned first) {
  const Granules hole = hole_in(number);
  const unsigned end = next_boundary(number, first + 1);
  return first < hole.from ? base::min_of(end, hole.from) : end;
}

bool find_mixed(Word address, Place* place) {
  const BlockNumber number = block_number(address);
  Block& block = space.blocks[number];
  const auto granule = static_cast<unsigned>((address & (kBlockSize - 1)) / kGranule);
  if (granule >= kMixedGranules) return false;
  const Granules hole = hole_in(number);
  // Asked first: somebody may be learning them meanwhile.
  const Starts known = space.blocks[number].known_starts();
  unsigned at = last_boundary(number, granule);
  // In a hole there is no boundary, between two gaps there is one.
  if (granule >= hole.from && granule < hole.to && at <= hole.from) return false;
  if (has(gaps[number].words, at)) return false;
  if (known == Starts::Open) {
    for (unsigned begin = granule; begin > at; --begin) {
      if (__atomic_load_n(start_byte(number, begin), __ATOMIC_RELAXED) != 0) at = begin;
    }
  }
  *place = {&block, at};
  return true;
}

std::size_t mixed_size(const Place& place) {
  return base::align_up(memory_bytes(place.address(), kinds[place.block->kind].layout_from),
                        kGranule);
}

unsigned sweep_mixed(BlockNumber number, unsigned* free) {
  Block& block = space.blocks[number];
  const Granules hole = hole_in(number);
  // What begins somewhere: until now, and of that, what stays. A hole stays as it is.
  BlockBits before;
  BlockBits after;
  for (unsigned w = 0; w < kBitWords; ++w) {
    before.words[w] = boundaries(number, w);
    after.words[w] = block.marks[w] & block.allocated[w];
  }
  if (hole.count() != 0) {
    set(before.words, hole.from);
    set(after.words, hole.from);
  }
  const BlockBits kept = tiles(after, before);
  BlockBits freed;
  for (unsigned w = 0; w < kBitWords; ++w) freed.words[w] = ~kept.words[w];
  const BlockBits first_freed = first_of_stretches(freed);
  for (unsigned w = 0; w < kBitWords; ++w) {
    gaps[number].words[w] = first_freed.words[w];
    block.marks[w] = after.words[w];
    __atomic_store_n(&block.allocated[w], after.words[w], __ATOMIC_RELAXED);
  }
  // A hole's thread goes on to allocate.
  space.blocks[number].set_known_starts(hole.count() == 0 ? Starts::Known : Starts::Open);
  *free = count_in_stretches_of_eight(freed);
  return count(kept) - hole.count();
}

void poison_gaps(BlockNumber number) {
  Granules gap{0, 0};
  while (find_gap(number, gap.to, 1, &gap)) {
    poison(granule_address(number, gap.from), std::size_t{gap.count()} * kGranule);
    if (gap.to == kMixedGranules) return;
  }
}

void keep_mixed(BlockNumber number) {
  learn_starts(number);
  Block& block = space.blocks[number];
  for (unsigned w = 0; w < kBitWords; ++w) block.marks[w] = block.allocated[w];
  space.blocks[number].set_known_starts(space.extras[number].owner == nullptr ? Starts::Known
                                                                              : Starts::Open);
}

void fill_gap(BlockNumber number, Granules gap, unsigned granules) {
  Block& block = space.blocks[number];
  clear(gaps[number].words, gap.from);
  set(block.allocated, gap.from);
  set(block.marks, gap.from);
  clear_start_bytes(number, {gap.from, gap.from + granules});
  *start_byte(number, gap.from) = 1;
  if (granules < gap.count()) set(gaps[number].words, gap.from + granules);
}

}  // namespace jd::heap

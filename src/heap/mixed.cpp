#include "heap/mixed.hpp"

#include "heap/blocks.hpp"
#include "heap/layout.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

struct alignas(128) Gaps {
  std::uint64_t words[kBitWords];
};
// By block number. Reserved when the first mixed block is made, committed for the blocks that there
// are then. Under the heap's lock; a block's words as its record's.
Gaps* gaps = nullptr;
BlockNumber covered = 0;

bool cover_blocks() {
  if (covered >= space.committed) return true;
  if (gaps == nullptr) {
    gaps = static_cast<Gaps*>(os::reserve(
        base::align_up(space.reserved * sizeof(Gaps), os::page_size()), os::page_size()));
    if (gaps == nullptr) return false;
  }
  const std::size_t have = base::align_up(covered * sizeof(Gaps), os::page_size());
  const std::size_t wanted = base::align_up(space.committed * sizeof(Gaps), os::page_size());
  if (wanted > have && !os::commit(reinterpret_cast<char*>(gaps) + have, wanted - have)) {
    return false;
  }
  covered = space.committed;
  return true;
}

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
unsigned granule_of(BlockNumber number, const char* p) {
  return static_cast<unsigned>((base::as_word(p) - block_address(number)) / kGranule);
}

// Granules of the object that begins there, from its first word; 0 if nothing does.
unsigned granules_at(BlockNumber number, unsigned granule) {
  const std::size_t bytes =
      memory_bytes(granule_address(number, granule), kinds[space.blocks[number].kind].source);
  return static_cast<unsigned>(base::div_up(bytes, kGranule));
}

// The hole's granules, of a block that a thread owns; none otherwise.
Granules hole_in(BlockNumber number) {
  const auto* hole =
      static_cast<const MixedHole*>(__atomic_load_n(&space.extras[number].owner, __ATOMIC_ACQUIRE));
  if (hole == nullptr) return {kMixedGranules, kMixedGranules};
  // In this order: the thread goes from gap to gap upwards, and what is of two of them is no hole.
  const char* end = __atomic_load_n(&hole->end, __ATOMIC_ACQUIRE);
  const char* cursor = __atomic_load_n(&hole->cursor, __ATOMIC_RELAXED);
  if (cursor == nullptr || cursor >= end) return {kMixedGranules, kMixedGranules};
  return {granule_of(number, cursor), granule_of(number, end)};
}

}  // namespace

BlockNumber make_mixed_block(KindNumber kind, bool* clean) {
  if (!cover_blocks()) return kNoBlock;
  const BlockNumber number = make_small_block(kind, class_for(kGranule), clean);
  if (number == kNoBlock) return kNoBlock;
  for (std::uint64_t& word : gaps[number].words) word = 0;
  set(gaps[number].words, 0);
  space.extras[number].starts_known = true;
  space.blocks[number].state = BlockState::Mixed;
  return number;
}

void discard_unused_gaps() {
  const auto step = static_cast<BlockNumber>(os::page_size() / sizeof(Gaps));
  for (BlockNumber first = 0; first + step <= covered; first += step) {
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
  space.extras[number].starts_known = false;
  // The first object begins where the gap did.
  set(space.blocks[number].allocated, first);
  clear(gaps[number].words, first);
}

void give_gap(BlockNumber number, unsigned first) {
  set(gaps[number].words, first);
  clear(space.blocks[number].allocated, first);
}

void learn_starts(BlockNumber number) {
  BlockExtra& extra = space.extras[number];
  if (__atomic_load_n(&extra.starts_known, __ATOMIC_ACQUIRE)) return;
  Block& block = space.blocks[number];
  const Granules hole = hole_in(number);
  const Source source = kinds[block.kind].source;
  std::uint64_t found[kBitWords] = {};
  for (unsigned at = 0; at < kMixedGranules;) {
    if (at == hole.from) {
      at = hole.to;
    } else if (has(gaps[number].words, at)) {
      at = next_boundary(number, at + 1);
    } else {
      const std::size_t bytes = memory_bytes(granule_address(number, at), source);
      const auto granules = static_cast<unsigned>(base::div_up(bytes, kGranule));
      if (granules == 0 || at + granules > kMixedGranules) {
        broken_layout("a mixed block can't be walked", nullptr, granule_address(number, at));
      }
      found[at / 64] |= std::uint64_t{1} << (at % 64);
      at += granules;
    }
  }
  // Several markers may be here: all write the same.
  for (unsigned w = 0; w < kBitWords; ++w) {
    __atomic_store_n(&block.allocated[w], load(block.allocated[w]) | found[w], __ATOMIC_RELAXED);
  }
  __atomic_store_n(&extra.starts_known, true, __ATOMIC_RELEASE);
}

void unmark_hole(const MixedHole& hole) {
  if (hole.cursor == nullptr || hole.cursor >= hole.end) return;
  clear(space.blocks[hole.block].marks, granule_of(hole.block, hole.cursor));
}

unsigned used_granules(BlockNumber number) {
  const Granules hole = hole_in(number);
  unsigned used = kMixedGranules - hole.count();
  Granules gap{0, 0};
  while (gap.to < kMixedGranules && find_gap(number, gap.to, 1, &gap)) used -= gap.count();
  return used;
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
  if (granule >= hole.from && granule < hole.to) return false;
  unsigned at = last_boundary(number, granule);
  if (has(gaps[number].words, at)) return false;
  if (!__atomic_load_n(&space.extras[number].starts_known, __ATOMIC_ACQUIRE)) {
    for (;;) {
      if (at == hole.from) {
        at = hole.to;
        continue;
      }
      const unsigned granules = granules_at(number, at);
      if (granules == 0) return false;
      if (granule < at + granules) break;
      at += granules;
    }
  }
  *place = {&block, at};
  return true;
}

std::size_t mixed_size(const Place& place) {
  return std::size_t{granules_at(number_of(place.block), place.slot)} * kGranule;
}

unsigned sweep_mixed(BlockNumber number, unsigned* free) {
  Block& block = space.blocks[number];
  const Granules hole = hole_in(number);
  const bool has_hole = hole.from < kMixedGranules;
  // What begins somewhere: until now, and of that, what stays. A hole stays as it is.
  std::uint64_t before[kBitWords + 1];
  std::uint64_t after[kBitWords + 1];
  for (unsigned w = 0; w < kBitWords; ++w) {
    before[w] = boundaries(number, w);
    after[w] = block.marks[w] & block.allocated[w];
  }
  // The block's end.
  before[kBitWords] = after[kBitWords] = 1;
  if (has_hole) {
    set(before, hole.from);
    set(after, hole.from);
  }
  const auto next = [](const std::uint64_t* words, unsigned from) {
    unsigned w = from / 64;
    std::uint64_t bits = words[w] & (~std::uint64_t{0} << (from % 64));
    while (bits == 0) bits = words[++w];
    return w * 64 + base::lowest_bit(bits);
  };
  for (std::uint64_t& word : gaps[number].words) word = 0;
  unsigned kept = 0;
  *free = 0;
  // From the end of what stays to the beginning of what stays next.
  unsigned end = 0;
  for (unsigned first = next(after, 0);; first = next(after, end)) {
    if (first > end) {
      set(gaps[number].words, end);
      if (first - end >= kLeastGap) *free += first - end;
    }
    if (first >= kMixedGranules) break;
    end = first == hole.from ? hole.to : next(before, first + 1);
    kept += end - first;
    if (end >= kMixedGranules) break;
  }
  for (unsigned w = 0; w < kBitWords; ++w) {
    block.marks[w] = after[w];
    __atomic_store_n(&block.allocated[w], after[w], __ATOMIC_RELAXED);
  }
  // A hole's thread goes on to allocate.
  space.extras[number].starts_known = !has_hole;
  return kept - hole.count();
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
  space.extras[number].starts_known = space.extras[number].owner == nullptr;
}

void fill_gap(BlockNumber number, Granules gap, unsigned granules) {
  Block& block = space.blocks[number];
  clear(gaps[number].words, gap.from);
  set(block.allocated, gap.from);
  set(block.marks, gap.from);
  if (granules < gap.count()) set(gaps[number].words, gap.from + granules);
}

}  // namespace jd::heap

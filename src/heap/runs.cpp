#include "heap/runs.hpp"

#include <initializer_list>

#include "heap/block_list.hpp"
#include "heap/huge_pages.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"

namespace jd::heap {
namespace {

// Bins of one length each for runs of 1..kExact blocks, then one for each power of two.
constexpr unsigned kExact = 32;
constexpr unsigned kBins = kExact + 27;

// All under the heap's lock.
BlockList bins[kBins];
std::uint64_t bins_in_use;  // bit b: bins[b] is not empty
// These three are read without it, too, by whoever asks how large the heap is (relaxed).
BlockNumber total_free;
BlockNumber total_returned;
BlockNumber peak_resident;  // as of when pages were returned last
// Free blocks that may have pages, those at most that became free since all was discarded.
BlockNumber maybe_idle;
// The run at which a step of discard_idle stopped, for as long as it is linked: what a block's
// record says of a free run may be of one that is a part of another now.
BlockNumber stopped_at = kNoBlock;
static_assert(kBins <= 64);

unsigned bin_of(BlockNumber count) {
  return count <= kExact ? count - 1 : kExact + base::log2_floor(count) - 5;
}

void set(BlockNumber* total, BlockNumber value) {
  __atomic_store_n(total, value, __ATOMIC_RELAXED);
}
BlockNumber read(const BlockNumber& total) { return __atomic_load_n(&total, __ATOMIC_RELAXED); }

// A run was added to the bin or taken out of it, and so many blocks are free now.
void note_change(unsigned bin, BlockNumber free) {
  const std::uint64_t bit = std::uint64_t{1} << bin;
  bins_in_use = bins[bin].is_empty() ? bins_in_use & ~bit : bins_in_use | bit;
  set(&total_free, free);
}

void link_front(BlockNumber first, BlockNumber count) {
  const unsigned bin = bin_of(count);
  bins[bin].push_front(first);
  note_change(bin, total_free + count);
}

void link_back(BlockNumber first, BlockNumber count) {
  const unsigned bin = bin_of(count);
  bins[bin].push_back(first);
  note_change(bin, total_free + count);
}

void unlink(BlockNumber first, BlockNumber count) {
  const unsigned bin = bin_of(count);
  bins[bin].remove(first);
  note_change(bin, total_free - count);
  if (first == stopped_at) stopped_at = kNoBlock;
}

// The first block in the run at which `count` aligned blocks fit, or kNoBlock.
BlockNumber fit(BlockNumber first, BlockNumber run, BlockNumber count, BlockNumber alignment) {
  const Word start = block_address(first) >> kBlockShift;
  const auto skip = static_cast<BlockNumber>(base::align_up(start, alignment) - start);
  return skip < run && run - skip >= count ? first + skip : kNoBlock;
}

// Cuts [at, at + count) out of a linked run and links what is left on both sides.
void cut(BlockNumber first, BlockNumber run, BlockNumber at, BlockNumber count) {
  unlink(first, run);
  if (at != first) {
    describe_free(first, at - first);
    link_front(first, at - first);
  }
  const BlockNumber end = at + count;
  const BlockNumber rest = first + run - end;
  if (rest != 0) {
    describe_free(end, rest);
    link_front(end, rest);
  }
}

template <class Visit>
void for_each_run(Visit visit) {
  for (const BlockList& bin : bins) {
    for (BlockNumber b = bin.head(); b != kNoBlock; b = space.extras[b].next) {
      visit(b, space.blocks[b].run);
    }
  }
}

// Discards what is idle of [from, end), up to `most` bytes, which it takes from *most. Returns
// where it stopped.
BlockNumber discard_idle_in(BlockNumber from, BlockNumber end, unsigned least_age,
                            std::size_t* most) {
  const auto idle = [least_age](BlockNumber at) {
    return space.extras[at].dirty && space.extras[at].age >= least_age;
  };
  BlockNumber b = from;
  while (b < end && *most >= kBlockSize) {
    if (!idle(b)) {
      ++b;
      continue;
    }
    const BlockNumber first = b;
    while (b < end && idle(b) && (std::size_t{b - first} << kBlockShift) < *most) ++b;
    const std::size_t bytes = std::size_t{b - first} << kBlockShift;
    if (!os::discard(base::as_pointer(block_address(first)), bytes)) continue;
    for (BlockNumber at = first; at < b; ++at) {
      space.extras[at].dirty = false;
      space.extras[at].returned = true;
    }
    set(&total_returned, total_returned + (b - first));
    *most -= bytes;
  }
  return b;
}

}  // namespace

KeptRuns kept_runs;
BlockNumber most_resident = UINT32_MAX;

bool only_kept_runs_left() {
  if (total_free > kept_runs.blocks || bins_in_use == 0) return false;
  const unsigned shortest = base::lowest_bit(bins_in_use);
  return shortest >= kExact || shortest + 1 >= kept_runs.length;
}

void describe_free(BlockNumber first, BlockNumber count) {
  for (const BlockNumber b : {first, first + count - 1}) {
    Block& block = space.blocks[b];
    block.magic = 0;
    block.slots = 0;
    block.slot_size = 0;
    block.state = BlockState::Free;
    block.run = count;
  }
}

namespace {

BlockNumber blocks_in_use() { return space.committed - 1 - total_free; }

// Committed blocks whose pages are not returned.
BlockNumber resident_blocks() {
  const std::size_t committed = __atomic_load_n(&space.span, __ATOMIC_RELAXED) >> kBlockShift;
  // Block 0 is never used; before the start there is not even that.
  const auto usable = static_cast<BlockNumber>(committed == 0 ? 0 : committed - 1);
  return usable - base::min_of(usable, read(total_returned));
}

void note_idle(BlockNumber count) {
  maybe_idle = base::min_of(maybe_idle + count, space.committed);
}

// Is there memory for so many blocks more? What is idle is discarded for them.
bool make_memory_for(BlockNumber count) {
  if (__builtin_expect(space.committed - 1 <= most_resident, 1)) return true;
  if (!has_memory_for(count)) return false;
  const BlockNumber idle = base::min_of(maybe_idle, total_free - total_returned);
  if (blocks_in_use() + idle + count > most_resident) {
    // All of it: then it is long until the next time.
    discard_idle(0);
    maybe_idle = 0;
  }
  return true;
}

}  // namespace

bool has_memory_for(BlockNumber count) {
  return space.committed - 1 <= most_resident || blocks_in_use() + count <= most_resident;
}

BlockNumber take_run(BlockNumber count, BlockNumber alignment) {
  if (!make_memory_for(count)) return kNoBlock;
  std::uint64_t candidates = bins_in_use & (~std::uint64_t{0} << bin_of(count));
  for (; candidates != 0; candidates &= candidates - 1) {
    const unsigned bin = base::lowest_bit(candidates);
    for (BlockNumber b = bins[bin].head(); b != kNoBlock; b = space.extras[b].next) {
      const BlockNumber run = space.blocks[b].run;
      const BlockNumber at = fit(b, run, count, alignment);
      if (at == kNoBlock) continue;
      cut(b, run, at, count);
      return at;
    }
  }
  return kNoBlock;
}

bool take_run_at(BlockNumber first, BlockNumber count) {
  if (first >= space.committed || space.blocks[first].state != BlockState::Free) return false;
  const BlockNumber run = space.blocks[first].run;
  if (run < count || !make_memory_for(count)) return false;
  cut(first, run, first, count);
  return true;
}

void give_run(BlockNumber first, BlockNumber count) {
  const BlockNumber end = first + count;
  note_idle(count);
  if (end < space.committed && space.blocks[end].state == BlockState::Free) {
    const BlockNumber after = space.blocks[end].run;
    unlink(end, after);
    count += after;
  }
  if (first > 1 && space.blocks[first - 1].state == BlockState::Free) {
    const BlockNumber before = space.blocks[first - 1].run;
    unlink(first - before, before);
    first -= before;
    count += before;
  }
  describe_free(first, count);
  link_front(first, count);
}

void forget_runs() {
  for (BlockList& bin : bins) bin = {};
  bins_in_use = 0;
  set(&total_free, 0);
  maybe_idle = 0;
  stopped_at = kNoBlock;
}

void add_run_in_order(BlockNumber first, BlockNumber count) {
  note_idle(count);
  describe_free(first, count);
  link_back(first, count);
}

BlockNumber free_blocks() { return read(total_free); }

unsigned bin_count() { return kBins; }

Bin bin(unsigned number) {
  const bool exact = number < kExact;
  const BlockNumber power = exact ? 0 : BlockNumber{1} << (number - kExact + 5);
  return {bins[number], exact ? number + 1 : base::max_of(power, kExact + 1),
          exact ? number + 1 : 2 * power - 1, ((bins_in_use >> number) & 1) != 0};
}

std::size_t discard_idle(unsigned least_age, std::size_t most, DiscardPosition* position) {
  most = base::align_down(base::min_of(most, SIZE_MAX - kBlockSize), kBlockSize);
  std::size_t left = most;
  set(&peak_resident, base::max_of(peak_resident, resident_blocks()));
  DiscardPosition at;
  const bool goes_on =
      position != nullptr && position->run != kNoBlock && position->run == stopped_at;
  unsigned bin = 0;
  if (goes_on) {
    at = *position;
    bin = bin_of(space.blocks[at.run].run);
    at.block = discard_idle_in(at.block, at.run + space.blocks[at.run].run, least_age, &left);
  }
  BlockNumber next = goes_on ? space.extras[at.run].next : bins[bin].head();
  while (left != 0) {
    if (next == kNoBlock) {
      if (++bin == kBins) break;
      next = bins[bin].head();
      continue;
    }
    at.run = next;
    at.block = discard_idle_in(next, next + space.blocks[next].run, least_age, &left);
    next = space.extras[next].next;
  }
  if (position != nullptr) {
    *position = at;
    stopped_at = at.run;
  }
  return most - left;
}

void discard_stale_records() {
  for_each_run([](BlockNumber first, BlockNumber count) {
    // The ends describe the run.
    const Word from = base::align_up(base::as_word(&space.blocks[first + 1]), os::page_size());
    const Word to =
        base::align_down(base::as_word(&space.blocks[first + count - 1]), os::page_size());
    if (from < to) os::discard(base::as_pointer(from), to - from);
  });
}

std::size_t returned_bytes() { return std::size_t{read(total_returned)} << kBlockShift; }
std::size_t resident_bytes() { return std::size_t{resident_blocks()} << kBlockShift; }
std::size_t free_resident_bytes() {
  const BlockNumber free = free_blocks();
  // Who asks without the lock may come when a run is taken, and its blocks still count as returned.
  return std::size_t{free - base::min_of(free, read(total_returned))} << kBlockShift;
}
std::size_t peak_resident_bytes() {
  return std::size_t{base::max_of(read(peak_resident), resident_blocks())} << kBlockShift;
}

BlockNumber start_using(BlockNumber first, BlockNumber count, bool filled) {
  note_use_for_huge_pages(first, first + count, filled);
  BlockNumber dirty = 0;
  for (BlockNumber number = first; number < first + count; ++number) {
    BlockExtra& extra = space.extras[number];
    dirty += extra.dirty ? 1 : 0;
    if (extra.returned) set(&total_returned, total_returned - 1);
    extra.returned = false;
    extra.dirty = true;
    extra.age = 0;
  }
  return dirty;
}

}  // namespace jd::heap

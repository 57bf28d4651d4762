#include "heap/runs.hpp"

#include <initializer_list>

#include "heap/block_list.hpp"
#include "heap/resident.hpp"
#include "heap/sweep.hpp"

namespace jd::heap {
namespace {

// Bins of one length each for runs of 1..kExact blocks, then one for each power of two.
constexpr unsigned kExactLog = 5;
constexpr unsigned kExact = 1u << kExactLog;
constexpr unsigned kBins = kExact + 32 - kExactLog;

// All under the heap's lock.
BlockList bins[kBins];
std::uint64_t bins_in_use;  // bit b: bins[b] is not empty
BlockNumber total_free;     // read without it, too, by whoever asks how large the heap is (relaxed)
BlockNumber remembered = kNoBlock;
static_assert(kBins <= 64);

void set_free(BlockNumber count) { __atomic_store_n(&total_free, count, __ATOMIC_RELAXED); }

// A run was added to the bin or taken out of it, and so many blocks are free now.
void note_change(unsigned bin, BlockNumber free) {
  const std::uint64_t bit = std::uint64_t{1} << bin;
  bins_in_use = bins[bin].is_empty() ? bins_in_use & ~bit : bins_in_use | bit;
  set_free(free);
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
  if (first == remembered) remembered = kNoBlock;
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

}  // namespace

KeptRuns kept_runs;

bool only_kept_runs_left() {
  if (total_free > kept_runs.blocks || bins_in_use == 0) return false;
  const unsigned shortest = base::lowest_bit(bins_in_use);
  return shortest >= kExact || shortest + 1 >= kept_runs.length;
}

bool only_blocks_for_copies_left() {
  return sweep_policy.keep_gaps && total_free <= space.committed / kLastShareForCopies;
}

unsigned bin_of(BlockNumber count) {
  return count <= kExact ? count - 1 : kExact + base::log2_floor(count) - kExactLog;
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

bool has_run(BlockNumber count) {
  if (!has_memory_for(count)) return false;
  const unsigned bin = bin_of(count);
  const std::uint64_t candidates = bins_in_use & (~std::uint64_t{0} << bin);
  if (candidates == 0) return false;
  if (base::lowest_bit(candidates) != bin) return true;
  for (BlockNumber b = bins[bin].head(); b != kNoBlock; b = space.extras[b].next) {
    if (space.blocks[b].run >= count) return true;
  }
  return (candidates & (candidates - 1)) != 0;
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
  set_free(0);
  forget_idle();
  remembered = kNoBlock;
}

void add_run_in_order(BlockNumber first, BlockNumber count) {
  note_idle(count);
  describe_free(first, count);
  link_back(first, count);
}

BlockNumber free_blocks() { return __atomic_load_n(&total_free, __ATOMIC_RELAXED); }

unsigned bin_count() { return kBins; }

void remember_run(BlockNumber first) { remembered = first; }
BlockNumber remembered_run() { return remembered; }

Bin bin(unsigned number) {
  const bool exact = number < kExact;
  const BlockNumber power = exact ? 0 : BlockNumber{1} << (number - kExact + kExactLog);
  return {bins[number], exact ? number + 1 : base::max_of(power, kExact + 1),
          exact ? number + 1 : 2 * power - 1, ((bins_in_use >> number) & 1) != 0};
}

}  // namespace jd::heap

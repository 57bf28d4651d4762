#include "cycle/growth.hpp"

#include "alloc/collecting.hpp"
#include "alloc/totals.hpp"
#include "copy/policy.hpp"
#include "cycle/due.hpp"
#include "cycle/settings.hpp"
#include "cycle/size_classes.hpp"
#include "heap/huge_pages.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "os/limits.hpp"
#include "os/log.hpp"

namespace jd::cycle {
namespace {

using heap::BlockNumber;
using heap::bytes_of;
using heap::kBlockShift;
using heap::space;

// The least growth and the most beyond what is needed: 256 KiB, as bdwgc's on 64-bit systems, and
// 16 MiB, over which a system call is nothing.
constexpr BlockNumber kLeastGrowth = 16;
constexpr BlockNumber kMostGrowth = 1024;
// The most of the growth that is a share of the heap: 1 MiB. Larger steps overshoot the peak of
// programs with a few megabytes (docs/design/cycle-measured.md, "The least between, and the steps
// of the heap").
constexpr BlockNumber kMostShareGrowth = 64;

// Of what large objects took between two collections, the most; it falls by this part of itself at
// each. Neither that nor the most that is kept was measured against others.
constexpr BlockNumber kDemandDecay = 3;
constexpr BlockNumber kMostKeptShare = 8;

// Where there are more free blocks than the heap would grow by, and only no run of them is long
// enough, a collection joins runs, and to grow by so much would leave the free blocks free. But
// only if objects of several blocks lately took this part of what makes one due, or one now and
// then would bring collections for all. A guess.
constexpr std::size_t kShareOfRuns = 4;

// All under the heap's lock.
alloc::RunDemand run_demand;
std::size_t physical_limit = 0;
// Blocks that the heap grew by for copies. As many stay free until it would have to grow: filled
// with what dies soon, they would make the heap sparse, and the next moving collection would add
// more.
BlockNumber added_for_copies = 0;
// The heap's size that the program asked for at the start, or by GC_expand_hp.
BlockNumber asked_for = 0;

// An eighth is left to the program's other memory and to our own tables: whoever fills a control
// group is killed, not told.
void set_physical_limit(std::size_t memory) {
  physical_limit = memory / 8 * 7;
  heap::most_resident = static_cast<BlockNumber>(
      base::min_of(physical_limit >> heap::kBlockShift, std::size_t{UINT32_MAX}));
}

// May so many bytes have pages? Where they may not, the limit is looked up anew: the administrator
// may have raised it, or moved the process to another group.
bool within_memory(std::size_t bytes) {
  if (physical_limit == 0) set_physical_limit(os::memory_limit());
  if (bytes <= physical_limit) return true;
  std::size_t memory = 0;
  if (!os::memory_limit_now(&memory)) return false;
  set_physical_limit(memory);
  return bytes <= physical_limit;
}

bool within_limits(BlockNumber blocks) {
  const std::size_t after = bytes_of(space.committed - 1 + blocks);
  if (settings.max_heap_size != 0 && after > settings.max_heap_size) return false;
  // What went back to the system is in none of it until it is used again.
  return within_memory(after - heap::returned_bytes());
}

void keep_added_blocks() {
  added_for_copies = base::min_of(added_for_copies, heap::free_blocks());
  heap::kept_runs = {added_for_copies, 1};
}

// By how much the heap is to grow beyond what is needed.
BlockNumber growth() {
  // As far as the next collection is away: with more, the heap would be filled beyond that point
  // before anybody looks, since a collection happens only when free blocks run out. But small heaps
  // grow by bdwgc's rule, a share of the heap: a megabyte buys a third of the collections
  // (docs/design/cycle.md, "Growing the heap").
  const std::size_t charged = charged_bytes();
  const alloc::Shares shares = alloc::shares_since_gc();
  const std::size_t due = due_after_by(shares);
  const std::size_t allowance = due > charged ? due - charged : 0;
  auto more =
      static_cast<BlockNumber>(base::min_of(allowance >> kBlockShift, std::size_t{kMostGrowth}));
  const GC_word divisor = base::max_of(GC_word{1}, GC_word{GC_free_space_divisor});
  const GC_word share = space.committed / divisor / (several_threads_allocate(shares) ? 2 : 1);
  more =
      base::max_of(more, static_cast<BlockNumber>(base::min_of(share, GC_word{kMostShareGrowth})));
  return base::max_of(more, kLeastGrowth);
}

// For an object of so many blocks, where the heap would grow by `more` beyond them.
bool only_a_run_is_missing(BlockNumber blocks, BlockNumber more) {
  return blocks > 1 && heap::free_blocks() > more &&
         bytes_of(run_demand.blocks) >= due_after() / kShareOfRuns;
}

// Exactly so many.
bool commit_blocks(BlockNumber blocks) {
  if (!commit_quietly(blocks)) return false;
  tell_of_growth(blocks);
  return true;
}

}  // namespace

bool may_grow(BlockNumber blocks) {
  return within_limits(blocks) && space.committed + blocks <= space.reserved;
}

bool commit_quietly(BlockNumber blocks) {
  if (!within_limits(blocks) || !heap::grow(blocks)) return false;
  note_heap_size(bytes_of(space.committed - 1));
  return true;
}

bool commit_for_copies(BlockNumber blocks) {
  if (!commit_quietly(blocks)) return false;
  added_for_copies += blocks;
  return true;
}

void tell_of_growth(BlockNumber blocks) {
  if (options.print_stats != 0 || options.print_verbose_stats != 0) {
    os::log("heap grown by ", bytes_of(blocks) / base::kKiB, " KiB to ",
            bytes_of(space.committed - 1) / base::kKiB, " KiB");
  }
  if (GC_on_heap_resize != nullptr) GC_on_heap_resize(heap::resident_bytes());
}

bool commit_as_asked(BlockNumber blocks) {
  if (!commit_blocks(blocks)) return false;
  asked_for = base::max_of(asked_for, space.committed);
  return true;
}

bool is_as_asked() { return space.committed <= asked_for; }

bool grow_heap(BlockNumber least) {
  BlockNumber more = growth();
  // What is freed by hand is used again, and no collection comes for long. But free blocks would be
  // filled by and by, as each size is short of slots at one time or another.
  constexpr BlockNumber kShareByHand = 32;
  if (alloc::program_frees_by_hand()) {
    more = base::min_of(more, base::max_of(space.committed / kShareByHand, kLeastGrowth));
  }
  if (only_a_run_is_missing(least, more)) more = kLeastGrowth;
  if (space.committed >= heap::kHugePagesFrom) {
    more = static_cast<BlockNumber>(
        base::align_up(space.committed + least + more, heap::kHugePageBlocks) - space.committed -
        least);
  }
  if (commit_blocks(least + more)) return true;
  return commit_blocks(least);
}

// Instead of growing.
bool use_added_blocks() {
  if (added_for_copies == 0 || heap::free_blocks() == 0) return false;
  added_for_copies -= base::min_of(added_for_copies, growth());
  keep_added_blocks();
  return true;
}

// Could a run of so many ever be had?
bool fits_limits(BlockNumber blocks) {
  return settings.max_heap_size == 0 || bytes_of(blocks) <= settings.max_heap_size;
}

bool only_a_run_is_missing(BlockNumber blocks) { return only_a_run_is_missing(blocks, growth()); }

bool can_compact() { return copy::in_use && copy::policy.moves && !copy::policy.mcc; }

void plan_kept_blocks() {
  const alloc::RunDemand taken = alloc::take_run_demand();
  run_demand.blocks =
      base::max_of(taken.blocks, run_demand.blocks - run_demand.blocks / kDemandDecay);
  run_demand.length =
      base::max_of(taken.length, run_demand.length - run_demand.length / kDemandDecay);
  heap::kept_runs = {};
  if (!can_compact()) return;
  if (within_limits(kLeastGrowth)) {
    keep_added_blocks();
    return;
  }
  heap::kept_runs = {base::min_of(run_demand.blocks, space.committed / kMostKeptShare),
                     run_demand.length};
}

}  // namespace jd::cycle

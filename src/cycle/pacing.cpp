#include "cycle/pacing.hpp"

#include "alloc/collecting.hpp"
#include "alloc/pacer.hpp"
#include "alloc/totals.hpp"
#include "copy/policy.hpp"
#include "cycle/collect.hpp"
#include "cycle/finalization.hpp"
#include "cycle/incremental.hpp"
#include "cycle/measured.hpp"
#include "cycle/moving.hpp"
#include "cycle/refusal.hpp"
#include "cycle/settings.hpp"
#include "cycle/size_classes.hpp"
#include "heap/huge_pages.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "heap/space.hpp"
#include "heap/sweep.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "world/stop.hpp"

namespace jd::cycle {
namespace {

using heap::BlockNumber;
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

// No collection before this much was allocated since the last: a small heap would otherwise be
// collected for every hundred kilobytes, and each collection looks at the static data of the
// libraries. docs/design/cycle-measured.md, "The least between, and the steps of the heap", has the
// figures. It is for one thread: several would else collect as many times more often, with the
// others waiting.
constexpr std::size_t kLeastBetween = 416 * base::kKiB;

// Free blocks are used up before anything is collected, but only until so many times as much was
// allocated as makes a collection due, and no less than kLeastPastDue. Otherwise a heap that is far
// larger than what lives, since it was full once or since its free runs are short, would be filled
// all over between two collections, and no long run would last (docs/design/cycle-measured.md,
// "Free blocks beyond what is due", has the figures). The least is a guess: what 12 MiB of a small
// heap hide is little.
constexpr std::size_t kPastDue = 3;
constexpr std::size_t kLeastPastDue = 4 * base::kMiB;

// Finalizers and links are often for objects that hold other memory, and it takes two collections
// for that to go: a table of them that has grown is a reason to collect (TableLimit). Differs from
// bdwgc: not before an eighth of what makes a collection due was allocated (docs/design/cycle.md,
// "Finalizers and links").
constexpr std::size_t kGrownTableShare = 8;

// Where a program asks for fewer collections by a divisor of 1, as much is allocated between two of
// them as lives, not twice as much: ours are short enough. Where many finalizers and links are
// registered, it is no more than by default (docs/design/cycle.md, "Finalizers and links").
constexpr GC_word kLeastDivisor = 2;
constexpr GC_word kLeastDivisorForLargeTable = 3;

// No collection before this part of what makes one due was handed out to the program: in a small
// heap, holes of some thirty pairs of kind and size are as much as is due, and each collection
// takes the holes back (docs/design/cycle.md, "Pacing").
// Other parts were not measured.
constexpr std::size_t kHandedOutShare = 4;

// Of what large objects took between two collections, the most; it falls by this part of itself at
// each. Neither that nor the most that is kept was measured against others.
constexpr BlockNumber kDemandDecay = 3;
constexpr BlockNumber kMostKeptShare = 8;

// Where there are more free blocks than the heap would grow by, and only no run of them is long
// enough: a collection is early there, at this part of what makes one due. It joins runs, and to
// grow by so much would leave the free blocks free. But only if objects of several blocks lately
// took this part of what makes one due, or one now and then would bring collections for all.
// Guesses, both.
constexpr std::size_t kDueForRun = 2;
constexpr std::size_t kShareOfRuns = 4;

// A collection in steps begins at this part of what makes it due. A guess.
constexpr std::size_t kDueForSteps = 2;

// Under the heap's lock.
alloc::RunDemand run_demand;
// Under the heap's lock. What the last collection planned, but for the least: for one thread that
// allocates, and for several.
std::size_t planned = 0;
std::size_t planned_for_several = 0;
// What the last collection's live data and roots count for, before the divisor; 0 before the first.
std::size_t last_work = 0;
std::size_t physical_limit = 0;
// Blocks that the heap grew by for copies. As many stay free until it would have to grow: filled
// with what dies soon, they would make the heap sparse, and the next moving collection would add
// more.
BlockNumber added_for_copies = 0;
// The heap had to grow where a collection was due, since the program had switched it off.
bool is_overdue = false;
// Did the last collection compact, for want of room?
bool last_compacted = false;

// The heap's size that the program asked for at the start, or by GC_expand_hp. Under the heap's
// lock.
BlockNumber asked_for = 0;

std::size_t bytes_of(BlockNumber blocks) { return std::size_t{blocks} << kBlockShift; }

bool within_limits(BlockNumber blocks) {
  const std::size_t after = bytes_of(space.committed - 1 + blocks);
  if (settings.max_heap_size != 0 && after > settings.max_heap_size) return false;
  // An eighth is left to the program's other memory and to our own tables: whoever fills a control
  // group is killed, not told.
  if (physical_limit == 0) {
    physical_limit = os::memory_limit() / 8 * 7;
    heap::most_resident = static_cast<BlockNumber>(
        base::min_of(physical_limit >> heap::kBlockShift, std::size_t{UINT32_MAX}));
  }
  // What went back to the system is in none of it until it is used again.
  return after - heap::returned_bytes() <= physical_limit;
}

// What counts against the divisor: allocations less explicit frees, but at least an eighth of the
// allocations, since memory that is freed by hand still moves the live data about.
std::size_t charged_of(const alloc::Totals& totals) {
  const std::size_t allocated = totals.allocated_since_gc;
  const std::size_t kept =
      totals.freed_since_gc < allocated ? allocated - totals.freed_since_gc : 0;
  return base::max_of(kept, allocated / 8);
}

std::size_t charged_bytes() { return charged_of(alloc::totals()); }

// A thread that has no processor when the world is to stop gets one in order to answer. So for each
// that is more than there are processors, this part of kLeastBetween is added; up to so many, for
// whom it is 6.5 MiB. docs/design/cycle-measured.md, "More threads than processors".
constexpr std::size_t kWaitingShare = 4;
constexpr std::size_t kMostWaiting = 64;

std::size_t least_for_waiting() {
  // Some may have ended since then, and in the child of a fork all others have.
  const std::size_t threads = base::min_of(world::signalled_at_last_stop() + std::size_t{1},
                                           std::size_t{world::thread_count()});
  const std::size_t waiting = threads - base::min_of(threads, std::size_t{os::cpu_count()});
  return base::min_of(waiting, kMostWaiting) * (kLeastBetween / kWaitingShare);
}

// kLeastBetween for the first thread that allocates and half of it for each further, as far as
// there are processors for them. How many those are shows in the part of the one that allocated
// most: of two with equal parts it is half, and beside one that does nearly all others hardly
// count.
std::size_t least_for_allocating(const alloc::Shares& shares) {
  if (shares.all <= shares.largest) return kLeastBetween;
  // In sixteenths of a thread.
  const std::size_t threads =
      base::min_of(shares.all / base::div_up(shares.largest, std::size_t{16}),
                   std::size_t{16} * os::cpu_count());
  return base::max_of(threads + 16, std::size_t{32}) * (kLeastBetween / 32);
}

std::size_t least_between(const alloc::Shares& shares) {
  return least_for_allocating(shares) + least_for_waiting();
}

// Then the last collection's live data count, not the lesser of two; and the heap grows by a share
// that is half as large, since the least between two collections is larger, and the heap is to stay
// as small.
bool several_threads_allocate(const alloc::Shares& shares) {
  return shares.all - shares.largest > shares.largest / 4;
}

std::size_t due_after_by(const alloc::Shares& shares) {
  const std::size_t least = base::max_of(least_between(shares), settings.min_bytes_allocated);
  return base::max_of(several_threads_allocate(shares) ? planned_for_several : planned, least);
}

// The paper's rule: copies need the last third. A heap that is nearly so full after a collection is
// to grow instead.
bool is_two_thirds_full(std::size_t charged) {
  const BlockNumber used = space.committed - heap::free_blocks();
  const BlockNumber full = space.committed - space.committed / heap::kShareForCopies;
  return used >= full && charged >= base::max_of(bytes_of(space.committed / 8), kLeastBetween);
}

bool collecting_is_off() { return GC_dont_gc != 0 || settings.automatic_collection_disabled; }

}  // namespace

std::size_t due_after() { return due_after_by(alloc::shares_since_gc()); }

bool collection_is_due() {
  alloc::Totals totals = alloc::totals();
  const std::size_t charged = charged_of(totals);
  if (copy::policy.mcc) return is_two_thirds_full(charged);
  const std::size_t due = due_after();
  if (charged < due) return false;
  // Holes count as allocated when threads take them.
  totals.allocated_since_gc -= base::min_of(alloc::left_in_holes(), totals.allocated_since_gc);
  return charged_of(totals) >= base::max_of(due / kHandedOutShare, settings.min_bytes_allocated);
}

namespace {

// Early: such a collection is to end when it is due. But free blocks are filled first, but for what
// the program will allocate meanwhile, until as much was allocated as makes one due: otherwise the
// heap grows a little at each, and the next fills that, too (docs/design/cycle-measured.md,
// "Marking in steps, measured").
bool steps_are_due() {
  const std::size_t due =
      base::max_of(base::max_of(planned_for_several, kLeastBetween), settings.min_bytes_allocated);
  const std::size_t begin = due / kDueForSteps;
  const std::size_t charged = charged_of(alloc::totals_unsynchronised());
  if (charged < begin || !incremental::begins_early() || !incremental::is_behind()) return false;
  const std::size_t free = bytes_of(heap::free_blocks());
  return charged >= due || free <= base::max_of(begin, incremental::allocated_in_last());
}

}  // namespace

void note_whether_collection_waits() {
  alloc::collection_waits =
      is_overdue || incremental::is_under_way() || incremental::may_be_wanted();
}

void catch_up() {
  if (collecting_is_off()) return;
  if (incremental::is_under_way()) {
    incremental::catch_up();
    return;
  }
  if (is_overdue) {
    // Once, even if the program's function stops it; and not if so much was freed that it is early.
    is_overdue = false;
    if (collection_is_due()) incremental::step();
  } else if (steps_are_due()) {
    incremental::step();
  }
  note_whether_collection_waits();
}

void collect_for_grown_table() {
  if (collecting_is_off()) return;
  const std::size_t charged = charged_bytes();
  if (charged >= due_after() / kGrownTableShare) {
    incremental::step();
  }
}

namespace {

bool can_compact() { return copy::in_use && copy::policy.moves && !copy::policy.mcc; }

void keep_added_blocks() {
  added_for_copies = base::min_of(added_for_copies, heap::free_blocks());
  heap::kept_runs = {added_for_copies, 1};
}

// Where small objects have taken the last free block, the next large one needs a compaction.
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

}  // namespace

void plan_next_collection(std::size_t live_bytes, std::size_t live_atomic_bytes,
                          std::size_t root_bytes) {
  const std::size_t composite = live_bytes - live_atomic_bytes;
  const std::size_t work = 2 * composite + live_atomic_bytes / 4 + root_bytes;
  // The lesser of two: a peak that a collection met by chance would else make room for another. The
  // peaks of several threads seldom come together, and what lives of one's data hides what another
  // let go.
  const std::size_t lesser = last_work == 0 ? work : base::min_of(work, last_work);
  last_work = work;
  const bool many = count_finalizers_and_links() >= TableLimit::kLeast;
  const GC_word least = many ? kLeastDivisorForLargeTable : kLeastDivisor;
  const GC_word divisor = base::max_of(least, GC_word{GC_free_space_divisor});
  // As bdwgc: partial collections cost little, and what they leave is made up for.
  const GC_word share = partial::pays() ? 2 : 1;
  planned = lesser / divisor / share;
  planned_for_several = work / divisor / share;
  last_compacted = false;
  is_overdue = false;
  note_whether_collection_waits();
  plan_kept_blocks();
  reconsider_size_classes();
}

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

namespace {

// Exactly so many.
bool commit_blocks(BlockNumber blocks) {
  if (!commit_quietly(blocks)) return false;
  tell_of_growth(blocks);
  return true;
}

}  // namespace

bool commit_as_asked(BlockNumber blocks) {
  if (!commit_blocks(blocks)) return false;
  asked_for = base::max_of(asked_for, space.committed);
  return true;
}

namespace {

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

// Is a collection to come for a run of so many, though none is due?
bool is_early_for_run(BlockNumber blocks) {
  if (copy::policy.mcc || !only_a_run_is_missing(blocks, growth())) return false;
  const std::size_t charged = charged_bytes();
  return charged >= base::max_of(due_after() / kDueForRun, settings.min_bytes_allocated);
}

// Instead of growing.
bool use_added_blocks() {
  if (added_for_copies == 0 || heap::free_blocks() == 0) return false;
  added_for_copies -= base::min_of(added_for_copies, growth());
  keep_added_blocks();
  return true;
}

}  // namespace

bool grow_heap(BlockNumber least) {
  BlockNumber more = growth();
  // What is freed by hand is used again, and no collection comes for long. But free blocks would be
  // filled by and by, as each size is short of slots at one time or another.
  constexpr BlockNumber kShareByHand = 32;
  if (alloc::is_freed_by_hand()) {
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

namespace {

// Every block may hold a survivor that could lie elsewhere.
bool compact_for_room() {
  wish_to_compact();
  last_compacted = collect_locked(nullptr);
  return last_compacted;
}

// Could a run of so many ever be had?
bool fits_limits(BlockNumber blocks) {
  return settings.max_heap_size == 0 || bytes_of(blocks) <= settings.max_heap_size;
}

// So little, as a part of the heap, that a collection would hardly find what a small object needs,
// or a large one.
constexpr std::size_t kLittleForSmall = 8;
constexpr std::size_t kLittleForLarge = 16;
bool little_was_allocated(std::size_t share) {
  return alloc::totals().allocated_since_gc < bytes_of(space.committed) / share;
}

// If a collection is due, or early for the sake of a long run.
bool collect_before_growing(BlockNumber blocks, unsigned attempt, bool allocated) {
  if (collecting_is_off()) {
    if (collection_is_due()) is_overdue = true;
    note_whether_collection_waits();
    return false;
  }
  if (refusal::waits()) return false;
  const bool due = allocated && (GC_dont_expand != 0 || collection_is_due());
  if (due) {
    // In steps the heap would grow meanwhile.
    const bool done = GC_dont_expand != 0 ? collect_locked(refusal::stop_function(), Extent::AsDue)
                                          : incremental::step() == incremental::Progress::End;
    if (done) return true;
    // Whoever was asked may have switched collections off.
    if (collecting_is_off()) return false;
  }
  if (incremental::is_under_way() || incremental::is_wanted()) return false;
  if (attempt != 0 || !is_early_for_run(blocks)) return false;
  if (collect_locked(refusal::stop_function())) return true;
  refusal::note();
  return false;
}

// Is a small object to have what is kept for copies and for large ones? Its thread takes it.
bool is_to_have_kept_block() {
  const bool some_are_kept =
      heap::free_blocks() != 0 && !heap::only_blocks_for_copies_left() && heap::has_memory_for(1);
  return some_are_kept && (copy::policy.mcc || little_was_allocated(kLittleForSmall));
}

// Which nobody may stop: a collection, then one that compacts, or that at once where little was
// allocated. For each allocation once, since the program may have let go of something after the
// last collection even where it allocated nothing; again only if something was allocated meanwhile,
// or the last one was partial.
bool collect_as_last_resort(unsigned attempt, bool allocated) {
  const bool again = attempt == 0 || allocated || partial::was_partial();
  const bool compact_at_once = can_compact() && little_was_allocated(kLittleForLarge);
  if (again && !compact_at_once && collect_locked(nullptr)) return true;
  return can_compact() && (again || !last_compacted) && compact_for_room();
}

}  // namespace

bool collects_first() {
  if (collecting_is_off() || copy::policy.mcc || space.committed <= asked_for) return false;
  return charged_of(alloc::totals_unsynchronised()) >=
         kPastDue * base::max_of(planned_for_several, kLeastPastDue);
}

bool has_room() { return may_grow(1) || (!collecting_is_off() && collection_is_due()); }

bool make_room(BlockNumber blocks, unsigned attempt) {
  const bool allocated = alloc::totals().allocated_since_gc != 0;
  if (collect_before_growing(blocks, attempt, allocated)) return true;
  if (blocks == 1) {
    const bool was_refused = attempt == 0 && heap::free_blocks() != 0 && collects_first();
    if (was_refused) return false;
    if (use_added_blocks()) return true;
  }
  if (grow_heap(blocks)) return true;
  if (blocks == 1 && is_to_have_kept_block()) return false;
  return !collecting_is_off() && fits_limits(blocks) && collect_as_last_resort(attempt, allocated);
}

}  // namespace jd::cycle

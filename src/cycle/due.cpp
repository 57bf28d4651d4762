#include "cycle/due.hpp"

#include "alloc/totals.hpp"
#include "copy/policy.hpp"
#include "cycle/finalization.hpp"
#include "cycle/incremental.hpp"
#include "cycle/partial.hpp"
#include "cycle/settings.hpp"
#include "cycle/table_limit.hpp"
#include "heap/runs.hpp"
#include "heap/sweep.hpp"
#include "os/cpu.hpp"
#include "world/stop.hpp"

namespace jd::cycle {
namespace {

using heap::BlockNumber;
using heap::bytes_of;
using heap::space;

// No collection before this much was allocated since the last: a small heap would otherwise be
// collected for every hundred kilobytes, and each collection looks at the static data of the
// libraries. docs/design/cycle-measured.md, "The least between, and the steps of the heap", has the
// figures. It is for one thread: several would else collect as many times more often, with the
// others waiting.
constexpr std::size_t kLeastBetween = 416 * base::kKiB;

// Free blocks are used up before anything is collected, but only until so many times as much was
// allocated as makes a collection due, or as kLeastPastDue if that is more. Otherwise a heap that
// is far larger than what lives, since it was full once or since its free runs are short, would be
// filled all over between two collections, and no long run would last
// (docs/design/cycle-measured.md, "Free blocks beyond what is due", has the figures). The least is
// a guess: what 12 MiB of a small heap hide is little.
constexpr std::size_t kPastDue = 3;
constexpr std::size_t kLeastPastDue = 4 * base::kMiB;

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

// A collection in steps begins at this part of what makes it due. A guess.
constexpr std::size_t kDueForSteps = 2;

// Under the heap's lock. What the last collection planned, but for the least: for one thread that
// allocates, and for several.
std::size_t planned = 0;
std::size_t planned_for_several = 0;
// What the last collection's live data and roots count for, before the divisor; 0 before the first.
std::size_t last_work = 0;

// What counts against the divisor: allocations less explicit frees, but at least an eighth of the
// allocations, since memory that is freed by hand still moves the live data about.
std::size_t charged_of(const alloc::Totals& totals) {
  const std::size_t allocated = totals.allocated_since_gc;
  const std::size_t kept =
      totals.freed_since_gc < allocated ? allocated - totals.freed_since_gc : 0;
  return base::max_of(kept, allocated / 8);
}

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

// The paper's rule: copies need the last third. A heap that is nearly so full after a collection is
// to grow instead.
bool is_two_thirds_full(std::size_t charged) {
  const BlockNumber used = space.committed - heap::free_blocks();
  const BlockNumber full = space.committed - space.committed / heap::kShareForCopies;
  return used >= full && charged >= base::max_of(bytes_of(space.committed / 8), kLeastBetween);
}

}  // namespace

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

std::size_t charged_bytes() { return charged_of(alloc::totals()); }

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

bool is_far_past_due() {
  return charged_of(alloc::totals_unsynchronised()) >=
         kPastDue * base::max_of(planned_for_several, kLeastPastDue);
}

void plan_due(std::size_t live_bytes, std::size_t live_atomic_bytes, std::size_t root_bytes) {
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
}

}  // namespace jd::cycle

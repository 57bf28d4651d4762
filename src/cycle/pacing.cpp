#include "cycle/pacing.hpp"

#include "alloc/pacer.hpp"
#include "alloc/totals.hpp"
#include "copy/policy.hpp"
#include "cycle/collect.hpp"
#include "cycle/due.hpp"
#include "cycle/growth.hpp"
#include "cycle/incremental.hpp"
#include "cycle/measured.hpp"
#include "cycle/moving.hpp"
#include "cycle/partial.hpp"
#include "cycle/refusal.hpp"
#include "cycle/settings.hpp"
#include "cycle/size_classes.hpp"
#include "cycle/table_limit.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"

namespace jd::cycle {
namespace {

using heap::BlockNumber;
using heap::bytes_of;
using heap::space;

// Finalizers and links are often for objects that hold other memory, and it takes two collections
// for that to go: a table of them that has grown is a reason to collect (TableLimit). Differs from
// bdwgc: not before an eighth of what makes a collection due was allocated (docs/design/cycle.md,
// "Finalizers and links").
constexpr std::size_t kGrownTableShare = 8;

// A collection that joins free runs is early where only a run is missing: at this part of what
// makes one due. A guess.
constexpr std::size_t kDueForRun = 2;

// The heap had to grow where a collection was due, since the program had switched it off.
bool is_overdue = false;
// Did the last collection compact, for want of room?
bool last_compacted = false;
// Small objects, one after another, for each of which a last resort found next to nothing, and
// before it next to nothing had been allocated since the collection before. After so many, memory
// has run out, though each may have found what the next few objects need: the program would hardly
// come on, and never be told. The part of the heap that is next to nothing is a guess, as is the
// number. Under the heap's lock.
constexpr std::size_t kNextToNothing = 256;
constexpr unsigned kMostInVain = 8;
unsigned in_vain = 0;

bool collecting_is_off() { return GC_dont_gc != 0 || settings.automatic_collection_disabled; }

// Is a collection to come for a run of so many, though none is due?
bool is_early_for_run(BlockNumber blocks) {
  if (copy::policy.mcc || !only_a_run_is_missing(blocks)) return false;
  const std::size_t charged = charged_bytes();
  return charged >= base::max_of(due_after() / kDueForRun, settings.min_bytes_allocated);
}

// Every block may hold a survivor that could lie elsewhere.
bool compact_for_room() {
  wish_to_compact();
  last_compacted = collect_locked() == Outcome::Done;
  return last_compacted;
}

// So little, as a part of the heap, that a collection would hardly find what a small object needs,
// or a large one.
constexpr std::size_t kLittleForSmall = 8;
constexpr std::size_t kLittleForLarge = 16;
// Or of a small one's own size, where larger slots are to be had; a guess.
constexpr std::size_t kLittleForSize = 64;
bool little_was_allocated(std::size_t share) {
  return alloc::totals().allocated_since_gc < bytes_of(space.committed) / share;
}

// Unless the program's function says no; then it is not asked again before long.
bool collect_if_allowed(Extent extent) {
  if (collect_locked(refusal::stop_function(), extent) == Outcome::Done) return true;
  refusal::note();
  return false;
}

// One that is due.
bool collect_as_due() {
  // In steps the heap would grow meanwhile.
  return GC_dont_expand != 0 ? collect_if_allowed(Extent::AsDue)
                             : incremental::step() == incremental::Progress::End;
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
    if (collect_as_due()) return true;
    // Whoever was asked may have switched collections off.
    if (collecting_is_off()) return false;
    // Where the whole heap was filled since the last one, the first refusal comes too late: if the
    // heap grew for it, it would grow a little for each collection, for ever.
    if (refusal::asks_no_more() && collect_as_due()) return true;
    if (refusal::waits() || collecting_is_off()) return false;
  }
  if (incremental::is_under_way() || incremental::is_wanted()) return false;
  return attempt == 0 && is_early_for_run(blocks) && collect_if_allowed(Extent::Full);
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
  if (again && !compact_at_once && collect_locked() == Outcome::Done) return true;
  return can_compact() && (again || !last_compacted) && compact_for_room();
}

// That, for a small object.
bool collect_for_block(unsigned attempt, bool allocated) {
  const std::size_t since = alloc::totals().allocated_since_gc;
  const std::size_t before = measured.live_bytes + since;
  if (!collect_as_last_resort(attempt, allocated)) return false;
  const std::size_t found = before - base::min_of(before, measured.live_bytes);
  const std::size_t little = bytes_of(space.committed) / kNextToNothing;
  // A compaction finds none, and makes free blocks.
  if (found >= little || since >= little || heap::free_blocks() != 0) {
    in_vain = 0;
  } else if (attempt == 0) {
    ++in_vain;
  }
  return true;
}

// What comes without a last resort.
enum class Room : unsigned char {
  Made,
  Kept,  // the caller may have what is kept for copies and for large objects
  None,
};
Room make_room_easily(BlockNumber blocks, unsigned attempt, bool allocated) {
  if (collect_before_growing(blocks, attempt, allocated)) return Room::Made;
  if (blocks == 1) {
    const bool was_refused = attempt == 0 && heap::free_blocks() != 0 && collects_first();
    if (was_refused) return Room::Kept;
    if (use_added_blocks()) return Room::Made;
  }
  if (grow_heap(blocks)) return Room::Made;
  return blocks == 1 && is_to_have_kept_block() ? Room::Kept : Room::None;
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

void plan_next_collection(std::size_t live_bytes, std::size_t live_atomic_bytes,
                          std::size_t root_bytes) {
  plan_due(live_bytes, live_atomic_bytes, root_bytes);
  last_compacted = false;
  is_overdue = false;
  note_whether_collection_waits();
  plan_kept_blocks();
  reconsider_size_classes();
}

bool collects_first() {
  return !collecting_is_off() && !copy::policy.mcc && !is_as_asked() && is_far_past_due();
}

bool has_room() { return may_grow(1) || (!collecting_is_off() && collection_is_due()); }

bool found_little() {
  return !partial::was_partial() &&
         measured.reclaimed_bytes < bytes_of(space.committed) / kLittleForSize &&
         little_was_allocated(kLittleForSize);
}

bool ends_in_vain() { return !collecting_is_off() && in_vain >= kMostInVain; }

bool make_room(BlockNumber blocks, unsigned attempt) {
  const bool allocated = alloc::totals().allocated_since_gc != 0;
  const Room room = make_room_easily(blocks, attempt, allocated);
  if (room != Room::None) {
    in_vain = 0;
    return room == Room::Made;
  }
  if (collecting_is_off() || !fits_limits(blocks)) return false;
  return blocks == 1 ? collect_for_block(attempt, allocated)
                     : collect_as_last_resort(attempt, allocated);
}

void note_shortage() { in_vain = 0; }

}  // namespace jd::cycle

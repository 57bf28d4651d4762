#include "cycle/partial.hpp"

#include "alloc/settings.hpp"
#include "base/bits.hpp"
#include "copy/policy.hpp"
#include "cycle/page_sums.hpp"
#include "cycle/partial_worth.hpp"
#include "cycle/settings.hpp"
#include "heap/kept_marks.hpp"
#include "heap/space.hpp"
#include "heap/sweep.hpp"
#include "heap/walk.hpp"
#include "mark/marker.hpp"
#include "os/log.hpp"
#include "os/write_watch.hpp"

namespace jd::cycle::partial {
namespace {

using heap::Block;
using heap::BlockNumber;
using heap::kBlockSize;
using heap::space;

// A full collection is wanted once what is alive has grown by so much since the last: old garbage
// may be a part of it. bdwgc waits for as much as makes a collection due, two thirds of what is
// alive; a quarter is a guess, for the sake of memory.
constexpr std::size_t kGrowthShare = 4;
constexpr std::size_t kLeastGrowth = base::kMiB;

// About what is allocated until the next collection: two thirds of what is alive, halved
// (plan_next_collection).
constexpr std::size_t kRoomShare = 3;
constexpr std::size_t kRoom = base::kMiB / 2;

// The collector's, under the heap's lock, as all that follows; but this one is read at any time
// (relaxed: nothing else goes by it).
bool on = false;
void set_on(bool value) {
  __atomic_store_n(&on, value, __ATOMIC_RELAXED);
  alloc::choose_treatment_of_frees(value);
}

os::WriteWatch write_watch;
// The last collection that ended marked what its marked objects led to, and what may have changed
// since is known. (One that was abandoned since has marked all there was, and changed nothing that
// is known.)
bool marks_are_known = false;
bool full_is_wanted = false;
int partial_since_full = 0;
std::size_t live_after_full = 0;
std::size_t kept = 0;
mark::Changed changed;
PartialWorth worth;
// Collections in a row after which nothing could be watched. So many, a guess, end the mode: the
// program may have no file left for a moment.
constexpr unsigned kMostFailures = 8;
unsigned failures = 0;
bool last_was_partial = false;

const char* start_watch() {
  return write_watch.start(base::as_pointer(space.base), std::size_t{space.reserved} * kBlockSize);
}

// Whether a block is about to be filled, as far as `room` bytes reach: then every page of it would
// cost a fault, where to scan its old objects again costs less.
bool will_be_filled(BlockNumber number, const Block& block, std::size_t* room) {
  const heap::BlockExtra& extra = space.extras[number];
  if (extra.owner != nullptr) return true;
  const std::size_t free = std::size_t{extra.free_slots} * block.slot_size;
  if (!extra.listed || *room < free) return false;
  *room -= free;
  return true;
}

enum class Objects { Marked, All };

// Objects of a kind with a procedure are scanned in any case.
bool holds_words(const Block& block, Objects of) {
  if (block.state == heap::BlockState::Free || block.scan == heap::Scan::None) return false;
  if (heap::has_procedure(heap::kinds[block.kind])) return false;
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    const std::uint64_t wanted = of == Objects::All ? ~std::uint64_t{0} : block.marks[w];
    if ((wanted & block.allocated[w]) != 0) return true;
  }
  return false;
}

// Blocks next to each other at once: each question costs the kernel a look at every processor.
// `room`: what is allocated next fills so many bytes.
bool watch_blocks(Objects of, std::size_t room) {
  if (options.verify != 0) forget_sums();
  const os::WatchedPages pages;
  BlockNumber first = 0;
  BlockNumber end = 0;
  bool watched = true;
  const auto watch_run = [&] {
    if (first == end) return;
    char* const low = base::as_pointer(heap::block_address(first));
    char* const high = base::as_pointer(heap::block_address(end));
    watched &= pages.watch(low, high);
    if (options.verify != 0) sum_watched(low, high);
  };
  heap::for_each_block([&](BlockNumber number, const Block& block) {
    const bool wanted = holds_words(block, of) && !will_be_filled(number, block, &room);
    space.extras[number].watched = wanted;
    if (!wanted) return;
    if (number != end) {
      watch_run();
      first = number;
    }
    end = number + heap::length_of(block);
  });
  watch_run();
  return watched;
}

}  // namespace

const char* turn_on() {
  if (on) return nullptr;
  const char* const why = start_watch();
  if (why != nullptr) return why;
  set_on(true);
  failures = 0;
  return nullptr;
}

bool pays() { return on && worth.pays(); }

bool is_on() { return __atomic_load_n(&on, __ATOMIC_RELAXED); }

bool may_watch() { return on && write_watch.is_on() && !copy::in_use && GC_find_leak == 0; }

bool is_possible() {
  return may_watch() && marks_are_known && !full_is_wanted && partial_since_full < GC_full_freq;
}

void keep_marks(bool of_steps) {
  const std::size_t marked = heap::keep_marks(of_steps ? heap::Keep::Noted : heap::Keep::All);
  if (!of_steps) kept = marked;
}

bool queue_changed() {
  const os::WatchedPages pages;
  const bool verified = options.verify == 0 || verify_unwritten(pages);
  if (verified) changed = mark::marker.push_changed(pages);
  if (verified && changed.known) return true;
  mark::marker.forget_queued();
  heap::start_marks();
  return false;
}

std::size_t kept_objects() { return kept; }
bool was_partial() { return last_was_partial; }

namespace {

void note(const Ended& ended) {
  if (!ended.was_partial) {
    worth.note_full(ended.mark_ns);
    partial_since_full = 0;
    full_is_wanted = false;
    live_after_full = ended.live_bytes;
    return;
  }
  worth.note_partial(ended.mark_ns, changed);
  ++partial_since_full;
  const std::size_t grown =
      ended.live_bytes > live_after_full ? ended.live_bytes - live_after_full : 0;
  full_is_wanted = grown > base::max_of(live_after_full / kGrowthShare, kLeastGrowth);
}

// False if the next collection is to be a full one for want of it.
bool watch(Objects of, std::size_t room) {
  // Another process's, since a fork, or ended by whoever has closed its file?
  bool watched = write_watch.is_on() && watch_blocks(of, room);
  const char* why = nullptr;
  if (!watched) {
    why = start_watch();
    watched = why == nullptr && watch_blocks(of, room);
  }
  if (watched) {
    failures = 0;
  } else if (++failures == kMostFailures) {
    set_on(false);
    os::warn("no partial collections any more: ", why != nullptr ? why : "the system refuses");
  }
  return watched;
}

}  // namespace

// All but what threads fill now: what lies on other pages would be scanned in the last pause.
bool watch_in_use() { return watch(Objects::All, 0); }

void forget_marks() { marks_are_known = false; }

void end_collection(const Ended& ended) {
  last_was_partial = ended.was_partial || ended.in_steps;
  marks_are_known = false;
  if (!on) return;
  note(ended);
  // Typed heaps move their objects, for which all references have to be seen.
  if (worth.pays() && !copy::in_use && !ended.copied) {
    marks_are_known = watch(Objects::Marked, kRoom + ended.live_bytes / kRoomShare);
  }
}

}  // namespace jd::cycle::partial

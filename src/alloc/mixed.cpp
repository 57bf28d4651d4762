#include "alloc/mixed.hpp"

#include "alloc/allocate.hpp"
#include "alloc/cache.hpp"
#include "alloc/pacer.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/sweep.hpp"
#include "os/context.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

using heap::BlockNumber;
using heap::granule_of;
using heap::kNoBlock;
using heap::space;

// A thread that is stopped between any two of these has a hole, or none and the gap.
void move_to(MixedHole* hole, heap::Granules gap) {
  char* const start = base::as_pointer(heap::block_address(hole->block));
  char* const first = start + std::size_t{gap.from} * heap::kGranule;
  __atomic_store_n(&hole->limit, first, __ATOMIC_RELAXED);
  __atomic_store_n(&hole->end, start + std::size_t{gap.to} * heap::kGranule, __ATOMIC_RELEASE);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  __atomic_store_n(&hole->cursor, first, __ATOMIC_RELEASE);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  heap::take_gap(hole->block, gap.from);
}

// What is left of the hole becomes a gap again.
void leave_rest(MixedHole* hole) {
  if (hole->cursor == nullptr) return;
  if (hole->cursor < hole->end) heap::give_gap(hole->block, granule_of(hole->block, hole->cursor));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  __atomic_store_n(&hole->cursor, static_cast<char*>(nullptr), __ATOMIC_RELAXED);
  __atomic_store_n(&hole->limit, static_cast<char*>(nullptr), __ATOMIC_RELAXED);
}

void write_first_words(char* memory, const FirstWords& words) {
  if (words.count != 0) *reinterpret_cast<Word*>(memory + words.count_offset) = words.count;
  *reinterpret_cast<Word*>(memory) = words.first;
}

void* take(MixedHole* hole, std::size_t bytes, const FirstWords& words) {
  char* const memory = hole->cursor;
  if (memory == nullptr || bytes > static_cast<std::size_t>(hole->limit - memory)) return nullptr;
  write_first_words(memory, words);
  __atomic_store_n(&hole->starts[base::as_word(memory) / heap::kGranule], 1, __ATOMIC_RELAXED);
  __atomic_store_n(&hole->cursor, memory + bytes, __ATOMIC_RELEASE);
  return memory;
}

// Clears more of the hole, so that there is room for the request. False if there is none.
bool extend(ThreadCache* owner, MixedHole* hole, std::size_t bytes) {
  if (hole->cursor == nullptr) return false;
  const auto room = static_cast<std::size_t>(hole->end - hole->cursor);
  if (bytes > room) return false;
  const auto clean = static_cast<std::size_t>(hole->limit - hole->cursor);
  const std::size_t wanted = every_allocation_is_slow ? bytes : base::max_of(bytes, clear_ahead);
  const std::size_t more = base::min_of(wanted, room) - clean;
  if (!space.extras[hole->block].zeroed) base::clear_bytes(hole->limit, more);
  heap::clear_start_bytes(hole->block, {granule_of(hole->block, hole->limit),
                                        granule_of(hole->block, hole->limit + more)});
  owner->count_taken(more);
  __atomic_store_n(&hole->limit, hole->limit + more, __ATOMIC_RELAXED);
  return true;
}

// The next gap of the hole's block that has room for the request.
bool next_gap(MixedHole* hole, std::size_t bytes) {
  if (hole->block == kNoBlock) return false;
  const unsigned least =
      base::max_of(static_cast<unsigned>(bytes / heap::kGranule), heap::kLeastGap);
  const unsigned from = hole->cursor == nullptr ? 0 : granule_of(hole->block, hole->end);
  leave_rest(hole);
  heap::Granules gap{};
  if (from >= heap::kMixedGranules || !heap::find_gap(hole->block, from, least, &gap)) return false;
  move_to(hole, gap);
  return true;
}

// Pre: the heap's lock is held.
void leave_block(MixedHole* hole) {
  if (hole->block == kNoBlock) return;
  leave_rest(hole);
  __atomic_store_n(&space.extras[hole->block].owner, nullptr, __ATOMIC_RELEASE);
  hole->block = kNoBlock;
}

}  // namespace

// A hole that takes gaps one by one leaves none.
void leave_block_with_gaps(MixedHole* hole) {
  const BlockNumber number = hole->block;
  leave_block(hole);
  if (number == kNoBlock || heap::sweep_policy.keep_gaps) return;
  space.extras[number].free_slots = static_cast<std::uint16_t>(heap::usable_granules(number));
  heap::list_block(number);
}

namespace {

// What is free is kept for large objects, and for copies.
bool only_kept_blocks_left() {
  return heap::only_kept_runs_left() || pacer.collects_first() ||
         (heap::sweep_policy.keep_gaps &&
          heap::free_blocks() < space.committed / heap::kShareForCopies);
}

// What the program gives instead is an object too, as if it came from a block.
void* out_of_memory(std::size_t bytes, const FirstWords& words) {
  void* memory = pacer.out_of_memory(bytes);
  if (memory == nullptr) return nullptr;
  write_first_words(static_cast<char*>(memory), words);
  return memory;
}

// Is there a gap for so many bytes?
bool has_gap(BlockNumber number, std::size_t bytes) {
  heap::Granules gap{};
  return heap::find_gap(number, 0, static_cast<unsigned>(bytes / heap::kGranule), &gap);
}

constexpr std::size_t kLeastGapBytes = heap::kLeastGap * heap::kGranule;

// A listed block with room for so many bytes. Of these, most have room for few bytes: for more,
// some are looked at, of `most`, and stay on the list if they have none. Pre: the lock is held.
BlockNumber take_listed(KindNumber kind, std::size_t bytes, unsigned most) {
  const unsigned size_class = heap::class_for(heap::kGranule);
  if (bytes <= kLeastGapBytes) return heap::take_listed_block(kind, size_class);
  const BlockNumber listed = heap::listed_blocks(kind, size_class).count();
  for (unsigned tries = base::min_of(most, unsigned{listed}); tries != 0; --tries) {
    const BlockNumber number = heap::take_last_listed_block(kind, size_class);
    if (has_gap(number, bytes)) return number;
    heap::list_block(number);
  }
  return kNoBlock;
}

// *attempts: how often room was made for the same allocation before.
bool next_block(ThreadCache* owner, MixedHole* hole, KindNumber kind, std::size_t bytes,
                unsigned* attempts) {
  constexpr unsigned kTries = 4;  // a guess
  os::clear_stack_below();
  os::LockGuard guard(heap::heap_lock);
  add_taken(owner);
  if (bytes <= kLeastGapBytes) {
    leave_block(hole);
  } else {
    leave_block_with_gaps(hole);
  }
  if (__builtin_expect(collection_waits, 0)) pacer.catch_up();
  for (;;) {
    const bool may_use_kept = *attempts != 0;
    BlockNumber number = take_listed(kind, bytes, may_use_kept ? ~0u : kTries);
    if (number != kNoBlock) {
      space.extras[number].zeroed = false;
    } else if (!(may_use_kept ? heap::only_blocks_for_copies_left() : only_kept_blocks_left())) {
      number = heap::make_mixed_block(kind);
    }
    if (number != kNoBlock) {
      hole->block = number;
      hole->starts = heap::starts_of(number);
      __atomic_store_n(&space.extras[number].owner, hole, __ATOMIC_RELEASE);
      return true;
    }
    if (give_back_unused(owner)) continue;
    if (!pacer.make_room(1, (*attempts)++) && may_use_kept) return false;
    if (pacer.ends_in_vain()) return false;
  }
}

// From the hole's gap.
void* take_or_extend(ThreadCache* owner, MixedHole* hole, std::size_t bytes,
                     const FirstWords& words) {
  void* memory = take(hole, bytes, words);
  if (memory == nullptr && extend(owner, hole, bytes)) memory = take(hole, bytes, words);
  return memory;
}

// From the hole's block.
void* take_from_block(ThreadCache* owner, MixedHole* hole, std::size_t bytes,
                      const FirstWords& words) {
  void* memory = nullptr;
  do {
    memory = take_or_extend(owner, hole, bytes, words);
  } while (memory == nullptr && next_gap(hole, bytes));
  return memory;
}

// Another object has no room in the hole. Is it used for such alone?
bool is_passed_by(MixedHole* hole) {
  constexpr unsigned kMost = 4;  // a guess
  if (hole->block == kNoBlock) return true;
  if (hole->passed_at != hole->cursor) {
    hole->passed_at = hole->cursor;
    hole->passed = 0;
  }
  return ++hole->passed > kMost;
}

}  // namespace

// What has room in every gap goes from gap to gap. What may not have takes what is left of the
// present one, or goes beside: otherwise it would pass over gaps that nobody comes back to (after
// Blackburn & McKinley, "Immix" (2008), overflow allocation). A hole that only such objects come by
// leaves its gaps to others, since what is allocated inline comes from it alone.
void* allocate_mixed(std::size_t bytes, unsigned which, KindNumber kind, const FirstWords& words) {
  if (!ready_to_allocate()) return out_of_memory(bytes, words);
  pacer.on_slow_path();
  world::Thread* thread = world::self();
  ThreadCache* owner = own_cache(thread);
  if (owner == nullptr) return out_of_memory(bytes, words);
  MixedHole* const own = &owner->mixed[which];
  MixedHole* hole = nullptr;
  // Over all blocks that are tried: what is made room for may be gaps that are too short.
  unsigned attempts = 0;
  for (;;) {
    {
      const world::NoStop guard(thread);
      if (bytes > kLeastGapBytes) {
        if (void* memory = take_or_extend(owner, own, bytes, words)) return memory;
      }
      if (hole == nullptr) {
        const bool beside = bytes > kLeastGapBytes && !is_passed_by(own);
        hole = beside ? &owner->mixed[heap::kMixedKinds + which] : own;
      }
      if (void* memory = take_from_block(owner, hole, bytes, words)) return memory;
    }
    if (!next_block(owner, hole, kind, bytes, &attempts)) return out_of_memory(bytes, words);
  }
}

}  // namespace jd::alloc

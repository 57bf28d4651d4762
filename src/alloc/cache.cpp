// How threads come by their caches and rows, and leave them.
#include "alloc/cache.hpp"

#include "alloc/magazine.hpp"
#include "alloc/refill.hpp"
#include "alloc/totals.hpp"
#include "heap/arena.hpp"
#include "heap/blocks.hpp"
#include "heap/sweep.hpp"
#include "os/log.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

// What a thread without pointer-free objects, or without a cache, allocates from: nothing, so that
// it comes to the slow path. A take() that fails writes nothing.
constinit HoleRow unused_row{};
constexpr ThreadCache cache_without_thread() {
  ThreadCache none{};
  none.rows.set(heap::kAtomic, &unused_row);
  return none;
}
constinit ThreadCache no_cache = cache_without_thread();

// Under the heap's lock.
ThreadCache* free_caches = nullptr;
HoleRow* free_rows = nullptr;  // linked through the first hole's cursor

// Under the heap's lock, and by the thread. Null: there is no memory for it.
ThreadCache* make_cache(world::Thread* thread) {
  ThreadCache* fresh = free_caches;
  if (fresh != nullptr) {
    free_caches = fresh->next;
  } else {
    fresh = static_cast<ThreadCache*>(heap::arena_take(sizeof(ThreadCache)));
    if (fresh == nullptr) return nullptr;
  }
  fresh->taken = 0;
  fresh->counted = 0;
  fresh->taken_at_gc = 0;
  fresh->freed = 0;
  fresh->freed_counted = 0;
  fresh->uncollectable = 0;
  fresh->uncollectable_counted = 0;
  fresh->refilled_in = 0;
  fresh->reserved = 0;
  fresh->has_blocks = false;
  fresh->claim.block = heap::kNoBlock;
  fresh->magazines = nullptr;
  for (MixedHole& hole : fresh->mixed) hole = {};
  fresh->rows.set(heap::kNormal, &fresh->normal);
  fresh->rows.set(heap::kAtomic, &unused_row);
  fresh->next = caches;
  fresh->previous = nullptr;
  if (caches != nullptr) caches->previous = fresh;
  caches = fresh;
  ++cache_count;
  reconsider_own_magazines();
  thread->cache = fresh;
  cache = fresh;
  return fresh;
}

// Where gaps are kept, nobody allocates from what is left of a hole before its block is free: it
// counts as taken. Otherwise threads that come and go would fill the heap without a collection ever
// being due.
void count_rest(ThreadCache* gone, const MixedHole& hole) {
  if (!heap::sweep_policy.keep_gaps || hole.cursor == nullptr || hole.end < hole.limit) return;
  gone->count_taken(static_cast<std::size_t>(hole.end - hole.limit));
}

// For the next thread. The holes keep their counts of changes: whoever is in the middle of reading
// one must not meet the same count again.
void empty(HoleRow* row, KindNumber kind, bool is_gone) {
  row->for_each_used([row, kind, is_gone](Hole& hole) {
    // Before the hole's block: a fork may have come when that was still in the reserve, too.
    Reserve& reserve = row->reserve_of(&hole);
    if (reserve.first != heap::kNoBlock) give_back_reserve(&reserve);
    reserve = {};
    if (hole.block == heap::kNoBlock) {
      // Taken back by a collection, or on its way from one place to another.
      if (is_gone) hole.move_to(nullptr, nullptr, 0);
      JD_DCHECK(hole.cursor == nullptr);
      return;
    }
    // Slots that were ready may have been handed out, by code that is inlined into the program's
    // and mixed with it; those behind were not. What no collection finds dead only our own code
    // hands out.
    if (is_gone && hole.cursor < hole.limit && !heap::is_uncollectable(kind)) {
      if (hole.changes % 2 == 0) note_lost_slots(hole);
      hole.cursor = hole.limit;
    }
    // In the middle of a change of place, what was claimed may belong to the place before, and so
    // may the end.
    if (is_gone && hole.changes % 2 != 0) {
      hole.cursor = hole.end;
      hole.claimed = 0;
      ++hole.changes;
    }
    retire(&hole);
  });
  for (std::uint64_t& bits : row->used) bits = 0;
}

// Of a thread that a fork has left in the parent.
void undo_claim(Claim* claim) {
  if (claim->block == heap::kNoBlock) return;
  heap::Block& block = heap::space.blocks[claim->block];
  for (unsigned w = 0; w < block.bit_words(); ++w) block.allocated[w] &= claim->before[w];
  claim->block = heap::kNoBlock;
}

// `is_gone`: the thread is not there any more, and may have been in the middle of an allocation.
// Slots that were ready stay allocated until the next collection finds them unmarked.
void leave(world::Thread* thread, bool is_gone) {
  auto* gone = static_cast<ThreadCache*>(thread->cache);
  if (gone == nullptr) return;
  thread->cache = nullptr;
  forget_refills(gone);
  if (forget_typed != nullptr) forget_typed(gone, cache == gone);
  for (const MixedHole& hole : gone->mixed) count_rest(gone, hole);
  add_taken(gone);
  for (MixedHole& hole : gone->mixed) leave_block_with_gaps(&hole);
  give_back_magazines(gone);
  if (is_gone) undo_claim(&gone->claim);
  gone->for_each_row([gone, is_gone](HoleRow* row, KindNumber kind) {
    gone->rows.set(kind, nullptr);
    if (row == &unused_row) return;
    empty(row, kind, is_gone);
    if (row != &gone->normal) {
      // Whoever still reads the hole finds no slot ahead of it: it has no end.
      __atomic_store_n(&row->holes[0].cursor, reinterpret_cast<char*>(free_rows), __ATOMIC_RELAXED);
      free_rows = row;
    }
  });
  (gone->previous == nullptr ? caches : gone->previous->next) = gone->next;
  if (gone->next != nullptr) gone->next->previous = gone->previous;
  gone->next = free_caches;
  free_caches = gone;
  --cache_count;
  reconsider_own_magazines();
  if (cache == gone) cache = &no_cache;
}

}  // namespace

ThreadCache* caches = nullptr;
unsigned cache_count = 0;
constinit thread_local ThreadCache* cache = &no_cache;
void (*forget_typed)(ThreadCache* cache, bool own) = nullptr;

static void set_up_row(HoleRow* row) {
  for (unsigned c = 0; c < heap::kSizeClasses; ++c) {
    row->holes[c].last_byte = static_cast<std::uint16_t>(heap::slot_size_of(c) - 1);
  }
  row->is_set_up = true;
}

ThreadCache* own_cache(world::Thread* thread) {
  if (thread->cache == nullptr) {
    os::LockGuard guard(heap::heap_lock);
    return make_cache(thread);
  }
  return static_cast<ThreadCache*>(thread->cache);
}

bool RowTable::make_room(KindNumber kind) {
  if (kind < kFew || more_ != nullptr) return true;
  more_ = static_cast<HoleRow**>(heap::arena_take((heap::kMaxKinds - kFew) * sizeof(HoleRow*)));
  return more_ != nullptr;
}

HoleRow* make_row(ThreadCache* owner, KindNumber kind) {
  HoleRow* row = owner->rows[kind];
  if (row == &unused_row) row = nullptr;
  if (!owner->rows.make_room(kind)) return nullptr;
  if (row == nullptr && free_rows != nullptr) {
    row = free_rows;
    free_rows = reinterpret_cast<HoleRow*>(row->holes[0].cursor);
    __atomic_store_n(&row->holes[0].cursor, nullptr, __ATOMIC_RELAXED);
  }
  if (row == nullptr) row = static_cast<HoleRow*>(heap::arena_take(sizeof(HoleRow)));
  if (row == nullptr) return nullptr;
  if (!row->is_set_up) set_up_row(row);
  owner->rows.set(kind, row);
  return row;
}

}  // namespace jd::alloc

void (*const jd::world::thread_leaves)(Thread*, bool) = jd::alloc::leave;

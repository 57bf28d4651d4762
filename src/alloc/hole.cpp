#include "alloc/hole.hpp"

#include "alloc/collecting.hpp"
#include "alloc/refill.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "heap/arena.hpp"
#include "heap/blocks.hpp"
#include "heap/growable.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

constexpr std::uint16_t offset_of(unsigned size_class) {
  return static_cast<std::uint16_t>(size_class * sizeof(Hole));
}

constexpr HoleOffsets offsets_of(const heap::ClassTable& table) {
  HoleOffsets offsets{};
  for (std::size_t words = 0; words < table.size(); ++words)
    offsets[words] = offset_of(table[words]);
  return offsets;
}

// What a thread without pointer-free objects, or without a cache, allocates from: nothing, so that
// it comes to the slow path. Never written, because a take() that fails writes nothing.
constinit HoleRow unused_row{};
constexpr ThreadCache cache_without_thread() {
  ThreadCache none{};
  none.rows.set(heap::kAtomic, &unused_row);
  return none;
}
constinit ThreadCache no_cache = cache_without_thread();

// Under the heap's lock.
ThreadCache* caches = nullptr;
ThreadCache* free_caches = nullptr;
HoleRow* free_rows = nullptr;  // linked through the first hole's cursor

template <class Visit>
void for_each_hole_of(ThreadCache* owner, Visit visit) {
  owner->for_each_row([&visit](HoleRow* row, KindNumber kind) {
    row->for_each_used([&visit, kind](Hole& hole) {
      if (hole.block != heap::kNoBlock) visit(hole, kind);
    });
  });
}

template <class Visit>
void for_each_hole(Visit visit) {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    if (c->has_blocks) for_each_hole_of(c, visit);
  }
}

// The slots [from, to) of the hole's block, given by addresses.
struct SlotRange {
  heap::Block* block;
  unsigned from;
  unsigned to;
};

SlotRange slots_between(const Hole& hole, const char* from, const char* to) {
  heap::Block* block = &heap::space.blocks[hole.block];
  const Word start = heap::block_address(hole.block);
  return {block, static_cast<unsigned>((base::as_word(from) - start) / hole.slot_size()),
          static_cast<unsigned>((base::as_word(to) - start) / hole.slot_size())};
}

// Whoever sees a hole without a last slot has none claimed either.
template <class Change>
void change_claimed(const Hole& hole, Change change) {
  if (hole.claimed == 0) return;
  change(&heap::space.blocks[hole.block], hole.claimed_word(hole.end), hole.claimed);
}

template <class Change>
void change_bits(const SlotRange& slots, Change change) {
  for (unsigned w = slots.from / 64; w * 64 < slots.to; ++w) {
    change(slots.block, w, heap::bits_between(w, slots.from, slots.to));
  }
}

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
  for (MixedHole& hole : fresh->mixed) hole = {};
  fresh->rows.set(heap::kNormal, &fresh->normal);
  fresh->rows.set(heap::kAtomic, &unused_row);
  fresh->next = caches;
  fresh->previous = nullptr;
  if (caches != nullptr) caches->previous = fresh;
  caches = fresh;
  ++cache_count;
  thread->cache = fresh;
  cache = fresh;
  return fresh;
}

// Slots that were ready for a thread that is gone. Under the heap's lock.
heap::Growable<SlotRange> lost_slots;

void note_lost_slots(const Hole& hole) {
  // Without room for the note they are objects that die.
  static_cast<void>(lost_slots.push(slots_between(hole, hole.cursor, hole.limit)));
}

// Where gaps are kept, nobody allocates from what is left of a hole before its block is free: it
// counts as taken. Or threads that come and go would fill the heap, and no collection be due.
void count_rest(ThreadCache* gone, const MixedHole& hole) {
  if (!heap::sweep_policy.keep_gaps || hole.cursor == nullptr || hole.end < hole.limit) return;
  gone->count_taken(static_cast<std::size_t>(hole.end - hole.limit));
}

// For the next thread. The holes keep their counts of changes: who is in the middle of reading one
// must not meet the same count again.
void empty(HoleRow* row, bool is_gone) {
  row->for_each_used([row, is_gone](Hole& hole) {
    // Before the hole's block: a fork may have come when that was still in the reserve, too.
    Reserve& reserve = row->reserve_of(&hole);
    if (reserve.first != heap::kNoBlock) give_back_reserve(&reserve);
    reserve = {};
    if (hole.block == heap::kNoBlock) {
      // Taken back by a collection that stopped the thread in the middle of something.
      if (is_gone || hole.cursor != nullptr) hole.move_to(nullptr, nullptr, 0);
      return;
    }
    // Slots that were ready may have been handed out; those behind were not.
    if (is_gone && hole.cursor < hole.limit) {
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

// `is_gone`: the thread is not there any more, and may have been in the middle of an allocation.
// Slots that were ready stay allocated until the next collection finds them unmarked.
void leave(world::Thread* thread, bool is_gone) {
  auto* gone = static_cast<ThreadCache*>(thread->cache);
  if (gone == nullptr) return;
  thread->cache = nullptr;
  if (forget_typed != nullptr) forget_typed(gone, cache == gone);
  for (const MixedHole& hole : gone->mixed) count_rest(gone, hole);
  add_taken(gone);
  for (MixedHole& hole : gone->mixed) retire_mixed(&hole);
  gone->for_each_row([gone, is_gone](HoleRow* row, KindNumber kind) {
    gone->rows.set(kind, nullptr);
    empty(row, is_gone);
    if (row != &gone->normal && row != &unused_row) {
      row->holes[0].cursor = reinterpret_cast<char*>(free_rows);
      free_rows = row;
    }
  });
  (gone->previous == nullptr ? caches : gone->previous->next) = gone->next;
  if (gone->next != nullptr) gone->next->previous = gone->previous;
  gone->next = free_caches;
  free_caches = gone;
  --cache_count;
  if (cache == gone) cache = &no_cache;
}

}  // namespace

unsigned cache_count = 0;
constinit thread_local ThreadCache* cache = &no_cache;
constinit HoleOffsets hole_offset_of_words = offsets_of(heap::kCoarseClassOfWords);
void (*forget_typed)(ThreadCache* cache, bool own) = nullptr;

void use_classes(const heap::ClassTable& table) {
  for (std::size_t words = 0; words < table.size(); ++words) {
    __atomic_store_n(&hole_offset_of_words[words], offset_of(table[words]), __ATOMIC_RELAXED);
  }
}

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
    row->holes[0].cursor = nullptr;
  }
  if (row == nullptr) row = static_cast<HoleRow*>(heap::arena_take(sizeof(HoleRow)));
  if (row == nullptr) return nullptr;
  if (!row->is_set_up) set_up_row(row);
  owner->rows.set(kind, row);
  return row;
}

// Release: of what was a piece, the block's owner claims the slots without the lock, after they
// were cleared here.
void retire(Hole* hole) {
  heap::BlockExtra& extra = heap::space.extras[hole->block];
  if (hole->cursor < hole->end) {
    give_back_taken(static_cast<std::size_t>(hole->end - hole->cursor));
    change_bits(slots_between(*hole, hole->cursor, hole->end),
                [](heap::Block* b, unsigned w, std::uint64_t bits) {
                  base::note_block_atomic();
                  __atomic_fetch_and(&b->allocated[w], ~bits, __ATOMIC_RELEASE);
                });
  }
  change_claimed(*hole, [](heap::Block* b, unsigned w, std::uint64_t bits) {
    base::note_block_atomic();
    __atomic_fetch_and(&b->allocated[w], ~bits, __ATOMIC_RELEASE);
  });
  // What was a piece may be another's block by now, who leaves it without the lock.
  if (__atomic_load_n(&extra.owner, __ATOMIC_RELAXED) == hole) {
    __atomic_store_n(&extra.owner, nullptr, __ATOMIC_RELEASE);
    extra.free_slots = heap::count_free_slots(heap::space.blocks[hole->block]);
    forget_zeroes(&extra);
    heap::list_block(hole->block);
  }
  hole->move_to(nullptr, nullptr, 0);
  hole->block = heap::kNoBlock;
}

// In a stopped world, where only threads that no collection stops may read the word (GC_free's
// first look at an address).
static void set_word(heap::Block* block, unsigned w, std::uint64_t bits) {
  __atomic_store_n(&block->allocated[w], bits, __ATOMIC_RELAXED);
}

void hide_holes() {
  for_each_hole([](Hole& hole, KindNumber) {
    const auto hide = [](heap::Block* b, unsigned w, std::uint64_t bits) {
      set_word(b, w, b->allocated[w] & ~bits);
    };
    change_claimed(hole, hide);
    // The slot at the cursor may be in the hands of a thread that was stopped before it moved the
    // cursor, unless it is not ready to be handed out yet: then it still holds words of its past.
    char* first = hole.cursor < hole.limit ? hole.cursor + hole.slot_size() : hole.cursor;
    if (first < hole.end) change_bits(slots_between(hole, first, hole.end), hide);
  });
}

void drop_lost_slots() {
  for (const SlotRange& lost : lost_slots) {
    // By then the program may have freed all of a block, and it may be of another size.
    if (lost.block->state != heap::BlockState::Small || lost.to > lost.block->slots) continue;
    change_bits(lost, [](heap::Block* b, unsigned w, std::uint64_t bits) {
      set_word(b, w, b->allocated[w] & (~bits | b->marks[w]));
    });
  }
  lost_slots.clear();
}

// The sweep lists their blocks, or frees them. A hole's first refill after a collection takes as
// many as the hole used between this one and the one before, but at least half as many as the last
// refill: the period may just have ended early.
static void retire_reserves(ThreadCache* owner) {
  owner->for_each_row([](HoleRow* row, KindNumber) {
    row->for_each_used([row](const Hole& hole) {
      Reserve& reserve = row->reserve_of(&hole);
      if (reserve.taken == 0) return;
      unsigned left = 0;
      for (BlockNumber b = reserve.first; b != heap::kNoBlock; b = heap::space.extras[b].next) {
        heap::space.extras[b].owner = nullptr;
        ++left;
      }
      reserve.first = heap::kNoBlock;
      const unsigned taken = reserve.taken;
      const unsigned used = reserve.used + taken - base::min_of(taken, left);
      reserve.batch = static_cast<std::uint16_t>(base::max_of(used, taken / 2));
      reserve.taken = 0;
      reserve.used = 0;
    });
  });
  owner->reserved = 0;
}

void retire_idle_holes() {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    if (!c->has_blocks) continue;
    retire_reserves(c);
    bool some_stay = false;
    for_each_hole_of(c, [&some_stay](Hole& hole, KindNumber) {
      if (hole.cursor < hole.end) {
        const SlotRange slots = slots_between(hole, hole.cursor, hole.end);
        if (slots.block->is_allocated(slots.from) && slots.block->marked(slots.from)) {
          some_stay = true;
          return;
        }
      }
      retire(&hole);
    });
    c->has_blocks = some_stay;
  }
}

void show_holes() {
  for_each_hole([](Hole& hole, KindNumber) {
    const auto show = [](heap::Block* b, unsigned w, std::uint64_t bits) {
      set_word(b, w, b->allocated[w] | bits);
    };
    change_claimed(hole, show);
    if (hole.cursor >= hole.end) return;
    const SlotRange slots = slots_between(hole, hole.cursor, hole.end);
    if (heap::poison_freed && hole.cursor < hole.limit && !slots.block->marked(slots.from)) {
      // The sweep took the slot at the cursor for a dead object and poisoned it.
      base::clear_bytes(hole.cursor, hole.slot_size());
    }
    change_bits(slots, show);
  });
}

void unmark_mixed_holes() {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    for (const MixedHole& hole : c->mixed) heap::unmark_hole(hole);
  }
}

void leave_mixed_holes(bool (*may_leave)(BlockNumber number)) {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    for (MixedHole& hole : c->mixed) {
      if (hole.block != heap::kNoBlock && may_leave(hole.block)) retire_mixed(&hole);
    }
  }
}

void detach_disclaiming_holes() {
  for_each_hole([](Hole& hole, KindNumber kind) {
    if (heap::kinds[kind].disclaim == nullptr) return;
    // Until the deferred sweep, "marked" is what keeps a slot.
    const auto keep = [](heap::Block* b, unsigned w, std::uint64_t bits) {
      set_word(b, w, b->allocated[w] | bits);
      b->marks[w] |= bits;
    };
    if (hole.cursor < hole.end) change_bits(slots_between(hole, hole.cursor, hole.end), keep);
    change_claimed(hole, keep);
    heap::BlockExtra& extra = heap::space.extras[hole.block];
    if (extra.owner == &hole) extra.owner = nullptr;
  });
}

void visit_holes(void (*visit)(Hole* hole, KindNumber kind)) {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    for_each_hole_of(c, [c, visit](Hole& hole, KindNumber kind) {
      JD_CHECK(c->has_blocks, "a hole of a thread that is passed over");
      visit(&hole, kind);
    });
  }
}

void visit_reserves(void (*visit)(const Hole* hole, KindNumber kind, BlockNumber number)) {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    BlockNumber count = 0;
    for (unsigned kind = 0; kind < heap::kind_count; ++kind) {
      HoleRow* row = c->rows[kind];
      if (row == nullptr) continue;
      for (const Hole& hole : row->holes) {
        const bool is_seen = hole.block == heap::kNoBlock || row->is_used(&hole);
        JD_CHECK(is_seen, "a hole that is passed over");
        BlockNumber b = row->reserve_of(&hole).first;
        for (; b != heap::kNoBlock; b = heap::space.extras[b].next) {
          visit(&hole, static_cast<KindNumber>(kind), b);
          ++count;
        }
      }
    }
    JD_CHECK(count == c->reserved, "a thread has other blocks in reserve than it has counted");
  }
}

std::size_t left_in_holes() {
  std::size_t left = 0;
  for (const ThreadCache* c = caches; c != nullptr; c = c->next) {
    if (!c->has_blocks) continue;
    c->for_each_row([&left](HoleRow* row, KindNumber) {
      row->for_each_used([&left](const Hole& hole) {
        // Its thread may be changing it: the two may be of different blocks.
        const Word cursor = base::as_word(__atomic_load_n(&hole.cursor, __ATOMIC_RELAXED));
        const Word end = base::as_word(__atomic_load_n(&hole.end, __ATOMIC_RELAXED));
        if (cursor < end) left += base::min_of(end - cursor, Word{heap::kBlockSize});
      });
    });
  }
  return left;
}

void settle_totals() {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) add_taken(c);
}

void begin_shares() {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) c->taken_at_gc = c->counted;
}

Shares shares_since_gc() {
  Shares shares{};
  for (const ThreadCache* c = caches; c != nullptr; c = c->next) {
    const std::size_t taken = c->counted - c->taken_at_gc;
    shares.all += taken;
    shares.largest = base::max_of(shares.largest, taken);
  }
  return shares;
}

}  // namespace jd::alloc

void (*const jd::world::thread_leaves)(Thread*, bool) = jd::alloc::leave;

// What a collection does to holes (docs/design/alloc.md, "Holes and collections").
#include "alloc/collecting.hpp"

#include "alloc/cache.hpp"
#include "alloc/refill.hpp"
#include "alloc/slots.hpp"
#include "heap/blocks.hpp"
#include "heap/growable.hpp"
#include "os/log.hpp"

namespace jd::alloc {
namespace {

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

// Slots that were ready for a thread that is gone. Under the heap's lock.
struct LostSlots {
  SlotRange range;
  KindNumber kind;
};
heap::Growable<LostSlots> lost_slots;

}  // namespace

void note_lost_slots(const Hole& hole) {
  // Without room for the note they are objects that die.
  const SlotRange range = slots_between(hole, hole.cursor, hole.limit);
  static_cast<void>(lost_slots.push({range, range.block->kind}));
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
  for (const LostSlots& lost : lost_slots) {
    // By then the program may have freed all of a block, and it may be of another size, or of a
    // kind whose objects have to be asked before they go.
    const heap::Block& block = *lost.range.block;
    const bool is_the_same = block.state == heap::BlockState::Small && block.kind == lost.kind &&
                             lost.range.to <= block.slots;
    if (!is_the_same) continue;
    change_bits(lost.range, [](heap::Block* b, unsigned w, std::uint64_t bits) {
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

void unmark_mixed_holes() {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    for (const MixedHole& hole : c->mixed) heap::unmark_hole(hole);
  }
}

void show_holes() {
  unmark_mixed_holes();
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

void leave_mixed_holes(bool (*may_leave)(BlockNumber number)) {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) {
    for (MixedHole& hole : c->mixed) {
      if (hole.block != heap::kNoBlock && may_leave(hole.block)) leave_block_with_gaps(&hole);
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

}  // namespace jd::alloc

// The slow path of allocation: clearing ahead (alloc.req.clear), the next hole in the block, the
// next block.
#include "alloc/refill.hpp"

#include "alloc/collecting.hpp"
#include "alloc/magazine.hpp"
#include "alloc/pacer.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "base/sharing.hpp"
#include "heap/blocks.hpp"
#include "heap/walk.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "world/thread.hpp"

namespace jd::alloc {
namespace {

using heap::Block;
using heap::heap_lock;
using heap::kNoBlock;
using heap::space;
using os::LockGuard;

// What a reading of the clock takes, in its ticks. Set at the start.
std::uint64_t clock_cost = 0;

std::uint64_t clock_cost_measured() {
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t before = os::ticks();
    least = base::min_of(least, os::ticks() - before);
  }
  return least;
}

// Adds the time until its end to a total, if that is asked for.
class Timer {
 public:
  explicit Timer(std::atomic<std::uint64_t>* total)
      : total_(time_refills ? total : nullptr), began_(time_refills ? os::ticks() : 0) {}
  ~Timer() {
    if (total_ == nullptr) return;
    const std::uint64_t took = os::ticks() - began_;
    if (took > clock_cost) total_->fetch_add(took - clock_cost, std::memory_order_relaxed);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  std::atomic<std::uint64_t>* total_;
  std::uint64_t began_;
};

// What will be cleared next is on its way while the program uses what was cleared now.
void fetch_to_write(const char* first, const char* end) {
  end = base::min_of(end, first + clear_ahead);
  for (const char* line = first; line < end; line += base::kLine) __builtin_prefetch(line, 1, 3);
}

// Makes the slots from the cursor on ready to be handed out: as many as are cleared at a time. Pre:
// `zeroed` if they are zero already.
void prepare(Hole* hole, const heap::Kind& kind, bool zeroed) {
  const bool clear = (kind.clear || kind.clear_reclaimed) && !zeroed;
  const auto room = static_cast<std::size_t>(hole->end - hole->cursor);
  std::size_t ready = room;
  if (every_allocation_is_slow) {
    ready = hole->slot_size();
  } else if (clear && room > clear_ahead) {
    ready = base::max_of(clear_ahead / hole->slot_size(), std::size_t{1}) * hole->slot_size();
  }
  if (clear) {
    const Timer timer(&refill_ticks.clearing);
    clear_slots(hole->cursor, ready);
    // Slot by slot, the same lines would be asked for again and again.
    if (!every_allocation_is_slow) fetch_to_write(hole->cursor + ready, hole->end);
  } else if (!kind.clear && heap::begins_with_zero(kind)) {
    for (std::size_t at = 0; at < ready; at += hole->slot_size()) {
      base::clear_bytes(hole->cursor + at, sizeof(base::Word));
    }
  }
  hole->limit = hole->cursor + ready;
}

// Notes, until its end, what slots of the hole's block are claimed meanwhile (Claim).
class NotedClaim {
 public:
  NotedClaim(ThreadCache* owner, const Hole& hole, const Block& block) : claim_(nullptr) {
    if (__builtin_expect(!__atomic_load_n(&heap::some_disclaim, __ATOMIC_RELAXED), 1)) return;
    if (heap::kinds[block.kind].disclaim == nullptr) return;
    claim_ = &owner->claim;
    for (unsigned w = 0; w < block.bit_words(); ++w) {
      claim_->before[w] = __atomic_load_n(&block.allocated[w], __ATOMIC_RELAXED);
    }
    if (hole.claimed != 0) claim_->before[Hole::claimed_word(hole.end)] &= ~hole.claimed;
    __atomic_store_n(&claim_->block, hole.block, __ATOMIC_RELEASE);
  }
  ~NotedClaim() {
    if (__builtin_expect(claim_ == nullptr, 1)) return;
    __atomic_store_n(&claim_->block, kNoBlock, __ATOMIC_RELEASE);
  }
  NotedClaim(const NotedClaim&) = delete;
  NotedClaim& operator=(const NotedClaim&) = delete;

 private:
  Claim* claim_;
};

// Claims all slots of a block in which there is no object. Nobody can free one there meanwhile, so
// plain stores will do. False if there are objects.
bool claim_whole(Block* block) {
  const unsigned words = block->bit_words();
  for (unsigned w = 0; w < words; ++w) {
    // Acquire: as Block::claim.
    if (__atomic_load_n(&block->allocated[w], __ATOMIC_ACQUIRE) != 0) return false;
  }
  for (unsigned w = 0; w < words; ++w) {
    __atomic_store_n(&block->allocated[w], heap::bits_between(w, 0, block->slots),
                     __ATOMIC_RELAXED);
  }
  return true;
}

// Finds the next free slots in the hole's block, behind the hole, and makes them the hole. False
// if there are none.
bool next_hole(ThreadCache* owner, Hole* hole) {
  const Timer timer(&refill_ticks.finding);
  Block& block = space.blocks[hole->block];
  char* const start = base::as_pointer(heap::block_address(hole->block));
  const unsigned behind = block.slot_of(static_cast<std::size_t>(hole->end - start));
  const unsigned words = block.bit_words();
  const NotedClaim noted(owner, *hole, block);
  // Others may be freeing slots of the word at the same time.
  const auto claim = [&block](unsigned w, std::uint64_t bits) {
    base::note_block_atomic();
    block.claim(w, bits);
  };
  if (behind == 0 && claim_whole(&block)) {
    hole->move_to(start, start + std::size_t{block.slots} * hole->slot_size(), 0);
    owner->count_taken(static_cast<std::size_t>(hole->end - hole->cursor));
    return true;
  }
  unsigned w = behind / 64;
  std::uint64_t free = hole->claimed;
  if (free != 0) {
    w = (behind - 1) / 64;
  } else {
    if (w >= words) return false;
    free = heap::free_slots(block, w) & (~std::uint64_t{0} << (behind % 64));
    while (free == 0) {
      if (++w == words) return false;
      free = heap::free_slots(block, w);
    }
    claim(w, free);
  }
  const unsigned first = base::lowest_bit(free);
  const unsigned from = w * 64 + first;
  // The first bit behind the run; 64: it goes on in the next word, if that begins with a free slot.
  unsigned end = base::lowest_zero(free | ((std::uint64_t{1} << first) - 1));
  while (end == 64 && ++w < words) {
    free = heap::free_slots(block, w);
    if ((free & 1) == 0) {
      free = 0;
      break;
    }
    claim(w, free);
    end = base::lowest_zero(free);
  }
  // Where the run ended with its word, the next one is either beyond the block or begins taken.
  const bool within = end < 64;
  const unsigned to = within ? w * 64 + end : base::min_of(w * 64, unsigned{block.slots});
  const std::uint64_t rest = within ? free & (~std::uint64_t{0} << end) : 0;
  // Where every slot is a hole of its own, the next one comes on its way.
  if (rest != 0) {
    const char* next = start + (std::size_t{w} * 64 + base::lowest_bit(rest)) * hole->slot_size();
    __builtin_prefetch(next, 1, 3);
    __builtin_prefetch(next + hole->slot_size() - 1, 1, 3);
  }
  hole->move_to(start + std::size_t{from} * hole->slot_size(),
                start + std::size_t{to} * hole->slot_size(), rest);
  owner->count_taken(static_cast<std::size_t>(hole->end - hole->cursor));
  return true;
}

// The nearest hole of the row for slots that are larger, but of no more than so many bytes, which
// has some, or a listed block that it may go on to. Null if there is none. Pre: the lock is held.
Hole* larger_hole(const Refill& refill, std::size_t bytes, std::size_t most) {
  for (unsigned size = heap::class_for(bytes) % heap::kFirstFullClass;
       ++size < heap::kFirstFullClass && heap::slot_size_of(size) <= most;) {
    for (const unsigned size_class : {size, size + heap::kFirstFullClass}) {
      Hole* hole = &refill.row->holes[size_class];
      if (hole == refill.hole) continue;
      if (hole->cursor < hole->end || !heap::listed_blocks(refill.kind, size_class).is_empty())
        return hole;
    }
  }
  return nullptr;
}

// A piece or blocks of what the heap has now; if that is nothing, after the thread's magazines have
// gone back to it. False if there is nothing then. Pre: the lock is held.
bool take_from_heap(const Refill& refill, Kept kept) {
  do {
    if (wants_piece(refill) && take_piece(refill, kept)) return true;
    const BlockNumber number = take_blocks(refill, kept);
    if (number != kNoBlock) {
      move_to_block(refill.hole, number);
      return true;
    }
  } while (give_back_magazines(refill.owner));
  return false;
}

}  // namespace

RefillTicks refill_ticks;
bool time_refills = false;

void start_timing_refills() {
  clock_cost = clock_cost_measured();
  time_refills = true;
}

bool refill_from_blocks(const Refill& refill) {
  Hole* const hole = refill.hole;
  JD_DCHECK(hole->cursor <= hole->end);
  if (hole->cursor == hole->end) {
    if (hole->block == kNoBlock) return false;
    if (__atomic_load_n(&space.extras[hole->block].owner, __ATOMIC_RELAXED) != hole) return false;
    while (!next_hole(refill.owner, hole)) {
      if (!move_to_reserved_block(refill)) return false;
    }
  }
  heap::BlockExtra& extra = space.extras[hole->block];
  // What is said of another's block changes under our hands.
  const bool is_own = __atomic_load_n(&extra.owner, __ATOMIC_RELAXED) == hole;
  prepare(hole, heap::kinds[refill.kind], is_own && extra.zeroed);
  // Of clean pages, all is ready now; what is freed there from now on is not zero.
  if (is_own) forget_zeroes(&extra);
  return true;
}

bool next_block(Refill* refill, std::size_t bytes, bool may_be_larger) {
  // Times the slot, before a collection that nothing but the want of a block calls for, unless one
  // has just found little. A guess.
  constexpr std::size_t kMostBefore = 2;
  os::clear_stack_below();
  LockGuard guard(heap_lock);
  add_taken(refill->owner);
  if (refill->hole->block != kNoBlock) retire(refill->hole);
  if (__builtin_expect(collection_waits, 0)) pacer.catch_up();
  const auto go_to_larger = [&](std::size_t most) {
    Hole* larger = may_be_larger ? larger_hole(*refill, bytes, most) : nullptr;
    if (larger != nullptr) refill->hole = larger;
    return larger != nullptr;
  };
  if (take_from_heap(*refill, Kept::Stay)) return true;
  const std::size_t most =
      pacer.found_little() ? heap::kMaxSmall : kMostBefore * refill->hole->slot_size();
  if (!pacer.has_room() && go_to_larger(most)) return true;
  static_cast<void>(pacer.make_room(1, 0));
  if (pacer.ends_in_vain()) return false;
  for (unsigned attempt = 1;; ++attempt) {
    if (take_from_heap(*refill, Kept::MayGo)) return true;
    if (!pacer.make_room(1, attempt)) return go_to_larger(heap::kMaxSmall);
  }
}

}  // namespace jd::alloc

// Blocks in reserve (docs/design/alloc.md, "Blocks in reserve"): a thread takes several blocks at a
// time, so that it seldom needs the heap's lock.
#include "alloc/magazine.hpp"
#include "alloc/pacer.hpp"
#include "alloc/refill.hpp"
#include "alloc/settings.hpp"
#include "alloc/totals.hpp"
#include "heap/blocks.hpp"
#include "heap/runs.hpp"
#include "heap/snapshot.hpp"
#include "heap/sweep.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"

namespace jd::alloc {
namespace {

using heap::Block;
using heap::BlockExtra;
using heap::kNoBlock;
using heap::space;

// 8 MiB. With 16-byte objects a million fill 1044 blocks, with 32-byte ones 1954.
constexpr unsigned kMostBatch = 512;
// While a collection is under way in steps, which come where threads take blocks: 256 KiB. A guess.
constexpr unsigned kMostBatchBetweenSteps = 16;
// What is in reserve, another can't have. All threads' reserves together are about this part of
// what the heap has beyond kSmallHeap, 2 MiB, at most (more while threads come that have not been
// counted), but of each thread no more than kMostShared, 2 MiB: what is in reserve for sizes that
// are seldom asked for is taken anew from what is free, which spreads those that live over more
// blocks. Those of a thread that allocates alone are a part of the whole heap
// (docs/design/alloc.md, "Blocks in reserve").
constexpr BlockNumber kHeapShare = 2;
constexpr BlockNumber kSmallHeap = 128;
constexpr BlockNumber kMostShared = 128;
constexpr BlockNumber kLoneShare = 4;
// Of the free blocks, this part counts as there for other threads (most_listed). All of them and an
// eighth were measured, too (docs/design/alloc-measured.md, "Reserves and the heap's size").
constexpr BlockNumber kFreeShare = 4;
// Where much is freed by hand, a thread may have so small a part of that (a guess): no collection
// takes back what is in reserve then, and what was freed is to be used first.
constexpr BlockNumber kHandShare = 16;

// A thread shares the heap that took blocks in one of so many periods, which lie between
// collections. Where there are more threads than processors, each may be alone for some of them
// (docs/design/alloc-measured.md, "Reserves and the heap's size"). All under the heap's lock.
constexpr std::uint64_t kPeriods = 8;
std::uint64_t period = kPeriods;
unsigned sharing_threads = 0;

bool shares_heap(const ThreadCache* owner) { return period - owner->refilled_in < kPeriods; }

void note_refill(ThreadCache* owner) {
  if (!shares_heap(owner)) ++sharing_threads;
  owner->refilled_in = period;
}

// A thread's part of what may be in reserve, where all take that allocate.
BlockNumber share_of_heap(unsigned threads) {
  if (threads == 1) return space.committed / kLoneShare;
  if (space.committed <= kSmallHeap) return 0;
  return base::min_of((space.committed - kSmallHeap) / (kHeapShare * threads), kMostShared);
}

// Blocks that a thread may have in reserve.
BlockNumber most_reserved() {
  const BlockNumber most = share_of_heap(sharing_threads);
  return program_frees_by_hand() ? most / kHandShare : most;
}

// How many of the blocks that are listed for a hole it may have: its thread's part, or as many as
// there are free blocks for each of the others. Without either, these would have the heap grow,
// while what is free in it lies in reserve.
BlockNumber most_listed(BlockNumber listed) {
  return base::min_of(listed,
                      base::max_of(listed, heap::free_blocks() / kFreeShare) / sharing_threads);
}

// As find_block, its owner already the hole.
BlockNumber take_block(const Refill& refill, Kept kept) {
  const BlockNumber number = find_block(refill, kept);
  if (number == kNoBlock) return kNoBlock;
  __atomic_store_n(&space.extras[number].owner, refill.hole, __ATOMIC_RELEASE);
  return number;
}

// Leaves the hole's block, which has no slots for its thread any more. False if others have freed
// so much in it that it belongs on a list, which takes the lock.
bool leave_used_block(Hole* hole) {
  const Block& block = space.blocks[hole->block];
  BlockExtra& extra = space.extras[hole->block];
  const std::uint16_t free = heap::count_free_slots(block);
  if (!heap::nearly_full(block, free)) return false;
  extra.free_slots = free;
  // Release: whoever sees that nobody owns it may change what was written here, under the lock.
  __atomic_store_n(&extra.owner, nullptr, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

void forget_zeroes(BlockExtra* extra) {
  // Freed slots are cleared where sweeping is eager.
  if (!heap::sweep_policy.eager) extra->zeroed = false;
}

BlockNumber find_block(const Refill& refill, Kept kept) {
  const unsigned size_class = refill.size_class();
  const BlockNumber listed = heap::take_listed_block(refill.kind, size_class);
  if (listed != kNoBlock) return listed;
  if (kept == Kept::Stay && (heap::only_kept_runs_left() || pacer.collects_first())) {
    return kNoBlock;
  }
  return heap::make_small_block(refill.kind, size_class);
}

void move_to_block(Hole* hole, BlockNumber number) {
  char* const start = base::as_pointer(heap::block_address(number));
  hole->block = number;
  hole->move_to(start, start, 0);
}

bool move_to_reserved_block(const Refill& refill) {
  Hole* const hole = refill.hole;
  Reserve& reserve = refill.reserve();
  const BlockNumber number = reserve.first;
  if (number == kNoBlock || !leave_used_block(hole)) return false;
  // In this order for the child of a fork that comes in between (leave): the hole has no slot until
  // the block is its own, and the block is in the reserve or the hole's, or both.
  hole->move_to(hole->end, hole->end, 0);
  hole->block = number;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  __atomic_store_n(&reserve.first, space.extras[number].next, __ATOMIC_RELAXED);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  move_to_block(hole, number);
  --refill.owner->reserved;
  return true;
}

BlockNumber take_blocks(const Refill& refill, Kept kept) {
  ThreadCache* const owner = refill.owner;
  owner->has_blocks = true;
  refill.row->note_used(refill.hole);
  Reserve& reserve = refill.reserve();
  reserve.pieces = kMostPieces;
  if (reserve.first != kNoBlock) {
    // Others free objects of this size. What they free is to be used again soon, by anybody.
    owner->reserved -= give_back_reserve(&reserve);
    reserve.batch = 0;
  }
  const BlockNumber number = take_block(refill, kept);
  if (number == kNoBlock && give_back_reserves(owner)) {
    // These are the last ones: as many as are needed.
    return take_block(refill, kept);
  }
  if (number == kNoBlock || every_allocation_is_slow) return number;
  note_refill(owner);
  const BlockNumber share = most_reserved();
  BlockNumber listed = heap::listed_blocks(refill.kind, refill.size_class()).count();
  const BlockNumber left = listed - most_listed(listed);
  BlockNumber* link = &reserve.first;
  const unsigned most = heap::marking_in_steps ? kMostBatchBetweenSteps : kMostBatch;
  unsigned taken = 0;
  while (taken < reserve.batch && taken < most && owner->reserved < share) {
    if (listed != 0 && listed-- == left) break;
    const BlockNumber more = take_block(refill, Kept::Stay);
    if (more == kNoBlock) break;
    *link = more;
    link = &space.extras[more].next;
    ++taken;
    ++owner->reserved;
  }
  *link = kNoBlock;
  reserve.used =
      static_cast<std::uint16_t>(base::min_of(reserve.used + reserve.taken + 1u, kMostBatch));
  reserve.taken = static_cast<std::uint16_t>(taken);
  reserve.batch = static_cast<std::uint16_t>(base::min_of(2 * taken + 1, kMostBatch));
  return number;
}

bool give_back_reserves(ThreadCache* owner) {
  if (owner->reserved == 0) return false;
  owner->for_each_row([](HoleRow* row, KindNumber) {
    for (Reserve& reserve : row->reserves) {
      if (reserve.first == kNoBlock) continue;
      give_back_reserve(&reserve);
      reserve.batch /= 2;
    }
  });
  owner->reserved = 0;
  return true;
}

bool give_back_unused(ThreadCache* owner) {
  return give_back_reserves(owner) || give_back_magazines(owner);
}

void begin_period() {
  ++period;
  sharing_threads = 0;
  for (const ThreadCache* c = caches; c != nullptr; c = c->next) sharing_threads += shares_heap(c);
}

void forget_refills(const ThreadCache* gone) { sharing_threads -= shares_heap(gone); }

BlockNumber give_back_reserve(Reserve* reserve) {
  BlockNumber count = 0;
  BlockNumber number = reserve->first;
  reserve->first = kNoBlock;
  while (number != kNoBlock) {
    BlockExtra& extra = space.extras[number];
    const BlockNumber next = extra.next;
    const Block& block = space.blocks[number];
    extra.free_slots = heap::count_free_slots(block);
    forget_zeroes(&extra);
    __atomic_store_n(&extra.owner, nullptr, __ATOMIC_RELEASE);
    if (extra.free_slots == block.slots) {
      heap::release_block(number);
    } else {
      heap::list_block(number);
    }
    number = next;
    ++count;
  }
  return count;
}

}  // namespace jd::alloc

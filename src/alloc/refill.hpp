// Between the slow path and the holes. Not for other rooms.
#pragma once

#include "alloc/cache.hpp"
#include "world/thread.hpp"

namespace jd::alloc {

// A hole that is to be refilled, and whose it is.
struct Refill {
  ThreadCache* owner;
  HoleRow* row;
  Hole* hole;  // of the row
  KindNumber kind;

  [[nodiscard]] unsigned size_class() const { return static_cast<unsigned>(hole - row->holes); }
  [[nodiscard]] Reserve& reserve() const { return row->reserve_of(hole); }
};

// Gives the rest of a hole back and leaves its block. Pre: the heap's lock is held, and the hole's
// thread is the caller, stopped, or gone.
void retire(Hole* hole);

// The thread's cache, which it gets with its first small object. Null when memory has run out. Pre:
// it is the calling thread; the lock is not held.
ThreadCache* own_cache(world::Thread* thread);

// The row for a kind that the thread has not used yet, set up. Null when memory has run out. Pre:
// lock held.
HoleRow* make_row(ThreadCache* owner, KindNumber kind);

// Scattered slots are short, and a call of memset takes longer than clearing them; so does a loop,
// whose end is guessed wrong. From both ends, stores overlap. Pre: both are multiples of the
// granule, and there are some bytes.
inline void clear_slots(char* first, std::size_t bytes) {
  constexpr std::size_t kGranule = heap::kGranule;
  constexpr std::size_t kShort = 8 * kGranule;
  if (bytes > kShort) return base::clear_bytes(first, bytes);
  char* const last = first + bytes - kGranule;
  base::clear_bytes(first, kGranule);
  base::clear_bytes(last, kGranule);
  if (bytes <= 2 * kGranule) return;
  base::clear_bytes(first + kGranule, kGranule);
  base::clear_bytes(last - kGranule, kGranule);
  if (bytes <= 4 * kGranule) return;
  base::clear_bytes(first + 2 * kGranule, 2 * kGranule);
  base::clear_bytes(last - 3 * kGranule, 2 * kGranule);
}

// Leaves the hole's block. If that has gaps that are worth it, others may allocate from them. As
// retire.
void leave_block_with_gaps(MixedHole* hole);

// Notes the slots that were ready in a hole whose thread is gone, for drop_lost_slots. Pre: the
// lock is held.
void note_lost_slots(const Hole& hole);

// --- More slots for a hole (refill.cpp) ----------------------------------------------------------

// Makes some more slots ready, of the hole's block or the next in its reserve. False if there are
// no more. Pre: within a NoStop section; nothing is ready.
bool refill_from_blocks(const Refill& refill);

// Leaves the hole's block for another with free slots, collecting or growing if there is none.
// Where the heap has no room, the hole becomes one of larger slots (docs/design/alloc.md, "At the
// limit"), if that may be: so many bytes are wanted. False when memory has run out. Pre: the lock
// is not held.
bool next_block(Refill* refill, std::size_t bytes, bool may_be_larger);

// --- Blocks in reserve (reserve.cpp) -------------------------------------------------------------

// What becomes of free runs that are kept for large objects (heap::kept_runs).
enum class Kept : std::uint8_t { Stay, MayGo };

// The next block for objects of the hole's sort that is to be had without collecting or growing; on
// no list, and nobody's yet. kNoBlock if there is none. Pre: the lock is held.
BlockNumber find_block(const Refill& refill, Kept kept);

// Makes the block, which is the hole's, its place. Nothing of it is ready to be handed out.
void move_to_block(Hole* hole, BlockNumber number);

// The hole goes on in the next block of its reserve. False if there is none, or if the block that
// it leaves has to be listed. Pre: within a NoStop section; the hole owns its block and has used it
// up.
bool move_to_reserved_block(const Refill& refill);

// A block for the hole, which is its owner from now on, and more for its reserve. kNoBlock if none
// is to be had without collecting or growing. Pre: the lock is held; the hole has left its block.
BlockNumber take_blocks(const Refill& refill, Kept kept);

// Empties it; its blocks are listed or freed. Returns how many there were, for the cache's count.
// Pre: as for retire.
BlockNumber give_back_reserve(Reserve* reserve);

// All of the thread's, before the heap grows: it has them for objects of other sizes. False if
// there were none. Pre: the lock is held, by this thread.
bool give_back_reserves(ThreadCache* owner);

// Gives back what the thread keeps for other sizes: its reserves or, where it has none, its
// magazines. False if there was nothing; else the heap may have room now. As give_back_reserves.
bool give_back_unused(ThreadCache* owner);

// Nobody looks any more after what is freed in the block: it need not stay zero.
void forget_zeroes(heap::BlockExtra* extra);

// --- Pieces of blocks (piece.cpp) ----------------------------------------------------------------

inline constexpr std::uint16_t kMostPieces = 5;

// Should the hole get a piece of a block that others allocate from, too? Pre: the lock is held.
bool wants_piece(const Refill& refill);

// Gives it one, of which nothing is ready to be handed out. False if no block for it is to be had
// without collecting or growing. Pre: as for take_blocks; wants_piece.
bool take_piece(const Refill& refill, Kept kept);

// --- Objects in runs of blocks (large.cpp) -------------------------------------------------------

// Whether an object may share its run with others.
enum class Run : std::uint8_t { Own, MayBeShared };

// The bytes that such an object would have, if there is room for it of its own class; likewise.
std::size_t size_in_run(std::size_t bytes);

// One of more than kMaxSmall bytes, or aligned to more. Null when memory has run out. Pre: the
// thread is registered; the lock is not held.
void* allocate_in_run(std::size_t bytes, std::size_t alignment, KindNumber kind, Run run);

// --- Threads that share the heap (reserve.cpp). Pre: the lock is held. ---------------------------

// A new period between two collections begins.
void begin_period();

// Before the thread's cache is nobody's.
void forget_refills(const ThreadCache* gone);

}  // namespace jd::alloc

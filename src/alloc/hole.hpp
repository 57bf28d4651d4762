// Holes, from which threads allocate, and rows of them: one for each size.
//
// A thread allocates by moving a cursor through a hole, a row of free slots in a block that it
// owns, or in a piece of one that others use as well (alloc/piece.cpp). Nothing is threaded through
// free memory, and memory is cleared a few KiB ahead of the cursor, while it is about to be used
// anyway (docs/design/alloc.md, "Clearing ahead").
//
// Requirements (docs/design/alloc.md): alloc.req.fast — the fast path (take) is a load of the
// cursor, an addition, a comparison with the limit, a store; alloc.req.stop — a thread stopped
// between the load and the store loses nothing: its hole stays its own through every collection.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/kinds.hpp"
#include "heap/size_class.hpp"
#include "heap/space.hpp"

namespace jd::alloc {

using heap::BlockNumber;
using heap::KindNumber;
using heap::Word;

namespace detail {

// A fence between relaxed accesses of atomic words.
inline void fence(std::memory_order order) {
#if defined(JD_SANITIZE_THREAD)
  // g++ refuses the other one here. Nothing is lost: the words are atomic, and so never race.
  static_cast<void>(order);
  __sync_synchronize();
#else
  std::atomic_thread_fence(order);
#endif
}

}  // namespace detail

struct Magazine;  // alloc/magazine.hpp

// Written by its thread: the cursor at any time, the rest only within a NoStop section or under the
// heap's lock. Read by the collector in a stopped world, and by threads that free objects of its
// block (contains_slot). Slots in [cursor, end), and those in `claimed`, have their allocated bits
// set, so that nobody else takes them.
struct Hole {
  char* cursor;  // the next slot
  char* limit;   // slots below it are ready to be handed out
  char* end;     // one past the hole's last slot
  // A slot's size less one. So the fast path fails in a row of zeroes, of which nothing was used.
  std::uint16_t last_byte;
  // Counts the changes of place, odd in the middle of one (move_to).
  std::uint16_t changes;
  // Where the hole is; kNoBlock: there is none, and cursor = end. Of a piece that is used up it
  // means nothing any more.
  BlockNumber block;
  // Free slots behind the hole that are its thread's, too: bits of the allocated word that its last
  // slot is in. So a word of scattered slots costs one atomic instruction, not one a slot.
  std::uint64_t claimed;
  // Slots of this size that the thread freed. Null until it frees the first. Written by
  // its thread, under the heap's lock.
  Magazine* magazine;

  [[nodiscard]] std::size_t slot_size() const { return std::size_t{last_byte} + 1; }

  // The next slot, or null: then the slow path has to find one.
  void* take() {
    char* slot = __atomic_load_n(&cursor, __ATOMIC_RELAXED);
    // The cursor first: a thread stopped between the two loads keeps its hole only because the
    // slot's address is in a register. With the limit first, it could go on with the limit of a
    // hole that was given back, and a null cursor.
    std::atomic_signal_fence(std::memory_order_acquire);
    char* next = slot + slot_size();
    if (__builtin_expect(next > limit, 0)) return nullptr;
    __atomic_store_n(&cursor, next, __ATOMIC_RELAXED);
    // The limit is above it, so it is an address; callers need not look again.
    if (slot == nullptr) __builtin_unreachable();
    return slot;
  }

  // Changes the place: [from, to), of which nothing is ready to be handed out, and what is claimed
  // behind it. Within a NoStop section of the hole's thread, or under the lock while that can't
  // run.
  void move_to(char* from, char* to, std::uint64_t more) {
    const std::uint16_t before = changes;
    __atomic_store_n(&changes, static_cast<std::uint16_t>(before + 1), __ATOMIC_RELAXED);
    // Pairs with the fence in contains_slot: whoever sees one of these stores sees the odd count.
    detail::fence(std::memory_order_release);
    __atomic_store_n(&cursor, from, __ATOMIC_RELAXED);
    __atomic_store_n(&limit, from, __ATOMIC_RELAXED);
    __atomic_store_n(&end, to, __ATOMIC_RELAXED);
    __atomic_store_n(&claimed, more, __ATOMIC_RELAXED);
    __atomic_store_n(&changes, static_cast<std::uint16_t>(before + 2), __ATOMIC_RELEASE);
  }

  // The allocated word that `claimed` belongs to, for a hole that ends there; it has a last slot.
  [[nodiscard]] static unsigned claimed_word(const char* hole_end) {
    const Word last = base::as_word(hole_end) - 1;
    const heap::Block& in = heap::space.blocks[heap::block_number(last)];
    return in.slot_of(last % heap::kBlockSize) / 64;
  }

  // For any thread: is the address, the slot of this number in a block that is the hole's, one that
  // was not handed out yet? False also when the hole is just changing its place; never true for an
  // object that the caller was given (on AArch64, in a way that makes an order: a bare store of its
  // address may be seen before the cursor's).
  [[nodiscard]] bool contains_slot(const heap::Block& in, const void* slot, unsigned number) const {
    const std::uint16_t before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
    const unsigned is_ours = holds(in, slot, number);
    detail::fence(std::memory_order_acquire);
    const auto after = __atomic_load_n(&changes, __ATOMIC_RELAXED);
    return (is_ours & unsigned{before % 2 == 0} & unsigned{after == before}) != 0;
  }

  // The same of a hole that is not changing its place, or else the answer means nothing: 1 or 0.
  // Without branches, which nothing could foretell.
  [[nodiscard]] unsigned holds(const heap::Block& in, const void* slot, unsigned number) const {
    // The cursor's moves within the hole are not counted: they only take slots away.
    const char* first = __atomic_load_n(&cursor, __ATOMIC_RELAXED);
    const char* last = __atomic_load_n(&end, __ATOMIC_RELAXED);
    const std::uint64_t more = __atomic_load_n(&claimed, __ATOMIC_RELAXED);
    const unsigned is_ahead = unsigned{slot >= first} & unsigned{slot < last};
    // By then the hole may be in another block; what `block` says is not covered by the count.
    const Word end_word = base::as_word(last) - 1;
    const unsigned is_near =
        unsigned{((end_word ^ base::as_word(slot)) >> heap::kBlockShift) == 0} &
        unsigned{in.slot_of(end_word % heap::kBlockSize) / 64 == number / 64};
    const unsigned is_claimed = static_cast<unsigned>(more >> (number % 64)) & is_near;
    return (is_ahead | is_claimed) & 1;
  }
};
static_assert(sizeof(Hole) == 48);

// What the hole gets next. First, blocks that it goes on to, when its own is used up, without the
// lock: they are linked by BlockExtra::next, and the hole is their owner. Written as the hole is.
struct Reserve {
  BlockNumber first;
  // How many the next refill takes beside the hole's own block, if there are so many; how many the
  // last one took; and how many those before it did since the last collection.
  std::uint16_t batch;
  std::uint16_t taken;
  std::uint16_t used;
  // How many pieces of blocks it had; kMostPieces: it gets blocks from now on (alloc/piece.cpp).
  // Under the lock.
  std::uint16_t pieces;
};

// The holes of one kind, a hole for each size class. All zeroes until its thread first needs a slot
// of the kind: then it is set up (set_up_row), and stays so.
struct HoleRow {
  Hole holes[heap::kSizeClasses];
  Reserve reserves[heap::kSizeClasses];
  // A bit for each hole that has had a block since the row came to its thread: the others are
  // passed over. Set by the thread with the first, and cleared when it leaves; read by whoever
  // looks at all holes. All under the lock.
  std::uint64_t used[base::div_up(heap::kSizeClasses, 64u)];
  bool is_set_up;  // under the lock; read by its thread

  Reserve& reserve_of(const Hole* hole) { return reserves[hole - holes]; }
  void note_used(const Hole* hole) { used[(hole - holes) / 64] |= bit_of(hole); }
  [[nodiscard]] bool is_used(const Hole* hole) const {
    return (used[(hole - holes) / 64] & bit_of(hole)) != 0;
  }
  [[nodiscard]] std::uint64_t bit_of(const Hole* hole) const {
    return std::uint64_t{1} << (hole - holes) % 64;
  }
  template <class Visit>
  void for_each_used(Visit visit) {
    for (std::size_t w = 0; w < std::size(used); ++w) {
      for (std::uint64_t bits = used[w]; bits != 0; bits &= bits - 1) {
        visit(holes[w * 64 + base::lowest_bit(bits)]);
      }
    }
  }

  // The hole for a request. Pre: bytes <= heap::kMaxSmall.
  Hole& hole_for(std::size_t bytes);
};

// Where in a row the hole for a request of so many words is, in bytes: the class, already
// multiplied. At first by heap::kCoarseClassOfWords. Written under the heap's lock, twice at most;
// read by every thread (relaxed: each value is good for the request).
using HoleOffsets = std::array<std::uint16_t, heap::kClassOfWords.size()>;
extern constinit HoleOffsets hole_offset_of_words;

// Pre: bytes <= heap::kMaxSmall.
inline std::uint16_t hole_offset_for(std::size_t bytes) {
  const std::size_t words = (bytes + sizeof(Word) - 1) / sizeof(Word);
  return __atomic_load_n(&hole_offset_of_words[words], __ATOMIC_RELAXED);
}

inline Hole& HoleRow::hole_for(std::size_t bytes) {
  return *reinterpret_cast<Hole*>(reinterpret_cast<char*>(holes) + hole_offset_for(bytes));
}

// The class that a request gets as things are. Pre: bytes <= heap::kMaxSmall.
inline unsigned class_now_for(std::size_t bytes) { return hole_offset_for(bytes) / sizeof(Hole); }

// From now on requests go by this table. Under the heap's lock.
void use_classes(const heap::ClassTable& table);

}  // namespace jd::alloc

// Blocks and their records: the table by which an address leads to its object.
//
// Requirements (docs/design/heap.md): heap.req.resolve — testing a word costs one subtraction, one
// comparison and one load from a flat table; heap.req.line — what the marker needs of a block is in
// the first cache line of its record.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::heap {

using base::Word;

// 16 KiB: at 8 KiB the records cost twice as much; at 64 KiB the many size classes of a small
// program cost it a megabyte (docs/design/heap.md, "Block size").
inline constexpr unsigned kBlockShift = 14;
inline constexpr std::size_t kBlockSize = std::size_t{1} << kBlockShift;

// Every object begins at a multiple of a granule.
inline constexpr std::size_t kGranule = 16;
// Larger requests get a run of blocks, or share one (heap/spans.hpp): two objects of half a block
// still share a block.
inline constexpr std::size_t kMaxSmall = kBlockSize / 2;

// Mark and allocated words of a record. 15 words are what fits beside the 16-byte header in 256
// bytes; it costs blocks of 16-byte slots their last 64 slots (6%).
inline constexpr std::size_t kBitWords = 15;
inline constexpr std::size_t kMaxSlots = kBitWords * 64;

// Mixed: heap/mixed.hpp. SpanHead: heap/spans.hpp. Body: of a large object or a span.
enum class BlockState : std::uint8_t { Free, Small, LargeHead, SpanHead, Body, Mixed };

// How the marker treats the objects of a block; a summary of the kind's descriptor.
enum class Scan : std::uint8_t { None, Words, Descriptor };

// Whether the allocated words of a mixed block say where its objects begin. Open: only of some.
// Known: of all. KnownBesideHole: of all, but a thread's hole may seem to be one.
enum class Starts : std::uint32_t { Open, Known, KnownBesideHole };

// Bytes from an object's beginning between which all words are pointers, and beyond which none is.
// An end of 0: no such stretch is known.
struct PointerStretch {
  std::uint16_t begin;
  std::uint16_t end;
};

// A block's record. All fields but the bit words are written under the heap's lock, or in a
// stopped world, and read by the marker in a stopped world, or under the lock; whoever has an
// object in the block reads them, too, for they stay while it is there. (Exceptions: `starts`, and
// that whoever makes a large object which is still to be cleared sets its `scan` afterwards,
// without the lock.)
//
//   byte 0        16                                    136                      256
//        | header | mark words 0..14                     | allocated words 0..14   |
//        '---------------- first line: words 0..5 -------
struct alignas(256) Block {
  // ceil(2^32 / slot_size): slot index = offset * magic >> 32. 0 where there are no slots.
  std::uint32_t magic;
  // Slots in the block or span; 1 for the head of a large object; 0 where nothing can be found
  // directly.
  std::uint16_t slots;
  // Bytes in a slot, a multiple of the granule; 0 unless the block is small, or a span's head.
  std::uint16_t slot_size;
  BlockState state;
  Scan scan;
  std::uint8_t kind;
  std::uint8_t size_class;
  union {
    // Small: where the pointers of each slot lie, of a kind whose layout says so (Kind::pointers).
    PointerStretch pointers;
    // Head of a large object or a span: blocks of the run. Body: distance to the head. First and
    // last block of a free run: its length. In blocks.
    std::uint32_t run;
    // Mixed: one of Starts. Written by the block's owner, or in a stopped world (release, acquire:
    // the allocated words are written before).
    std::uint32_t starts;
  };

  // One bit a slot (mark.req.free). Who writes them, and how:
  //
  //   marks      markers              in a stopped world; beside the program (mark/concurrent.hpp)
  //                                   atomic OR, under the heap's lock
  //              who frees a slot     atomic, without the lock: unset where marks are kept between
  //                                   collections, set while the heap is marked in steps
  //                                   (heap/snapshot.hpp)
  //              disclaiming sweeps   while the world runs, under the lock
  //              the program          atomic (GC_set_mark_bit)
  //   allocated  the block's owner    atomic OR; plain stores while the block has no object
  //              who takes a piece    atomic OR, under the lock (alloc/piece.cpp)
  //              who frees a slot     atomic AND; under the lock if no collection stops the thread
  //              sweeps               in a stopped world; of kinds that disclaim, atomic AND
  //
  // While the heap is marked, free slots are marked too, so that the marker need not look at the
  // allocated words.
  std::uint64_t marks[kBitWords];
  std::uint64_t allocated[kBitWords];

  [[nodiscard]] Starts known_starts() const {
    return static_cast<Starts>(__atomic_load_n(&starts, __ATOMIC_ACQUIRE));
  }
  void set_known_starts(Starts known) {
    __atomic_store_n(&starts, static_cast<std::uint32_t>(known), __ATOMIC_RELEASE);
  }
  [[nodiscard]] unsigned bit_words() const { return (slots + 63u) / 64u; }
  // The slot that contains this offset into the block or span. Pre: state is Small or a head's.
  [[nodiscard]] unsigned slot_of(std::size_t offset) const {
    return static_cast<unsigned>((offset * magic) >> 32);
  }
  // Take free slots of a word, and give them back. What was done to an object before its slot was
  // given back, by whomever, comes before the slot is cleared for the next one (release, acquire).
  // (Neither has a result: with one it would be a loop.)
  void claim(unsigned word, std::uint64_t bits) {
    __atomic_fetch_or(&allocated[word], bits, __ATOMIC_ACQUIRE);
  }
  void give_back(unsigned word, std::uint64_t bits) {
    __atomic_fetch_and(&allocated[word], ~bits, __ATOMIC_RELEASE);
  }
  [[nodiscard]] bool marked(unsigned slot) const { return (marks[slot / 64] >> (slot % 64)) & 1; }
  [[nodiscard]] bool is_allocated(unsigned slot) const {
    return (__atomic_load_n(&allocated[slot / 64], __ATOMIC_RELAXED) >> (slot % 64)) & 1;
  }
};
static_assert(sizeof(Block) == 256);

// A copy of either, in a table beside the records.
struct BlockBits {
  std::uint64_t words[kBitWords];
};
static_assert(offsetof(Block, marks) == 16);

// offset * magic >> 32 is exact for every offset in a block while magic overestimates 2^32 / size
// by less than 1 / offset: offset * size < 2^32.
static_assert(kBlockSize * kMaxSmall < (std::uint64_t{1} << 32));

constexpr std::uint32_t magic_for(std::size_t slot_size) {
  return static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + slot_size - 1) / slot_size);
}

// Is the offset of this product, offset * magic, that of a slot's first byte? A multiple of the
// size leaves offset / size times what magic is too much by, less than the size; another offset
// leaves magic or more (Lemire, Kaser and Kurz, "Faster remainder by direct computation" (2019)).
// Where there are no slots, and magic is 0: no.
constexpr bool is_slot_begin(std::uint64_t product, std::uint32_t magic) {
  return static_cast<std::uint32_t>(product) < magic;
}
static_assert(kBlockSize + kMaxSmall < magic_for(kMaxSmall));

// Bits for a span's free slots.
struct FreeSpanSlots {
  std::uint32_t zeroed;   // it reads as zero: never handed out, on clean pages
  std::uint32_t dropped;  // it may hold words of objects that collections have freed, as a block
};

// What is known of a block beyond what the marker needs of each object. Written under the heap's
// lock, and read under it or in a stopped world, where nothing else is said. Of an owned block,
// `owner`, `free_slots` and `zeroed` are also written, and `next` is read, by its owner without the
// lock, which leaves it by a release store to `owner`, last.
struct BlockExtra {
  // Links of the list that the block is on (BlockList): a free run's bin, or the blocks with free
  // slots of a kind and size class. Forward only, of a hole's reserve, and of the blocks that wait
  // to be disclaimed. Block numbers; 0 is none.
  std::uint32_t next;
  std::uint32_t previous;
  // The thread's hole that allocates from this block; null when no thread owns it. Read without the
  // lock, too (atomic).
  void* owner;
  union {
    // Large head: the object's bytes, a multiple of the granule. Whoever makes the object longer
    // sets them when it has cleared what was gained, without the lock (release).
    std::uint64_t bytes;
    FreeSpanSlots span;
  };
  // Free slots when last counted (by a sweep or by frees since).
  std::uint16_t free_slots;
  // Collections that a dirty free block has been idle for.
  std::uint8_t age;
  // The pages hold old data. Clean is the state of fresh address space, so it is the 0.
  bool dirty;
  // Clean because the pages were given back to the system.
  bool returned : 1;
  // It may hold words of objects that collections have freed, and not the program (Kind's
  // clear_reclaimed). Not set of spans' blocks. Whoever makes a large object of such a kind of the
  // block, or makes one longer by it, unsets it without the lock, when the block is clear.
  bool dropped : 1;
  // On its kind's list of blocks with free slots. As owner.
  bool listed;
  // Large head: only pointers into its first block hold the object.
  bool held_by_first_block : 1;
  // Large head: the object was cleared when it was made, or a marker found at least half of its
  // pages written; so markers need not ask the kernel again. Set of every span. (It shares a byte
  // with its neighbours: whoever sets one of the three may undo another's newest value. Then the
  // question is asked once more.)
  bool filled : 1;
  // Its pages were watched anew after the last collection. Written by the collector, for its own
  // reckoning.
  bool watched : 1;
  // Every free slot reads as zero (heap.req.zeroed): an eager sweep cleared them, or the pages were
  // clean, and no slot was handed out yet.
  bool zeroed;
};
static_assert(sizeof(BlockExtra) == 32);

}  // namespace jd::heap

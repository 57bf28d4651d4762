// Blocks as owners of objects: turning free runs into small blocks, spans and large objects and
// back, and the lists of blocks and spans that have free slots. Pre of every function: the heap's
// lock is held.
#pragma once

#include "heap/block_list.hpp"
#include "heap/space.hpp"

namespace jd::heap {

// A block or span of this kind and size class that has free slots and no owner, or kNoBlock. Takes
// it off its list.
BlockNumber take_listed_block(KindNumber kind, unsigned size_class);
BlockNumber take_last_listed_block(KindNumber kind, unsigned size_class);
// Takes it off the list that it is on.
void unlist_block(BlockNumber number);
const BlockList& listed_blocks(KindNumber kind, unsigned size_class);

// Makes a free block into a small block without objects. kNoBlock when no block is free. From now
// on its pages count as dirty; BlockExtra::zeroed says whether they were clean.
BlockNumber make_small_block(KindNumber kind, unsigned size_class);

// Makes a large object of `bytes` (a multiple of the granule) in a new run; null when no run fits.
// It is allocated, not cleared. *dirty_blocks tells how many of its blocks hold old data.
Block* make_large(KindNumber kind, std::size_t bytes, BlockNumber alignment,
                  BlockNumber* dirty_blocks);

// Makes a span without objects (heap/spans.hpp), which is listed, of a new run; null when no run
// fits.
Block* make_span(KindNumber kind, unsigned span_class);

// Changes a large object's size where it is: gives blocks behind its new end back, or takes those
// that are free behind its old one. False if there are not so many. What the object gains holds
// anything. `bytes` as for make_large; the object stays a large one.
[[nodiscard]] bool resize_large(Block* head, std::size_t bytes);

// Blocks that a large object of this size takes.
constexpr BlockNumber blocks_for(std::size_t bytes) {
  return static_cast<BlockNumber>(base::div_up(bytes, kBlockSize));
}

// Frees a small block or a span without objects and without an owner, or a large object's run.
void release_block(BlockNumber number);
// The part of that which leaves lists and runs as they are, for blocks from this number on: their
// records say that they are free. `dropped`: not by the program (BlockExtra::dropped).
void become_free(BlockNumber number, BlockNumber count, bool dropped);

// Is a block so full that it costs more to search than it gives (Boehm 2000)?
[[nodiscard]] bool nearly_full(const Block& block, unsigned free_slots);
// Puts a block that has free slots and no owner on the list of its kind and size class, unless it
// is much fuller than that: slots that are freed one by one would never be more than just enough.
void list_block(BlockNumber number);

// Is the block on a list? Whoever frees a slot reads this without the lock.
inline void set_listed(BlockExtra* extra, bool listed) {
  __atomic_store_n(&extra->listed, listed, __ATOMIC_RELAXED);
}

// For the sweep: forgets all lists, then adds blocks in address order.
void forget_lists();
void list_block_in_order(BlockNumber number);

// JACKDAW_POISON: memory whose objects were reclaimed is overwritten.
extern bool poison_freed;
inline constexpr int kPoisonByte = 0xDB;
// Does that. Pre: poison_freed.
void poison(Word address, std::size_t size);

}  // namespace jd::heap

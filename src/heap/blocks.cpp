#include "heap/blocks.hpp"

#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/snapshot.hpp"
#include "heap/spans.hpp"
#include "heap/sweep.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"

namespace jd::heap {
namespace {

// Blocks with free slots. Under the heap's lock.
BlockList lists[kMaxKinds][kListedClasses];

BlockList& list_of(const Block& block) { return lists[block.kind][block.size_class]; }

// Whoever has freed the last object of a block may still look at these two, when others have
// released the block and taken it again (alloc's give_slot_back).
void set_unowned(BlockExtra* extra) {
  __atomic_store_n(&extra->owner, nullptr, __ATOMIC_RELAXED);
  set_listed(extra, false);
}

void set_dropped(BlockNumber number, BlockNumber count, bool dropped) {
  for (BlockNumber b = number; b < number + count; ++b) space.extras[b].dropped = dropped;
}

}  // namespace

bool poison_freed = false;

void poison(Word address, std::size_t size) {
  __builtin_memset(base::as_pointer(address), kPoisonByte, size);
}

void become_free(BlockNumber number, BlockNumber count, bool dropped) {
  if (poison_freed) poison(block_address(number), bytes_of(count));
  Block& block = space.blocks[number];
  block.state = BlockState::Free;
  block.magic = 0;
  block.slots = 0;
  block.slot_size = 0;
  for (BlockNumber b = number; b < number + count; ++b) space.extras[b].age = 0;
  if (dropped) set_dropped(number, count, true);
}

void unlist_block(BlockNumber number) {
  list_of(space.blocks[number]).remove(number);
  set_listed(&space.extras[number], false);
}

BlockNumber take_listed_block(KindNumber kind, unsigned size_class) {
  const BlockNumber number = lists[kind][size_class].head();
  if (number != kNoBlock) unlist_block(number);
  return number;
}

BlockNumber take_last_listed_block(KindNumber kind, unsigned size_class) {
  const BlockNumber number = lists[kind][size_class].tail();
  if (number != kNoBlock) unlist_block(number);
  return number;
}

const BlockList& listed_blocks(KindNumber kind, unsigned size_class) {
  return lists[kind][size_class];
}

BlockNumber make_small_block(KindNumber kind, unsigned size_class) {
  const BlockNumber number = take_run(1);
  if (number == kNoBlock) return kNoBlock;
  Block& block = space.blocks[number];
  BlockExtra& extra = space.extras[number];
  block.slot_size = slot_size_of(size_class);
  block.slots = static_cast<std::uint16_t>(slots_in_block(size_class));
  block.magic = magic_for(block.slot_size);
  block.state = BlockState::Small;
  block.kind = kind;
  block.scan = kinds[kind].scan;
  block.size_class = static_cast<std::uint8_t>(size_class);
  block.pointers = kinds[kind].pointers;
  block.pointers.end = base::min_of(block.pointers.end, block.slot_size);
  base::clear_bytes(block.marks, block.bit_words() * sizeof block.marks[0]);
  // Whoever has just freed the last object that was here before may still be looking
  // (alloc/free.cpp).
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    __atomic_store_n(&block.allocated[w], 0, __ATOMIC_RELAXED);
  }
  if (is_marking_in_steps()) pass_for_new(&block);
  extra.zeroed = start_using(number) == 0;
  set_unowned(&extra);
  extra.next = extra.previous = kNoBlock;
  extra.bytes = 0;
  extra.free_slots = block.slots;
  extra.held_by_first_block = false;
  return number;
}

namespace {

// Of a large object the program may never touch most: a buffer that is not filled, a table with few
// entries. And of an object in one block nobody touches what is behind it: little, if it takes
// three quarters (docs/design/heap.md, "Huge pages").
bool will_be_filled(std::size_t bytes) {
  return bytes <= kBlockSize && bytes > kBlockSize - kBlockSize / 4;
}

// Writes body records for these blocks of a run. Returns how many hold old data.
BlockNumber make_bodies(BlockNumber head, BlockNumber from, BlockNumber to, bool filled) {
  for (BlockNumber distance = from; distance < to; ++distance) {
    Block& body = space.blocks[head + distance];
    body.magic = 0;
    body.slots = 0;
    body.slot_size = 0;
    body.kind = kAtomic;
    body.state = BlockState::Body;
    body.run = distance;
  }
  return start_using(head + from, to - from, filled);
}

}  // namespace

Block* make_large(KindNumber kind, std::size_t bytes, BlockNumber alignment,
                  BlockNumber* dirty_blocks) {
  const BlockNumber count = blocks_for(bytes);
  const BlockNumber number = take_run(count, alignment);
  if (number == kNoBlock) return nullptr;
  *dirty_blocks = make_bodies(number, 0, count, will_be_filled(bytes));
  Block& head = space.blocks[number];
  head.slots = 1;
  head.kind = kind;
  head.scan = kinds[kind].scan;
  head.run = count;
  head.marks[0] = 0;
  __atomic_store_n(&head.allocated[0], 1, __ATOMIC_RELAXED);
  space.extras[number].bytes = bytes;
  set_unowned(&space.extras[number]);
  space.extras[number].held_by_first_block = false;
  space.extras[number].filled = false;
  space.extras[number].zeroed = false;
  if (is_marking_in_steps()) pass_for_new(&head);
  head.state = BlockState::LargeHead;
  return &head;
}

Block* make_span(KindNumber kind, unsigned span_class) {
  const SpanClass& span = kSpans[span_class];
  const BlockNumber number = take_run(span.blocks);
  if (number == kNoBlock) return nullptr;
  const bool clean = make_bodies(number, 0, span.blocks, will_be_filled(span.slot_size)) == 0;
  Block& head = space.blocks[number];
  BlockExtra& extra = space.extras[number];
  head.slot_size = span.slot_size;
  head.slots = static_cast<std::uint16_t>(span.slots());
  head.magic = magic_for(span.slot_size);
  head.kind = kind;
  head.scan = kinds[kind].scan;
  head.size_class = static_cast<std::uint8_t>(size_class_of_span(span_class));
  head.run = span.blocks;
  head.marks[0] = 0;
  __atomic_store_n(&head.allocated[0], 0, __ATOMIC_RELAXED);
  set_unowned(&extra);
  const auto all_slots = static_cast<std::uint32_t>(bits_between(0, 0, head.slots));
  extra.span.zeroed = clean ? all_slots : 0;
  extra.span.dropped = has_dropped_words(number, span.blocks) ? all_slots : 0;
  set_dropped(number, span.blocks, false);
  extra.free_slots = head.slots;
  extra.held_by_first_block = false;
  extra.filled = true;
  extra.zeroed = false;
  if (is_marking_in_steps()) pass_for_new(&head);
  head.state = BlockState::SpanHead;
  list_block(number);
  return &head;
}

bool resize_large(Block* head, std::size_t bytes) {
  const BlockNumber number = number_of(head);
  const BlockNumber before = head->run;
  const BlockNumber after = blocks_for(bytes);
  if (after > before) {
    if (!take_run_at(number + before, after - before)) return false;
    make_bodies(number, before, after, false);
    head->run = after;
  } else if (after < before) {
    head->run = after;
    if (poison_freed) {
      poison(block_address(number + after), bytes_of(before - after));
    }
    for (BlockNumber b = number + after; b < number + before; ++b) space.extras[b].age = 0;
    give_run(number + after, before - after);
  }
  if (is_marking_in_steps()) note_released();
  space.extras[number].bytes = bytes;
  // What GC_malloc_ignore_off_page promised was of another size: as bdwgc, which makes a new
  // object.
  space.extras[number].held_by_first_block = false;
  space.extras[number].filled = false;
  return true;
}

void release_block(BlockNumber number) {
  const Block& block = space.blocks[number];
  const BlockNumber count = length_of(block);
  // A large object's head says that it is on none.
  if (space.extras[number].listed) unlist_block(number);
  if (is_marking_in_steps()) note_released();
  const bool dropped =
      block.state == BlockState::SpanHead && space.extras[number].span.dropped != 0;
  become_free(number, count, dropped);
  give_run(number, count);
}

// docs/design/alloc.md, "Nearly full blocks".
static bool has_fewer_free(const Block& block, unsigned free_slots, unsigned divisor) {
  return free_slots == 0 || (divisor != 0 && free_slots * divisor < block.slots);
}

bool nearly_full(const Block& block, unsigned free_slots) {
  return has_fewer_free(block, free_slots, sweep_policy.nearly_full_divisor);
}

void list_block(BlockNumber number) {
  BlockExtra& extra = space.extras[number];
  if (extra.listed || __atomic_load_n(&extra.owner, __ATOMIC_RELAXED) != nullptr) return;
  constexpr unsigned kPartOneByOne = 4;  // a quarter of what a sweep lists blocks for
  const unsigned divisor = kPartOneByOne * sweep_policy.nearly_full_divisor;
  if (has_fewer_free(space.blocks[number], extra.free_slots, divisor)) return;
  list_of(space.blocks[number]).push_front(number);
  set_listed(&extra, true);
}

void forget_lists() { base::clear_bytes(lists, kind_count * sizeof lists[0]); }

void list_block_in_order(BlockNumber number) {
  list_of(space.blocks[number]).push_back(number);
  set_listed(&space.extras[number], true);
}

}  // namespace jd::heap

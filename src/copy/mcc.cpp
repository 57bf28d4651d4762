#include "copy/mcc.hpp"

#include "alloc/collecting.hpp"
#include "copy/evacuate.hpp"
#include "copy/hashes.hpp"
#include "copy/holders.hpp"
#include "copy/policy.hpp"
#include "copy/roles.hpp"
#include "copy/untyped.hpp"
#include "copy/weak.hpp"
#include "heap/blocks.hpp"
#include "heap/growable.hpp"
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/walk.hpp"

namespace jd::copy::mcc {
namespace {

using heap::Block;
using heap::BlockState;
using heap::Kind;
using heap::Place;
using heap::Scan;
using heap::space;

// All used in a stopped world only.
heap::Growable<Place> queue;  // marked, not scanned
bool queue_overflowed = false;
bool (*commit)(std::uint32_t blocks) = nullptr;  // what begin() was given

// Where copies of a kind go, and how far they were scanned.
struct ToSpace {
  unsigned kind = 0;                   // 0: none yet; kinds with layouts have other numbers
  heap::Granules gap = {0, 0};         // what is left of the newest block
  heap::Growable<BlockNumber> blocks;  // in the order in which they are scanned
  std::size_t scanned_blocks = 0;
  unsigned scanned_granules = 0;  // of blocks[scanned_blocks]
};
// One for each way in which layouts are found in mixed blocks.
constexpr unsigned kToSpaces = 2;
ToSpace to_spaces[kToSpaces];

ToSpace& to_space_of(unsigned kind) {
  for (ToSpace& to : to_spaces) {
    if (to.kind == 0) to.kind = kind;
    if (to.kind == kind) return to;
  }
  heap::broken_layout("more kinds of objects than ways to find layouts", nullptr, kind);
}

bool is_from(BlockNumber number) {
  return space.blocks[number].state == BlockState::Mixed && roles[number] == Role::Source;
}

bool is_target(BlockNumber number) {
  return space.blocks[number].state == BlockState::Mixed && roles[number] == Role::Target;
}

// In the place of a first word: neither a header nor the address of a layout ends so.
constexpr Word kForwardTag = 2;

bool forwarded(Word memory, Word* to) {
  const Word first = *reinterpret_cast<const Word*>(memory);
  if ((first & 7) != kForwardTag) return false;
  *to = first - kForwardTag;
  return true;
}

bool find(Word word, Place* place) {
  // What is copied there now was no object when the word was written.
  if (!heap::in_heap(word) || is_target(heap::block_number(word))) return false;
  return heap::find_object_in_stopped_world(word, place) && place->is_held_by(word);
}

bool find_ending_at(Word word, Place* place) {
  return word % heap::kGranule == 0 && find(word - 1, place) && place->ends_at(word);
}

bool was_forwarded(const Place& place, Word* to) {
  return place.is_mixed() && forwarded(place.address(), to);
}

void mark_and_queue(const Place& place) {
  if (place.marked()) return;
  place.set_mark();
  if (place.block->scan != Scan::None && !queue.push(place)) queue_overflowed = true;
}

// For ambiguous words in the traversal. A word that stood there in the pin stage has promoted its
// block. One that means something on a block that was not promoted stands there since: the
// collector has written it, where it runs on a stack that is an object or a range of roots, or a
// thread in a blocking section has. It means nothing, and the object may have been copied.
void mark_in_place(const Place& place) {
  const Role role = roles[heap::number_of(place.block)];
  if (role != Role::Source && role != Role::Left) mark_and_queue(place);
}

bool next_to_block(ToSpace* to) {
  const auto kind = static_cast<heap::KindNumber>(to->kind);
  constexpr std::uint32_t kStep = 64;
  BlockNumber number = heap::make_mixed_block(kind);
  if (number == heap::kNoBlock && (commit(kStep) || commit(1))) {
    number = heap::make_mixed_block(kind);
  }
  if (number == heap::kNoBlock) return false;
  if (!prepare_roles() || !to->blocks.push(number)) {
    heap::release_block(number);
    return false;
  }
  roles[number] = Role::Target;
  to->gap = {0, heap::kMixedGranules};
  return true;
}

// A copy of the object, or none for lack of memory.
bool copy(const Place& place, Word* to) {
  const BlockNumber number = heap::number_of(place.block);
  const unsigned granules = heap::tile_end(number, place.slot) - place.slot;
  ToSpace& space_for = to_space_of(place.block->kind);
  if (space_for.gap.count() < granules && !next_to_block(&space_for)) return false;
  const BlockNumber target = space_for.blocks[space_for.blocks.count() - 1];
  const Place copied{&space.blocks[target], space_for.gap.from};
  heap::fill_gap(target, space_for.gap, granules);
  space_for.gap.from += granules;
  base::copy_bytes(base::as_pointer(copied.address()), base::as_pointer(place.address()),
                   std::size_t{granules} * heap::kGranule);
  *reinterpret_cast<Word*>(place.address()) = copied.address() | kForwardTag;
  *to = copied.address();
  ++counts.objects;
  counts.bytes += std::size_t{granules} * heap::kGranule;
  return true;
}

// For lack of memory (copy.req.abort): the rest of the block stays where it is, too.
void stay(BlockNumber number) { roles[number] = Role::Left; }

void visit_slot(Word* slot) {
  Place place;
  if (!find(*slot, &place)) return;
  const Word memory = place.address();
  Word to = 0;
  // Also where the rest of the block was left, for lack of memory.
  if (was_forwarded(place, &to)) {
    *slot = to + (*slot - memory);
    return;
  }
  const BlockNumber number = heap::number_of(place.block);
  if (is_from(number)) {
    if (copy(place, &to)) {
      *slot = to + (*slot - memory);
      return;
    }
    stay(number);
  }
  mark_and_queue(place);
}

void visit_stretch(Word* first, std::size_t count) {
  for (Word* slot = first; slot != first + count; ++slot) visit_slot(slot);
}

void reach_word(Word word) { reach(word, false); }

void scan(const Place& place) {
  const Kind& kind = heap::kinds[place.block->kind];
  if (kind.has_layout()) {
    heap::Typed typed;
    if (heap::typed_at(place.address(), kind, &typed)) heap::for_each_stretch(typed, visit_stretch);
    return;
  }
  visit_ambiguous(place, reach_word);
}

// Scans the next copy. False if there is none.
bool scan_copy(ToSpace* to) {
  while (to->scanned_blocks < to->blocks.count()) {
    const BlockNumber number = to->blocks[to->scanned_blocks];
    Block& block = space.blocks[number];
    const bool newest = to->scanned_blocks + 1 == to->blocks.count();
    const unsigned end = newest ? to->gap.from : heap::kMixedGranules;
    for (unsigned g = to->scanned_granules; g < end; ++g) {
      if (!block.is_allocated(g)) continue;
      to->scanned_granules = g + 1;
      scan({&block, g});
      return true;
    }
    to->scanned_granules = end;
    if (newest) return false;
    ++to->scanned_blocks;
    to->scanned_granules = 0;
  }
  return false;
}

bool scan_copies() {
  bool any = false;
  for (ToSpace& to : to_spaces) any |= scan_copy(&to);
  return any;
}

void run() {
  do {
    if (queue_overflowed) {
      queue_overflowed = false;
      heap::for_each_block([](BlockNumber, Block& block) {
        if (block.state == BlockState::Free || block.scan == Scan::None) return;
        heap::for_each_marked(block, [&](unsigned slot) { scan({&block, slot}); });
      });
    }
    for (;;) {
      if (queue.count() != 0) {
        const Place place = queue[queue.count() - 1];
        queue.set_count(queue.count() - 1);
        scan(place);
      } else if (!scan_copies()) {
        break;
      }
    }
  } while (queue_overflowed);
}

bool is_live(Word word) {
  Place place;
  Word to = 0;
  return !find(word, &place) || place.marked() || was_forwarded(place, &to);
}

void rewrite(Word* word) { *word = moved(*word); }

// Objects that nothing reached and finalization may look at. The table of pinned objects, which
// this policy needs for nothing else, has the bits of those that are known.
auto& known_to_repair = pinned;
bool repair_overflowed = false;

void queue_for_repair(Word word) {
  Place place;
  if (!find(word, &place) || place.marked()) return;
  if (!known_to_repair[heap::number_of(place.block)].add(place.slot)) return;
  if (!queue.push(place)) repair_overflowed = true;
}

void repair_stretch(Word* first, std::size_t count) {
  for (Word* slot = first; slot != first + count; ++slot) {
    rewrite(slot);
    queue_for_repair(*slot);
  }
}

void repair(const Place& place) {
  const Kind& kind = heap::kinds[place.block->kind];
  auto* const words = reinterpret_cast<Word*>(place.address());
  if (is_weak_kind(place.block->kind)) return rewrite(words);
  if (is_ephemeron_kind(place.block->kind)) return repair_stretch(words, 2);
  if (place.block->scan == Scan::None) return;
  if (!kind.has_layout()) {
    visit_ambiguous(place, queue_for_repair);
  } else if (heap::Typed typed; heap::typed_at(place.address(), kind, &typed)) {
    heap::for_each_stretch(typed, repair_stretch);
  }
}

void repair_queued() {
  while (queue.count() != 0) {
    const Place place = queue[queue.count() - 1];
    queue.set_count(queue.count() - 1);
    repair(place);
  }
}

// Everything on promoted blocks, and those that were left, that was not reached.
void count_promoted() {
  last_promoted = {};
  heap::for_each_block([](BlockNumber number, const Block& block) {
    if (block.state != BlockState::Mixed) return;
    if (roles[number] == Role::Source || roles[number] == Role::Target) return;
    ++last_promoted.blocks;
    unsigned live = 0;
    heap::for_each_marked(block,
                          [&](unsigned first) { live += heap::tile_end(number, first) - first; });
    const unsigned used = heap::used_granules(number);
    last_promoted.dead_bytes += std::size_t{used - base::min_of(used, live)} * heap::kGranule;
  });
}

// Calls visit(place) for every object without a layout, dead or alive.
template <class Visit>
void for_each_untyped(bool disclaimable_only, Visit visit) {
  heap::for_each_block([&](BlockNumber, Block& block) {
    const Kind& kind = heap::kinds[block.kind];
    if (block.state == BlockState::Free || block.scan == Scan::None) return;
    if (kind.has_layout()) return;
    if (disclaimable_only && !kind.mark_from_unreachable) return;
    heap::for_each_bit(block.allocated, block.slots, [&](unsigned slot) {
      visit(Place{&block, slot});
    });
  });
}

// Its thread may have been stopped while it allocated.
bool is_in_hole(Word word, BlockNumber number) {
  const auto* hole = static_cast<const heap::MixedHole*>(space.extras[number].owner);
  return hole != nullptr && word >= base::as_word(hole->cursor) && word <= base::as_word(hole->end);
}

void promote_word(Word word) { promote(word, false); }

}  // namespace

Promoted last_promoted;

bool begin(bool (*commit_more)(std::uint32_t blocks)) {
  commit = commit_more;
  for (ToSpace& to : to_spaces) {
    to.gap = {0, 0};
    to.blocks.clear();
    to.scanned_blocks = 0;
    to.scanned_granules = 0;
  }
  queue.clear();
  queue_overflowed = false;
  // So that a traversal never stands without room.
  constexpr std::size_t kLeastRoom = 256;
  if (!queue.reserve(kLeastRoom) || !prepare_roles()) return false;
  heap::for_each_block([](BlockNumber number, const Block& block) {
    roles[number] = block.state == BlockState::Mixed ? Role::Source : Role::None;
  });
  return true;
}

void promote(Word word, bool past_end) {
  Place place;
  if (heap::in_heap(word) && is_from(heap::block_number(word))) {
    const BlockNumber number = heap::block_number(word);
    if (find(word, &place) || is_in_hole(word, number)) roles[number] = Role::None;
  }
  if (past_end && find_ending_at(word, &place)) roles[heap::number_of(place.block)] = Role::None;
}

void promote_from_objects() {
  // A dead object's procedure is called, too: nobody knows yet which is dead.
  for_each_untyped(false, [](const Place& place) { visit_ambiguous(place, promote_word); });
  visit_program_pins(promote_word);
}

void leave_holes() { alloc::leave_mixed_holes(is_from); }

void reach(Word word, bool past_end) {
  Place place;
  if (find(word, &place)) mark_in_place(place);
  if (past_end && find_ending_at(word, &place)) mark_in_place(place);
}

void reach_slot(Word* slot) { visit_slot(slot); }

void traverse() {
  heap::for_each_block([](BlockNumber, Block& block) {
    if (block.state == BlockState::Free || !heap::is_uncollectable(block.kind)) return;
    heap::for_each_bit(block.allocated, block.slots, [&](unsigned slot) {
      mark_and_queue({&block, slot});
    });
  });
  run();
  trace_ephemerons({.is_live = is_live, .visit = visit_slot, .trace = run}, 0);
  forget_dead_weak(is_live);
  visit_weak_words(rewrite);
  rekey_hashes(moved);
  count_promoted();
  ++counts.collections;
}

void repair_from(Word object) {
  queue_for_repair(object);
  repair_queued();
  while (repair_overflowed) {
    repair_overflowed = false;
    // Nobody knows which did not fit: all again. Each pass without room for one has found another.
    heap::for_each_block([](BlockNumber number, Block& block) {
      if (number >= blocks_with_roles()) return;
      heap::for_each_bit(known_to_repair[number].words, heap::kMaxSlots, [&](unsigned slot) {
        repair({&block, slot});
        repair_queued();
      });
    });
  }
}

void repair_from_disclaimable() {
  for_each_untyped(true, [](const Place& place) {
    if (!place.marked()) repair_from(place.address());
  });
}

Word moved(Word word) {
  Place place;
  Word to = 0;
  if (!find(word, &place) || !was_forwarded(place, &to)) return word;
  return to + (word - place.address());
}

void end() {
  // Blocks for which there was no memory in the tables have none of it.
  const BlockNumber last = base::min_of(space.committed, blocks_with_roles());
  for (BlockNumber b = 1; b < last; ++b) {
    roles[b] = Role::None;
    known_to_repair[b] = {};
  }
}

}  // namespace jd::copy::mcc

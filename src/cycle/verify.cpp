// Checks heap.req.runs, heap.req.bits, heap.req.zeroed, heap.req.starts, mark.req.complete and
// mark.req.free.
#include "cycle/verify.hpp"

#include "alloc/collecting.hpp"
#include "copy/holders.hpp"
#include "cycle/page_sums.hpp"
#include "cycle/settings.hpp"
#include "heap/blocks.hpp"
#include "heap/kinds.hpp"
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/runs.hpp"
#include "heap/size_class.hpp"
#include "heap/space.hpp"
#include "heap/spans.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"

namespace jd::cycle {
namespace {

using base::Word;
using heap::Block;
using heap::BlockNumber;
using heap::BlockState;
using heap::space;

// Bytes of stack below the verifier's frame that marking may have used: its rings, and the frames
// around them. A guess with room (the rings take 1.5 KiB); trace procedures may go deeper.
constexpr Word kDeepestFrames = 16 * base::kKiB;

// The least that systems have.
constexpr Word kPage = 4096;

[[noreturn]] void broken(const char* invariant, BlockNumber block, Word detail) {
  os::fatal("heap verifier: ", invariant, " (block ", block, ", ", base::Hex{detail}, ")");
}

void verify_allocated(BlockNumber number, const Block& block) {
  for (unsigned w = 0; w * 64 < block.slots; ++w) {
    const unsigned left = block.slots - w * 64;
    if (left < 64 && (block.allocated[w] >> left) != 0) {
      broken("an allocated bit beyond the last slot", number, block.allocated[w]);
    }
  }
}

void verify_small(BlockNumber number, const Block& block) {
  if (block.kind >= heap::kind_count) broken("a small block has no kind", number, block.kind);
  if (block.size_class >= heap::kSizeClasses ||
      heap::slot_size_of(block.size_class) != block.slot_size) {
    broken("a small block's size class does not fit its slots", number, block.slot_size);
  }
  if (std::size_t{block.slots} * block.slot_size > heap::kBlockSize) {
    broken("a small block's slots exceed it", number, block.slots);
  }
  if (block.pointers.begin > block.pointers.end || block.pointers.end > block.slot_size) {
    broken("a small block's pointers lie beyond its slots", number, block.pointers.end);
  }
  // The reciprocal finds each slot from its first and last byte.
  for (unsigned slot = 0; slot < block.slots; ++slot) {
    const std::size_t first = std::size_t{slot} * block.slot_size;
    if (((first * block.magic) >> 32) != slot ||
        (((first + block.slot_size - 1) * block.magic) >> 32) != slot) {
      broken("a small block's reciprocal misses a slot", number, slot);
    }
  }
  verify_allocated(number, block);
}

void verify_zero(BlockNumber number, const Block& block, unsigned slot) {
  const Word start = heap::block_address(number) + std::size_t{slot} * block.slot_size;
  for (std::size_t byte = 0; byte < block.slot_size; byte += sizeof(Word)) {
    const Word word = *reinterpret_cast<const Word*>(start + byte);
    if (word != 0) broken("a slot that is said to be zero is not", number, word);
  }
}

void verify_bodies(BlockNumber head) {
  const Block& block = space.blocks[head];
  if (block.run == 0 || block.run > space.committed - head) {
    broken("the run of a large object or a span leaves the heap", head, block.run);
  }
  for (BlockNumber i = 1; i < block.run; ++i) {
    const Block& body = space.blocks[head + i];
    if (body.state != BlockState::Body || body.run != i || body.slots != 0) {
      broken("a body does not lead to its head", head + i, body.run);
    }
  }
}

void verify_span(BlockNumber number) {
  const Block& block = space.blocks[number];
  const heap::BlockExtra& extra = space.extras[number];
  if (block.kind >= heap::kind_count) broken("a span has no kind", number, block.kind);
  const unsigned span_class = block.size_class - heap::kSizeClasses;
  if (span_class >= heap::kSpanClasses) broken("a span has no class", number, block.size_class);
  const heap::SpanClass& span = heap::kSpans[span_class];
  if (block.slot_size != span.slot_size || block.slots != span.slots() ||
      block.run != span.blocks || block.magic != heap::magic_for(span.slot_size)) {
    broken("a span's record does not fit its class", number, block.slot_size);
  }
  verify_bodies(number);
  verify_allocated(number, block);
  if (extra.owner != nullptr) broken("a span has an owner", number, 0);
  if (extra.free_slots != heap::count_free_slots(block)) {
    broken("a span's count of free slots is wrong", number, extra.free_slots);
  }
  if (extra.listed && extra.free_slots == 0) broken("a full span is on a list", number, 0);
  if ((extra.span.dropped & block.allocated[0]) != 0) {
    broken("an object's slot is said to be dropped", number, extra.span.dropped);
  }
  for (unsigned slot = 0; slot < block.slots; ++slot) {
    if (((extra.span.zeroed >> slot) & 1) == 0) continue;
    if (block.is_allocated(slot)) broken("an object's slot is said to be zero", number, slot);
    verify_zero(number, block, slot);
  }
}

// heap.req.zeroed: what an eager sweep cleared stays so until it is handed out.
void verify_zeroed(BlockNumber number, const Block& block) {
  if (!space.extras[number].zeroed) return;
  for (unsigned slot = 0; slot < block.slots; ++slot) {
    if (!block.is_allocated(slot)) verify_zero(number, block, slot);
  }
}

// What lies at an address of a mixed block, and where that ends: by what is there, not by the bits.
struct Tile {
  enum class What : std::uint8_t { Object, Hole, Gap, Nothing } what;
  Word end;
};
Tile tile_at(BlockNumber number, Word at) {
  const auto* hole = static_cast<const heap::MixedHole*>(space.extras[number].owner);
  if (hole != nullptr && hole->cursor < hole->end && at == base::as_word(hole->cursor)) {
    return {Tile::What::Hole, base::as_word(hole->end)};
  }
  heap::Granules gap{};
  const Word start = heap::block_address(number);
  const auto granule = static_cast<unsigned>((at - start) / heap::kGranule);
  if (heap::find_gap(number, granule, 1, &gap) && gap.from == granule) {
    return {Tile::What::Gap, start + Word{gap.to} * heap::kGranule};
  }
  heap::Typed typed;
  if (!heap::typed_at(at, heap::kinds[space.blocks[number].kind], &typed)) {
    return {Tile::What::Nothing, at};
  }
  return {Tile::What::Object,
          base::align_up(typed.object + typed.words * sizeof(Word), heap::kGranule)};
}

// heap.req.starts: objects, gaps and a hole fill a mixed block; none overlaps another.
void verify_mixed(BlockNumber number) {
  const Word start = heap::block_address(number);
  const Word end = start + heap::kMixedGranules * heap::kGranule;
  for (Word at = start; at < end;) {
    const Tile tile = tile_at(number, at);
    if (tile.what == Tile::What::Nothing) {
      broken("in a mixed block, something begins that is neither object nor gap", number,
             (at - start) / heap::kGranule);
    }
    at = tile.end;
  }
}

struct Found {
  BlockNumber free = 0;    // blocks in free runs
  BlockNumber runs = 0;    // free runs
  BlockNumber listed = 0;  // blocks and spans that say that they are on a list
};

// Walks the block table by its own rules.
Found walk() {
  Found found;
  bool previous_free = false;
  for (BlockNumber b = 1; b < space.committed;) {
    const Block& block = space.blocks[b];
    switch (block.state) {
      case BlockState::Small:
        verify_small(b, block);
        verify_zeroed(b, block);
        found.listed += space.extras[b].listed ? 1 : 0;
        previous_free = false;
        ++b;
        break;
      case BlockState::Mixed:
        verify_mixed(b);
        found.listed += space.extras[b].listed ? 1 : 0;
        previous_free = false;
        ++b;
        break;
      case BlockState::SpanHead:
        verify_span(b);
        found.listed += space.extras[b].listed ? 1 : 0;
        previous_free = false;
        b += block.run;
        break;
      case BlockState::LargeHead:
        verify_bodies(b);
        if (space.extras[b].bytes > std::size_t{block.run} * heap::kBlockSize) {
          broken("a large object is longer than its run", b, space.extras[b].bytes);
        }
        previous_free = false;
        b += block.run;
        break;
      case BlockState::Free:
        if (block.run == 0 || block.run > space.committed - b) {
          broken("a free run leaves the heap", b, block.run);
        }
        if (previous_free) broken("two free runs touch", b, block.run);
        if (space.blocks[b + block.run - 1].run != block.run) {
          broken("a free run's ends disagree", b, block.run);
        }
        for (BlockNumber i = 0; i < block.run; ++i) {
          if (space.blocks[b + i].slots != 0) broken("a free block has slots", b + i, 0);
        }
        previous_free = true;
        found.free += block.run;
        ++found.runs;
        b += block.run;
        break;
      case BlockState::Body:
        broken("a body block stands where a head should", b, block.run);
    }
  }
  return found;
}

// Follows a list of blocks, which has at most so many; calls visit(block number) for each.
template <class Visit>
void follow(const heap::BlockList& list, BlockNumber most, Visit visit) {
  BlockNumber count = 0;
  BlockNumber previous = heap::kNoBlock;
  for (BlockNumber b = list.head(); b != heap::kNoBlock; b = space.extras[b].next) {
    if (b >= space.committed) broken("a list leaves the heap", previous, b);
    if (space.extras[b].previous != previous) broken("a list's links disagree", b, previous);
    if (++count > most) broken("a list is longer than what is on lists", b, most);
    visit(b);
    previous = b;
  }
  if (list.tail() != previous) broken("a list does not end at its tail", list.tail(), previous);
  if (list.count() != count) broken("a list's count is wrong", list.head(), count);
}

// Each free run is in the bin of its length.
void verify_bins(const Found& found) {
  if (heap::free_blocks() != found.free) {
    broken("the number of free blocks is wrong", heap::free_blocks(), found.free);
  }
  BlockNumber runs = 0;
  for (unsigned number = 0; number < heap::bin_count(); ++number) {
    const heap::Bin bin = heap::bin(number);
    if (bin.in_use == bin.runs.is_empty()) {
      broken("a bin's bit says otherwise than its list", bin.runs.head(), number);
    }
    follow(bin.runs, found.runs - runs, [&](BlockNumber b) {
      const Block& block = space.blocks[b];
      if (block.state != BlockState::Free) broken("a bin holds a block in use", b, number);
      if (block.run < bin.shortest || block.run > bin.longest) {
        broken("a free run is in another's bin", b, block.run);
      }
    });
    runs += bin.runs.count();
  }
  if (runs != found.runs) broken("a free run is in no bin", runs, found.runs);
}

// Each block that says so is on its kind's list, and no other.
void verify_lists(const Found& found) {
  BlockNumber listed = 0;
  for (unsigned kind = 0; kind < heap::kind_count; ++kind) {
    for (unsigned size_class = 0; size_class < heap::kListedClasses; ++size_class) {
      const heap::BlockList& list =
          heap::listed_blocks(static_cast<heap::KindNumber>(kind), size_class);
      follow(list, found.listed - listed, [&](BlockNumber b) {
        const Block& block = space.blocks[b];
        const bool may_be_listed =
            heap::has_slots_of_one_size(block) || block.state == BlockState::Mixed;
        if (!may_be_listed || block.kind != kind || block.size_class != size_class) {
          broken("a list holds a block of another sort", b, block.kind);
        }
        if (!space.extras[b].listed) broken("a block is on a list and does not say so", b, kind);
        if (space.extras[b].owner != nullptr) broken("an owned block is on a list", b, kind);
      });
      listed += list.count();
    }
  }
  if (listed != found.listed) broken("a listed block is on no list", listed, found.listed);
}

void verify_hole(alloc::Hole* hole, heap::KindNumber kind) {
  // Of a piece of another's block that is used up: by now the block may be anything.
  const bool is_left = hole->cursor == hole->end && space.extras[hole->block].owner != hole;
  if (is_left) return;
  const Block& block = space.blocks[hole->block];
  const char* start = reinterpret_cast<const char*>(heap::block_address(hole->block));
  const char* end = start + std::size_t{block.slots} * block.slot_size;
  if (block.state != BlockState::Small || block.kind != kind ||
      block.slot_size != hole->slot_size()) {
    broken("a hole lies in a block of another sort", hole->block, kind);
  }
  if (hole->claimed != 0) {
    const unsigned w = hole->claimed_word(hole->end);
    const auto behind =
        static_cast<unsigned>(static_cast<std::size_t>(hole->end - start) / block.slot_size);
    if ((hole->claimed & ~heap::bits_between(w, behind, block.slots)) != 0) {
      broken("a hole claims slots that are not behind it", hole->block, hole->claimed);
    }
  }
  if (hole->cursor < start || hole->end > end || hole->cursor > hole->end ||
      hole->limit > hole->end) {
    broken("a hole leaves its block", hole->block, base::as_word(hole->cursor));
  }
}

void verify_reserved(const alloc::Hole* hole, heap::KindNumber kind, BlockNumber number) {
  if (number >= space.committed) broken("a reserve leaves the heap", number, kind);
  const Block& block = space.blocks[number];
  const heap::BlockExtra& extra = space.extras[number];
  if (block.state != BlockState::Small || block.kind != kind ||
      block.slot_size != hole->slot_size()) {
    broken("a reserve holds a block of another sort", number, kind);
  }
  if (extra.owner != hole) broken("a reserve holds another's block", number, kind);
  if (extra.listed) broken("a block in reserve is on a list", number, kind);
  if (number == hole->block) broken("a hole's own block is in its reserve", number, kind);
}

void verify_kept(const alloc::Hole* hole, const char* slot) {
  heap::Place place{};
  const Word word = base::as_word(slot);
  if (!heap::find_place(word, &place) || place.address() != word ||
      place.block->state != BlockState::Small || place.size() != hole->slot_size()) {
    broken("a magazine holds what is no slot of its size", word, hole->slot_size());
  }
  if (!place.allocated()) broken("a slot in a magazine is free for others", word, place.slot);
}

// Back to where something begins, in a block that may hold what is left of objects that moved.
bool lookup_known(BlockNumber b, Word offset, BlockNumber* number, unsigned* slot) {
  const Block& block = space.blocks[b];
  const auto* hole = static_cast<const heap::MixedHole*>(space.extras[b].owner);
  const Word address = heap::block_address(b) + offset;
  if (hole != nullptr && address >= base::as_word(hole->cursor) &&
      address < base::as_word(hole->end)) {
    return false;
  }
  auto granule = static_cast<unsigned>(offset / heap::kGranule);
  if (granule >= block.slots) return false;
  for (;; --granule) {
    heap::Granules gap{};
    if (heap::find_gap(b, granule, 1, &gap) && gap.from == granule) return false;
    if (((block.allocated[granule / 64] >> (granule % 64)) & 1) != 0) break;
    if (granule == 0) return false;
  }
  *number = b;
  *slot = granule;
  return true;
}

// Object by object from the block's beginning, instead of by the bits.
bool lookup_mixed(BlockNumber b, Word offset, BlockNumber* number, unsigned* slot) {
  const Word start = heap::block_address(b);
  for (Word at = start; at < start + heap::kMixedGranules * heap::kGranule;) {
    const Tile tile = tile_at(b, at);
    if (tile.what == Tile::What::Nothing) return false;
    if (start + offset < tile.end) {
      *number = b;
      *slot = static_cast<unsigned>((at - start) / heap::kGranule);
      return tile.what == Tile::What::Object;
    }
    at = tile.end;
  }
  return false;
}

// The object that a word leads to, found by the definition instead of the reciprocal.
bool lookup(Word word, BlockNumber* number, unsigned* slot) {
  if (word < space.base || word >= space.base + space.span) return false;
  BlockNumber b = static_cast<BlockNumber>((word - space.base) / heap::kBlockSize);
  if (space.blocks[b].state == BlockState::Body) {
    const BlockNumber distance = space.blocks[b].run;
    if (distance > b) return false;
    b -= distance;
    if (!heap::is_head(space.blocks[b]) || distance >= space.blocks[b].run) return false;
  }
  const Block& block = space.blocks[b];
  const Word offset = word - (space.base + Word{b} * heap::kBlockSize);
  if (block.state == BlockState::LargeHead) {
    if (offset >= space.extras[b].bytes) return false;
    *slot = 0;
  } else if (block.state == BlockState::Mixed) {
    return block.known_starts() == heap::Starts::Open ? lookup_mixed(b, offset, number, slot)
                                                      : lookup_known(b, offset, number, slot);
  } else if (heap::has_slots_of_one_size(block)) {
    if (offset / block.slot_size >= block.slots) return false;
    *slot = static_cast<unsigned>(offset / block.slot_size);
  } else {
    return false;
  }
  *number = b;
  return ((block.allocated[*slot / 64] >> (*slot % 64)) & 1) != 0;
}

// Printed as a number, where a char* would be printed as text.
const void* as_address(Word word) { return base::as_pointer(word); }

void require_marked(Word word, Word from) {
  BlockNumber b = 0;
  unsigned slot = 0;
  if (!lookup(word, &b, &slot)) return;
  if (space.blocks[b].state == BlockState::LargeHead && space.extras[b].held_by_first_block &&
      word - heap::block_address(b) >= heap::kBlockSize) {
    return;
  }
  if (((space.blocks[b].marks[slot / 64] >> (slot % 64)) & 1) == 0) {
    os::fatal("heap verifier: the object at ", as_address(word), " is reached from ",
              as_address(from), " and not marked");
  }
}

// The object that ends where the word points, if one does that leaves no room behind it.
void require_marked_before(Word word, Word from) {
  if (word - 1 - space.base >= space.span) return;
  BlockNumber b = 0;
  unsigned slot = 0;
  if (!lookup(word - 1, &b, &slot)) return;
  const Block& block = space.blocks[b];
  if (block.state == BlockState::Mixed) return;  // not checked there
  if (block.state == BlockState::Small && !heap::is_full_class(block.size_class)) return;
  const std::size_t size = heap::unmixed_size(block);
  if (heap::block_address(b) + Word{slot} * block.slot_size + size != word) return;
  if (((block.marks[slot / 64] >> (slot % 64)) & 1) == 0) {
    os::fatal("heap verifier: the object that ends at ", as_address(word), " is held from ",
              as_address(from), " and not marked");
  }
}

}  // namespace

void verify_structures() {
  const Found found = walk();
  verify_bins(found);
  verify_lists(found);
  alloc::visit_holes(verify_hole);
  alloc::visit_reserves(verify_reserved);
}

void verify_magazines() { alloc::visit_magazines(verify_kept); }

void verify_swept() {
  for (BlockNumber b = 1; b < space.committed; ++b) {
    const Block& block = space.blocks[b];
    if (!heap::has_slots_of_one_size(block)) continue;
    // Its sweep may be yet to come.
    if (heap::kinds[block.kind].disclaim != nullptr) continue;
    for (unsigned w = 0; w * 64 < block.slots; ++w) {
      if (block.allocated[w] != block.marks[w]) {
        broken("after a sweep, what is allocated is not what was marked", b, block.allocated[w]);
      }
    }
  }
}

// What is visited may hold the collector's own frames, which have changed since marking: a stack
// that a root function names whole, an object that a program made its stack, or, where roots are
// mappings, a stack that is not known yet.
template <class Visit>
[[gnu::no_sanitize_address]] void MarkVerifier::visit_words(const void* low, const void* high,
                                                            Visit visit) const {
  const Word end = base::align_down(base::as_word(high), sizeof(Word));
  const Word frames = base::as_word(__builtin_frame_address(0)) - kDeepestFrames;
  for (Word at = base::align_up(base::as_word(low), sizeof(Word)); at < end; at += sizeof(Word)) {
    if (at >= frames && at < base::as_word(stack_top_)) continue;
    visit(*reinterpret_cast<const Word*>(at), at);
  }
}

void MarkVerifier::visit_range(const void* low, const void* high) {
  visit_words(low, high, require_marked);
}

void MarkVerifier::visit_stack(const void* low, const void* high) {
  visit_range(low, high);
  if (!ends_hold_objects()) return;
  visit_words(low, high, [](Word word, Word at) {
    // A precise root points to its object and nowhere else: what ends there may have moved.
    if (word % heap::kGranule == 0 && !copy::is_precise_root(at)) require_marked_before(word, at);
  });
}

// In a partial collection, words of old objects that have not changed may lead to what was free
// when they were looked at. (Whether they changed, page_sums has verified.)
void MarkVerifier::visit_object(Word begin, Word end) {
  while (begin < end) {
    const Word next = base::min_of(end, base::align_down(begin, kPage) + kPage);
    if (!partial_ || !is_unwritten(begin)) range(base::as_pointer(begin), base::as_pointer(next));
    begin = next;
  }
}

void MarkVerifier::finish() {
  for (BlockNumber b = 1; b < space.committed; ++b) {
    const Block& block = space.blocks[b];
    if (block.state != BlockState::Small && !heap::is_head(block)) continue;
    for (unsigned slot = 0; slot < block.slots; ++slot) {
      const bool marked = ((block.marks[slot / 64] >> (slot % 64)) & 1) != 0;
      if (((block.allocated[slot / 64] >> (slot % 64)) & 1) == 0) {
        if (!marked && when_ == When::Marked) broken("a free slot could be marked", b, slot);
        continue;
      }
      // Only where every word counts; descriptors are the marker's own business.
      if (!marked || block.scan != heap::Scan::Words) continue;
      const Word begin = heap::block_address(b) + Word{slot} * block.slot_size;
      const std::size_t size = heap::unmixed_size(block);
      visit_object(begin, begin + size);
    }
  }
}

}  // namespace jd::cycle

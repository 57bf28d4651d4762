// Checks heap.req.runs, heap.req.bits, mark.req.complete and mark.req.free.
#include "cycle/verify.hpp"

#include "alloc/collecting.hpp"
#include "heap/kinds.hpp"
#include "heap/size_class.hpp"
#include "heap/space.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"

namespace jd::cycle {
namespace {

using base::Word;
using heap::Block;
using heap::BlockNumber;
using heap::BlockState;
using heap::space;

[[noreturn]] void broken(const char* invariant, BlockNumber block, Word detail) {
  os::fatal("heap verifier: ", invariant, " (block ", block, ", ", base::Hex{detail}, ")");
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
  // The reciprocal finds each slot from its first and last byte.
  for (unsigned slot = 0; slot < block.slots; ++slot) {
    const std::size_t first = std::size_t{slot} * block.slot_size;
    if (((first * block.magic) >> 32) != slot ||
        (((first + block.slot_size - 1) * block.magic) >> 32) != slot) {
      broken("a small block's reciprocal misses a slot", number, slot);
    }
  }
  for (unsigned w = 0; w * 64 < block.slots; ++w) {
    const unsigned left = block.slots - w * 64;
    if (left < 64 && (block.allocated[w] >> left) != 0) {
      broken("an allocated bit beyond the last slot", number, block.allocated[w]);
    }
  }
}

// Walks the block table by its own rules; returns the number of blocks in free runs.
BlockNumber walk() {
  BlockNumber free = 0;
  bool previous_free = false;
  for (BlockNumber b = 1; b < space.committed;) {
    const Block& block = space.blocks[b];
    switch (block.state) {
      case BlockState::Small:
        verify_small(b, block);
        previous_free = false;
        ++b;
        break;
      case BlockState::LargeHead:
        if (block.run == 0 || block.run > space.committed - b) {
          broken("a large object's run leaves the heap", b, block.run);
        }
        for (BlockNumber i = 1; i < block.run; ++i) {
          const Block& body = space.blocks[b + i];
          if (body.state != BlockState::LargeBody || body.run != i || body.slots != 0) {
            broken("a large object's body does not lead to its head", b + i, body.run);
          }
        }
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
        free += block.run;
        b += block.run;
        break;
      case BlockState::LargeBody:
        broken("a body block stands where a head should", b, block.run);
    }
  }
  return free;
}

void verify_hole(alloc::Hole* hole, heap::KindNumber kind) {
  const Block& block = space.blocks[hole->block];
  const char* start = reinterpret_cast<const char*>(heap::block_address(hole->block));
  const char* end = start + std::size_t{block.slots} * block.slot_size;
  if (block.state != BlockState::Small || block.kind != kind ||
      block.slot_size != hole->slot_size) {
    broken("a hole lies in a block of another sort", hole->block, kind);
  }
  if (hole->cursor < start || hole->end > end || hole->cursor > hole->end ||
      hole->limit > hole->end) {
    broken("a hole leaves its block", hole->block, base::as_word(hole->cursor));
  }
}

// The object that a word leads to, found by the definition instead of the reciprocal.
bool lookup(Word word, BlockNumber* number, unsigned* slot) {
  if (word < space.base || word >= space.base + space.span) return false;
  BlockNumber b = static_cast<BlockNumber>((word - space.base) / heap::kBlockSize);
  if (space.blocks[b].state == BlockState::LargeBody) {
    const BlockNumber distance = space.blocks[b].run;
    if (distance > b) return false;
    b -= distance;
    if (space.blocks[b].state != BlockState::LargeHead || distance >= space.blocks[b].run) {
      return false;
    }
  }
  const Block& block = space.blocks[b];
  const Word offset = word - (space.base + Word{b} * heap::kBlockSize);
  if (block.state == BlockState::LargeHead) {
    if (offset >= space.extras[b].bytes) return false;
    *slot = 0;
  } else if (block.state == BlockState::Small) {
    if (offset / block.slot_size >= block.slots) return false;
    *slot = static_cast<unsigned>(offset / block.slot_size);
  } else {
    return false;
  }
  *number = b;
  return ((block.allocated[*slot / 64] >> (*slot % 64)) & 1) != 0;
}

void require_marked(Word word, Word from) {
  BlockNumber b = 0;
  unsigned slot = 0;
  if (!lookup(word, &b, &slot)) return;
  if (space.blocks[b].state == BlockState::LargeHead && space.extras[b].held_by_first_block &&
      word - heap::block_address(b) >= heap::kBlockSize) {
    return;
  }
  if (((space.blocks[b].marks[slot / 64] >> (slot % 64)) & 1) == 0) {
    os::fatal("heap verifier: the object at ", base::as_pointer(word), " is reached from ",
              base::as_pointer(from), " and not marked");
  }
}

void require_words_marked(Word begin, std::size_t size) {
  for (Word at = begin; at + sizeof(Word) <= begin + size; at += sizeof(Word)) {
    require_marked(*reinterpret_cast<const Word*>(at), at);
  }
}

}  // namespace

void verify_structures() {
  walk();
  alloc::visit_holes(verify_hole);
}

[[gnu::no_sanitize_address]] void MarkVerifier::range(const void* low, const void* high) {
  const Word begin = base::align_up(base::as_word(low), sizeof(Word));
  const Word end = base::align_down(base::as_word(high), sizeof(Word));
  for (Word at = begin; at < end; at += sizeof(Word)) {
    require_marked(*reinterpret_cast<const Word*>(at), at);
  }
}

void MarkVerifier::finish() {
  for (BlockNumber b = 1; b < space.committed; ++b) {
    const Block& block = space.blocks[b];
    if (block.state != BlockState::Small && block.state != BlockState::LargeHead) continue;
    const bool small = block.state == BlockState::Small;
    for (unsigned slot = 0; slot < block.slots; ++slot) {
      const bool marked = ((block.marks[slot / 64] >> (slot % 64)) & 1) != 0;
      if (((block.allocated[slot / 64] >> (slot % 64)) & 1) == 0) {
        if (!marked) broken("a free slot could be marked", b, slot);
        continue;
      }
      // Only where every word counts; descriptors are the marker's own business.
      if (!marked || block.scan != heap::Scan::Words) continue;
      const Word begin = heap::block_address(b) + Word{slot} * block.slot_size;
      require_words_marked(begin, small ? block.slot_size : space.extras[b].bytes);
    }
  }
}

}  // namespace jd::cycle

// Copying live objects out of the sources, and rewriting what meant them.
#include <algorithm>

#include "copy/evacuate.hpp"
#include "copy/groups.hpp"
#include "copy/holders.hpp"
#include "copy/roles.hpp"
#include "copy/weak.hpp"
#include "heap/blocks.hpp"
#include "heap/layout.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"

namespace jd::copy {
namespace {

using heap::Block;
using heap::BlockState;
using heap::space;

std::uint64_t live_bits(const Block& block, unsigned word) {
  return block.marks[word] & block.allocated[word];
}

// Free slots for the objects of one group, in the order of addresses: of the group's blocks that
// are not sources; where everything is to move, of new blocks.
class Targets {
 public:
  Targets(std::size_t begin, std::size_t end) : at_(begin), end_(end), group_(blocks[begin]) {}

  // Takes a slot; false if there are no more.
  bool take(heap::Place* place) {
    while (free_ == 0) {
      if (!next_word()) return false;
    }
    const unsigned slot = word_ * 64 + base::lowest_bit(free_);
    const std::uint64_t bit = free_ & (0 - free_);
    free_ ^= bit;
    block_->marks[word_] |= bit;
    __atomic_store_n(&block_->allocated[word_], block_->allocated[word_] | bit, __ATOMIC_RELAXED);
    *place = {block_, slot};
    return true;
  }

 private:
  bool next_word() {
    if (block_ == nullptr || ++word_ == block_->bit_words()) {
      if (!next_block()) return false;
      word_ = 0;
    }
    free_ = ~live_bits(*block_, word_) & heap::bits_between(word_, 0, block_->slots);
    return true;
  }

  bool next_block() {
    for (; at_ < end_; ++at_) {
      if (roles[blocks[at_].number] == Role::Source) continue;
      block_ = &space.blocks[blocks[at_++].number];
      return true;
    }
    if (!policy.everything) return false;
    bool clean = false;
    BlockNumber number = heap::make_small_block(group_.kind, group_.size_class, &clean);
    if (number == heap::kNoBlock && heap::grow(1)) {
      number = heap::make_small_block(group_.kind, group_.size_class, &clean);
    }
    if (number == heap::kNoBlock) return false;
    block_ = &space.blocks[number];
    return true;
  }

  std::size_t at_;
  std::size_t end_;
  TypedBlock group_;
  Block* block_ = nullptr;
  unsigned word_ = 0;
  std::uint64_t free_ = 0;
};

// False when there is no room for more: then everything else stays where it is.
bool empty_block(BlockNumber number, Targets* targets) {
  Block& block = space.blocks[number];
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    for (std::uint64_t rest = live_bits(block, w) & ~pins[number].words[w]; rest != 0;
         rest &= rest - 1) {
      heap::Place to;
      if (!targets->take(&to)) return false;
      const heap::Place from{&block, w * 64 + base::lowest_bit(rest)};
      base::copy_bytes(base::as_pointer(to.address()), base::as_pointer(from.address()),
                       block.slot_size);
      *reinterpret_cast<Word*>(from.address()) = to.address();
      from.clear_mark();
      ++counts.objects;
      counts.bytes += block.slot_size;
    }
  }
  return true;
}

void fix_word(Word* word) {
  if (is_source(*word)) *word = moved(*word);
}

void fix_object(const heap::Place& place, const heap::Kind& kind) {
  heap::Typed typed;
  if (!heap::typed_at(place.address(), kind, &typed)) return;
  heap::for_each_run(typed, [](Word* first, std::size_t count) {
    for (Word* word = first; word != first + count; ++word) fix_word(word);
  });
}

}  // namespace

Policy policy;
bool in_use = false;
Counts counts;

void move_objects() {
  std::sort(blocks.begin(), blocks.end(), lower);
  for_each_group([](std::size_t begin, std::size_t end) {
    Targets targets(begin, end);
    for (std::size_t i = begin; i < end; ++i) {
      const BlockNumber number = blocks[i].number;
      if (roles[number] == Role::Source && !empty_block(number, &targets)) return;
    }
  });
  ++counts.collections;
}

Word moved(Word word) {
  if (!is_source(word)) return word;
  heap::Place place;
  if (!heap::find_object(word, &place)) {
    os::fatal("typed heap: a word means an object that does not exist: ", base::Hex{word});
  }
  if (place.marked()) return word;
  return *reinterpret_cast<const Word*>(place.address()) + (word - place.address());
}

void fix_words() {
  heap::for_each_block([](BlockNumber, Block& block) {
    const heap::Kind& kind = heap::kinds[block.kind];
    if (block.state == BlockState::Free || kind.source == heap::Source::None) return;
    if (block.scan == heap::Scan::None) return;
    heap::for_each_marked(block, [&](unsigned slot) { fix_object({&block, slot}, kind); });
  });
  visit_root_variables(fix_word);
  visit_weak_words(fix_word);
  rekey_hashes(moved);
}

}  // namespace jd::copy

// Copying live objects out of the sources, and rewriting what meant them.
#include <algorithm>

#include "copy/evacuate.hpp"
#include "copy/groups.hpp"
#include "copy/hashes.hpp"
#include "copy/holders.hpp"
#include "copy/policy.hpp"
#include "copy/roles.hpp"
#include "copy/weak.hpp"
#include "heap/blocks.hpp"
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
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

// A free block, of the heap as it is or of one block more.
template <class Make>
BlockNumber new_block(Make make) {
  BlockNumber number = make();
  if (number == heap::kNoBlock && growth.commit_more(1) && prepare_roles()) number = make();
  return number;
}

// Free slots for the objects of one group, in the order of addresses: of the group's blocks that
// are not sources; where everything is to move, of new blocks.
class SlotTargets {
 public:
  SlotTargets(std::size_t begin, std::size_t end) : at_(begin), end_(end), group_(blocks[begin]) {}

  // Takes a slot; false if there are no more.
  bool take(std::size_t /*bytes*/, heap::Place* place) {
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

  // Goes on there.
  void use(BlockNumber number) {
    block_ = &space.blocks[number];
    word_ = 0;
    free_ = free_in_word();
  }

 private:
  bool next_word() {
    if (block_ == nullptr || ++word_ == block_->bit_words()) {
      if (!next_block()) return false;
      word_ = 0;
    }
    free_ = free_in_word();
    return true;
  }

  [[nodiscard]] std::uint64_t free_in_word() const {
    return ~live_bits(*block_, word_) & heap::bits_between(word_, 0, block_->slots);
  }

  bool next_block() {
    for (; at_ < end_; ++at_) {
      if (roles[blocks[at_].number] == Role::Source) continue;
      block_ = &space.blocks[blocks[at_++].number];
      return true;
    }
    if (!policy.everything) return false;
    const BlockNumber number =
        new_block([this] { return heap::make_small_block(group_.kind, group_.size_class); });
    block_ = &space.blocks[number];
    return number != heap::kNoBlock;
  }

  std::size_t at_;
  std::size_t end_;
  TypedBlock group_;
  Block* block_ = nullptr;
  unsigned word_ = 0;
  std::uint64_t free_ = 0;
};

// The same for mixed blocks: gaps, each object's behind the one before.
class GapTargets {
 public:
  GapTargets(std::size_t begin, std::size_t end)
      : at_(begin), end_(end), kind_(blocks[begin].kind) {}

  bool take(std::size_t bytes, heap::Place* place) {
    const auto granules = static_cast<unsigned>(bytes / heap::kGranule);
    while (gap_.count() < granules) {
      if (!next_gap(granules)) return false;
    }
    heap::fill_gap(number_, gap_, granules);
    *place = {&space.blocks[number_], gap_.from};
    gap_.from += granules;
    return true;
  }

  // Goes on there.
  void use(BlockNumber number) {
    number_ = number;
    gap_ = {0, 0};
    searched_ = 0;
    // What is dead there is free from now on.
    unsigned free = 0;
    heap::sweep_mixed(number_, &free);
  }

 private:
  bool next_gap(unsigned granules) {
    while (number_ == heap::kNoBlock || searched_ == heap::kMixedGranules ||
           !heap::find_gap(number_, searched_, granules, &gap_)) {
      if (!next_block()) return false;
    }
    searched_ = gap_.to;
    return true;
  }

  bool next_block() {
    gap_ = {0, 0};
    searched_ = 0;
    for (; at_ < end_; ++at_) {
      if (roles[blocks[at_].number] == Role::Source) continue;
      use(blocks[at_++].number);
      return true;
    }
    // What is left of the others is too small for this object, and a new block will be full of what
    // sparse ones held.
    number_ = new_block([this] { return heap::make_mixed_block(kind_); });
    return number_ != heap::kNoBlock;
  }

  std::size_t at_;
  std::size_t end_;
  heap::KindNumber kind_;
  BlockNumber number_ = heap::kNoBlock;
  heap::Granules gap_{0, 0};
  unsigned searched_ = 0;
};

// Where there is no room for more (gaps were too small, or pinned objects took it), the next source
// of the group, of which nothing has moved, becomes a target.
template <class Targets>
bool make_target(std::size_t next, std::size_t end, Targets* targets) {
  while (next < end && roles[blocks[next].number] != Role::Source) ++next;
  if (next == end) return false;
  roles[blocks[next].number] = Role::None;
  targets->use(blocks[next].number);
  return true;
}

// Empties the block of that index. False when there is no room for more: then everything else stays
// where it is (copy.req.abort).
template <class Targets>
bool empty_block(std::size_t index, std::size_t end, Targets* targets) {
  const BlockNumber number = blocks[index].number;
  Block& block = space.blocks[number];
  for (unsigned w = 0; w < block.bit_words(); ++w) {
    for (std::uint64_t rest = live_bits(block, w) & ~pinned[number].words[w]; rest != 0;
         rest &= rest - 1) {
      const heap::Place from{&block, w * 64 + base::lowest_bit(rest)};
      const std::size_t bytes =
          from.is_mixed()
              ? std::size_t{heap::tile_end(number, from.slot) - from.slot} * heap::kGranule
              : block.slot_size;
      heap::Place to;
      while (!targets->take(bytes, &to)) {
        if (!make_target(index + 1, end, targets)) return false;
      }
      base::copy_bytes(base::as_pointer(to.address()), base::as_pointer(from.address()), bytes);
      *reinterpret_cast<Word*>(from.address()) = to.address();
      from.clear_mark();
      ++counts.objects;
      counts.bytes += bytes;
    }
  }
  return true;
}

template <class Targets>
void empty_group(std::size_t begin, std::size_t end) {
  Targets targets(begin, end);
  for (std::size_t i = begin; i < end; ++i) {
    if (roles[blocks[i].number] == Role::Source && !empty_block(i, end, &targets)) return;
  }
}

// `layout` is that of the object in which the word lies; null if there is none.
Word moved_from(Word word, const Word* at, const heap::Layout* layout) {
  heap::Place place;
  if (!heap::find_object(word, &place)) {
    os::fatal("typed heap: a word means an object that does not exist: ", base::Hex{word}, " at ",
              base::Hex{base::as_word(at)}, " (layout ", layout != nullptr ? layout->name : "none",
              ")");
  }
  if (place.marked()) return word;
  return *reinterpret_cast<const Word*>(place.address()) + (word - place.address());
}

void fix_word(Word* word, const heap::Layout* layout) {
  if (is_source(*word)) *word = moved_from(*word, word, layout);
}

void fix_object(const heap::Place& place, const heap::Kind& kind) {
  heap::Typed typed;
  if (!heap::typed_at(place.address(), kind, &typed)) return;
  heap::for_each_stretch(typed, [&typed](Word* first, std::size_t count) {
    for (Word* word = first; word != first + count; ++word) fix_word(word, typed.layout);
  });
}

}  // namespace

void move_objects() {
  std::sort(blocks.begin(), blocks.end(), lower);
  for_each_group([](std::size_t begin, std::size_t end) {
    if (blocks[begin].is_mixed()) {
      empty_group<GapTargets>(begin, end);
    } else {
      empty_group<SlotTargets>(begin, end);
    }
  });
  ++counts.collections;
}

Word moved(Word word) { return is_source(word) ? moved_from(word, nullptr, nullptr) : word; }

void fix_words() {
  heap::for_each_block([](BlockNumber, Block& block) {
    const heap::Kind& kind = heap::kinds[block.kind];
    if (block.state == BlockState::Free || !kind.has_layout()) return;
    if (block.scan == heap::Scan::None) return;
    heap::for_each_marked(block, [&](unsigned slot) { fix_object({&block, slot}, kind); });
  });
  const auto fix_lone_word = [](Word* word) { fix_word(word, nullptr); };
  visit_precise_roots(fix_lone_word);
  visit_weak_words(fix_lone_word);
  rekey_hashes(moved);
}

}  // namespace jd::copy

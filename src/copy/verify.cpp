#include "copy/verify.hpp"

#include "copy/roles.hpp"
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/walk.hpp"
#include "os/log.hpp"

namespace jd::copy {
namespace {

using heap::Block;
using heap::BlockState;
using heap::space;

// Whether the word means a marked object, by division instead of the record's reciprocal.
bool means_live_object(Word word) {
  BlockNumber number = heap::block_number(word);
  if (space.blocks[number].state == BlockState::Body) number -= space.blocks[number].run;
  const Block& block = space.blocks[number];
  unsigned slot = 0;
  if (heap::has_slots_of_one_size(block)) {
    slot = static_cast<unsigned>((word - heap::block_address(number)) / block.slot_size);
  } else if (block.state == BlockState::Mixed) {
    heap::Place place;
    if (!heap::find_mixed(word, &place)) return false;  // a gap, or a thread's hole
    slot = place.slot;
  } else if (block.state != BlockState::LargeHead) {
    return false;
  }
  if (slot >= block.slots) return false;
  const std::uint64_t live = block.marks[slot / 64] & block.allocated[slot / 64];
  return ((live >> (slot % 64)) & 1) != 0;
}

void verify_words(const heap::Typed& typed) {
  heap::for_each_stretch(typed, [&typed](Word* first, std::size_t count) {
    for (Word* word = first; word != first + count; ++word) {
      if (!heap::in_heap(*word) || means_live_object(*word)) continue;
      os::fatal("heap verifier: a word of a ", typed.layout->name,
                " means no live object: ", base::Hex{*word}, ", ",
                base::as_word(word) - typed.object, " bytes from the beginning of the one at ",
                base::Hex{typed.object});
    }
  });
}

}  // namespace

void verify_typed_words() {
  heap::for_each_block([](BlockNumber number, const Block& block) {
    const heap::Kind& kind = heap::kinds[block.kind];
    if (block.state == BlockState::Free || !kind.has_layout()) return;
    // A large object that is still being cleared is none yet.
    if (block.scan == heap::Scan::None) return;
    heap::for_each_marked(block, [&](unsigned slot) {
      heap::Typed typed;
      const Word memory = heap::block_address(number) + std::size_t{slot} * block.slot_size;
      if (heap::typed_at(memory, kind, &typed)) verify_words(typed);
    });
  });
}

void verify_pins() {
  heap::for_each_block([](BlockNumber number, const Block& block) {
    if (block.state == BlockState::Free || roles[number] != Role::Source) return;
    for (unsigned slot = 0; slot < block.slots; ++slot) {
      if (pinned[number].has(slot) && !(block.marked(slot) && block.is_allocated(slot))) {
        os::fatal("heap verifier: a pinned object moved (block ", number, ", slot ", slot, ")");
      }
    }
  });
}

}  // namespace jd::copy

// What must not move: objects that a word means which nobody will rewrite.
#include "copy/evacuate.hpp"
#include "copy/holders.hpp"
#include "copy/policy.hpp"
#include "copy/roles.hpp"
#include "copy/untyped.hpp"
#include "heap/walk.hpp"

namespace jd::copy {
namespace {

using heap::Block;
using heap::BlockState;
using heap::Kind;
using heap::Scan;

void pin_slot(const Block& block, unsigned slot) {
  if (!block.is_allocated(slot) || !block.marked(slot)) return;
  if (pinned[heap::number_of(&block)].add(slot)) ++counts.pinned_last;
}

void pin_word(Word word) { pin_meaning_of(word, false); }

}  // namespace

void pin_meaning_of(Word word, bool past_end) {
  heap::Place place;
  if (is_source(word) && heap::find_place(word, &place)) pin_slot(*place.block, place.slot);
  if (!past_end || word % heap::kGranule != 0 || !is_source(word - 1)) return;
  if (heap::find_place(word - 1, &place) && place.ends_at(word)) {
    pin_slot(*place.block, place.slot);
  }
}

void pin_from_objects() {
  heap::for_each_block([](BlockNumber, Block& block) {
    if (block.state == BlockState::Free || block.scan == Scan::None) return;
    const Kind& kind = heap::kinds[block.kind];
    if (kind.has_layout()) return;
    for (unsigned w = 0; w < block.bit_words(); ++w) {
      // Dead objects that their disclaim function may keep have their words as they are.
      const std::uint64_t read =
          kind.disclaim != nullptr ? block.allocated[w] : block.marks[w] & block.allocated[w];
      heap::for_each_bit(&read, 64, [&](unsigned bit) {
        visit_ambiguous({&block, w * 64 + bit}, pin_word);
      });
    }
  });
  visit_program_pins(pin_word);
}

}  // namespace jd::copy

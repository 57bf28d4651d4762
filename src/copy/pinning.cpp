// What must not move: objects that a word means which nobody will rewrite.
#include "copy/evacuate.hpp"
#include "copy/holders.hpp"
#include "copy/policy.hpp"
#include "copy/roles.hpp"
#include "heap/size_class.hpp"
#include "heap/walk.hpp"
#include "mark/descriptor.hpp"

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

void pin_words(Word begin, std::size_t bytes) {
  for (Word at = begin; at + sizeof(Word) <= begin + bytes; at += sizeof(Word)) {
    pin_word(*reinterpret_cast<const Word*>(at));
  }
}

// A mark procedure may make pointers of words that are none.
void pin_by_procedure(const heap::Place& place, const Kind& kind) {
  mark::push_instead = pin_word;
  mark::call_procedure(place.address(), place.size(), heap::descriptor_of(kind, place.size()));
  mark::push_instead = nullptr;
}

void pin_from(const heap::Place& place) {
  const Kind& kind = heap::kinds[place.block->kind];
  pin_words(place.address(), place.size());
  if (place.block->scan == Scan::Descriptor) pin_by_procedure(place, kind);
}

}  // namespace

void pin_meaning_of(Word word, bool past_end) {
  heap::Place place;
  if (is_source(word) && heap::find_place(word, &place)) pin_slot(*place.block, place.slot);
  if (!past_end || word % heap::kGranule != 0 || !is_source(word - 1)) return;
  if (!heap::find_place(word - 1, &place)) return;
  // Mixed blocks have a full class.
  if (heap::is_full_class(place.block->size_class)) {
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
      heap::for_each_bit(&read, 64, [&](unsigned bit) { pin_from({&block, w * 64 + bit}); });
    }
  });
  visit_program_pins(pin_word);
}

}  // namespace jd::copy

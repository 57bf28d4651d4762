// What the loop calls where a word or an object is not of the frequent sort: in a large or a mixed
// block, or with a layout that a word's bits can't say.
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/size_class.hpp"
#include "heap/snapshot.hpp"
#include "heap/space.hpp"
#include "mark/descriptor.hpp"
#include "mark/elements.hpp"
#include "mark/marker.hpp"
#include "mark/visit.hpp"

namespace jd::mark {

using heap::Block;
using heap::BlockState;
using heap::kBlockSize;
using heap::Scan;

bool Marker::mark(const heap::Place& place) {
  if (in_team_) {
    const unsigned w = place.slot / 64;
    const View view(own_marks_.entries(), touched_.entries());
    const Word begin = heap::block_address(heap::number_of(place.block));
    return mark_in_team(view, begin, &place.block->marks[w], &view.own_marks_of(begin).words[w],
                        std::uint64_t{1} << (place.slot % 64));
  }
  if (place.marked()) return false;
  if (beside_) return place.set_mark_beside_others();
  place.set_mark();
  return true;
}

// Beside the program: is it an object that only a stopped world tells how to scan, or that is not
// there any more? What is there (heap/snapshot.hpp) is of the kind that its block says.
bool Marker::puts_aside(Entry entry) {
  if (!beside_) return false;
  const Word object = base::as_word(entry.next);
  if (!heap::was_noted(object)) return true;
  const Block& block = View().record_of(object);
  if (block.state == BlockState::Small && heap::kinds[block.kind].pointer_bits != 0) return false;
  if (!put_aside_.push(entry)) overflowed_ = true;
  return true;
}

// Words that lead into the body of a large object or a span, or nowhere.
Entry Marker::visit_unusual(Word word) {
  heap::Place place;
  if (!heap::find_object(word, &place) || !place.is_held_by(word) || !mark(place)) return kNothing;
  return contents_of(*place.block, place.address());
}

// An object with a descriptor stays one entry until it is taken from the ring or the stack. So a
// mark procedure that pushes an object of its own kind, which pushes another, does not recurse.
Entry Marker::contents_of(const Block& block, Word address) {
  if (block.scan == Scan::None) return kNothing;
  if (block.scan == Scan::Descriptor) return Entry::object(address);
  const std::size_t size = heap::unmixed_size(block);
  // Its pages are asked for when its turn comes: many such objects may be met at once.
  if (__builtin_expect(size >= by_written_pages_from, 0) && !heap::extra_of(&block).filled) {
    return Entry::object(address);
  }
  return {reinterpret_cast<const Word*>(address), reinterpret_cast<const Word*>(address + size)};
}

// The pointers of an object that says its layout itself. What a word's bits can't say is on the
// stack.
inline Marker::Pointers Marker::pointers_at(Word memory, const heap::Kind& kind) {
  const Word first = *reinterpret_cast<const Word*>(memory);
  if (__builtin_expect(first == 0, 0)) return {};
  const bool headed = kind.layout_from == heap::LayoutFrom::Header;
  const heap::Layout& layout =
      headed ? heap::layout_of_header(first, memory) : heap::layout_of_self(first, memory);
  if (__builtin_expect(!layout.is_short, 0)) return scan_mixed(memory, kind);
  return {reinterpret_cast<const Word*>(memory + (headed ? heap::kHeaderBytes : 0)), layout.bits};
}

// Out of line, as pointers_at_granule: pointers_of_mixed's registers are for what is frequent.
[[gnu::noinline]] Marker::Pointers Marker::scan_mixed(Word memory, const heap::Kind& kind) {
  heap::Typed typed;
  if (heap::typed_at(memory, kind, &typed)) scan_layout(typed);
  return {};
}

// Of a granule whose bit was set, in which an object may begin, or which may lie in one, or be
// free.
[[gnu::noinline]] Marker::Pointers Marker::pointers_at_granule(heap::Block* block, Word granule) {
  heap::learn_starts(heap::number_of(block));
  heap::Place place;
  if (!heap::find_mixed(granule, &place)) return {};
  const Word memory = place.address();
  if (memory != granule && !mark(place)) return {};
  return pointers_at(memory, heap::kinds[block->kind]);
}

// Of a pointer-free object nothing is looked at: so it is found at once where the granule, whose
// bit was set, is not its first.
void Marker::mark_leaf(heap::Block* block, unsigned granule) {
  const heap::BlockNumber number = heap::number_of(block);
  if (__builtin_expect(block->known_starts() == heap::Starts::Open, 0)) heap::learn_starts(number);
  if (__builtin_expect(block->is_allocated(granule), 1)) return;
  heap::Place place;
  if (heap::find_mixed(heap::block_address(number) + Word{granule} * heap::kGranule, &place)) {
    mark(place);
  }
}

Marker::Pointers Marker::pointers_of_mixed(heap::Block* block, Word granule) {
  const auto slot = static_cast<unsigned>((granule & (kBlockSize - 1)) / heap::kGranule);
  if (__builtin_expect(block->known_starts() != heap::Starts::Known || !block->is_allocated(slot),
                       0)) {
    return pointers_at_granule(block, granule);
  }
  return pointers_at(granule, heap::kinds[block->kind]);
}

// The record with the slots that the address lies in, if it lies in a span.
const Block& record_with_slots(const Block& block) {
  if (block.state != BlockState::Body) return block;
  const Block& head = *(&block - block.run);
  return head.state == BlockState::SpanHead ? head : block;
}

// Is it a place within an object in a run, at which elements wait (next_elements)?
bool is_within_object(const Block& block, Word address) {
  if (block.state == BlockState::SpanHead) {
    const Word offset = address - heap::block_address(heap::number_of(&block));
    return offset != Word{block.slot_of(offset)} * block.slot_size;
  }
  return block.state == BlockState::Body || address % kBlockSize != 0;
}

// What the descriptor of an object says that lies in no mixed block.
[[gnu::always_inline]] inline Marker::Described Marker::describe_by(Word descriptor, Word object,
                                                                    std::size_t size) {
  const auto* words = reinterpret_cast<const Word*>(object);
  const std::size_t count = size / sizeof(Word);
  descriptor = final_descriptor(object, size, descriptor);
  switch (descriptor & heap::kDescriptorTag) {
    case heap::kTagBitmap:
      return {kNothing, {words, descriptor & ~heap::kDescriptorTag & first_bits(count)}};
    case heap::kTagLength:
      return {{words, words + base::min_of(count, descriptor / sizeof(Word))}, {}};
    default:
      scan_descriptor(object, size, descriptor);
      return {};
  }
}

// The same of any that lies in no mixed block.
Marker::Described Marker::describe(Word object) {
  const Block& record = View().record_of(object);
  const heap::Kind& own_kind = heap::kinds[record.kind];
  // Nearly all that have descriptors of the program's.
  if (__builtin_expect(record.state == BlockState::Small && own_kind.layout == nullptr, 1)) {
    const std::size_t size = record.slot_size;
    return describe_by(heap::descriptor_of(own_kind, size), object, size);
  }
  const Block& block = record_with_slots(record);
  if (__builtin_expect(block.state != BlockState::Small, 0)) {
    if (is_within_object(block, object)) return {kNothing, waiting_elements(object)};
    // Of a span's objects, none comes here: their pages are not asked for.
    if (block.scan == Scan::Words) {
      push_written_pages(object, heap::unmixed_size(block));
      return {};
    }
  }
  const heap::Kind& kind = heap::kinds[block.kind];
  if (kind.layout != nullptr && kind.layout->trace != nullptr) {
    queue_stretches({kind.layout, object, heap::words_of_homogeneous(*kind.layout, object)});
    return {};
  }
  const std::size_t size = heap::unmixed_size(block);
  const std::size_t count = size / sizeof(Word);
  const Word descriptor = heap::descriptor_of(kind, size);
  if (count > heap::kBitmapWords && kind.layout != nullptr &&
      kind.layout->element_pointers != nullptr &&
      (descriptor & heap::kDescriptorTag) == heap::kTagBitmap) {
    scan_layout({kind.layout, object, count});
    return {};
  }
  return describe_by(descriptor, object, size);
}

}  // namespace jd::mark

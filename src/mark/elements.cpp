#include "mark/elements.hpp"

#include "heap/layout.hpp"
#include "mark/descriptor.hpp"
#include "mark/marker.hpp"

namespace jd::mark {
namespace {

// Steps of a large array's elements in a part of it: what no other marker gets. 4096 words, some
// tens of microseconds; others were not tried.
constexpr std::size_t kPartSteps = 64;

std::size_t elements_in_step(const Elements& elements) {
  return elements.pointer_bits != 0 ? 64 * sizeof(Word) / elements.size : 1;
}

std::size_t lowest_power(std::size_t n) { return n & (~n + 1); }

Word bits_of_element(std::size_t size, Word descriptor) {
  if (size > 64 * sizeof(Word) || size % sizeof(Word) != 0) return 0;
  const Word in_element = first_bits(size / sizeof(Word));
  switch (descriptor & heap::kDescriptorTag) {
    case heap::kTagLength:
      return first_bits(descriptor / sizeof(Word)) & in_element;
    case heap::kTagBitmap:
      return descriptor & ~heap::kDescriptorTag & in_element;
    default:
      return 0;
  }
}

// Pre: the layout has elements.
Elements elements_of(const heap::Typed& typed) {
  const heap::Layout& layout = *typed.layout;
  return {typed.object + layout.fixed_words * sizeof(Word),
          (typed.words - layout.fixed_words) * sizeof(Word) / layout.element_bytes,
          layout.element_bytes,
          layout.element_bits,
          &layout,
          0};
}

}  // namespace

Elements elements_of(Word object, std::size_t size) {
  const auto* tail =
      reinterpret_cast<const DescribedArrayTail*>(object + size - sizeof(DescribedArrayTail));
  // An array whose tail is not written yet has no elements. And programs write beyond their arrays.
  const std::size_t element = tail->element_size;
  if (element == 0) return {};
  const std::size_t room = (size - sizeof(DescribedArrayTail)) / element;
  return {object,  base::min_of(tail->elements, room),
          element, bits_of_element(element, tail->element_descriptor),
          nullptr, tail->element_descriptor};
}

// What was pushed in the order of its words is turned round, so that the first is taken first
// (Loop::scan_backwards says why; through the rings, too, words go in the order of the stack).
void Marker::reverse_above(std::ptrdiff_t height) {
  for (Entry *low = stack_ + height, *high = top_; low + 1 < high; ++low) {
    const Entry entry = *low;
    *low = *--high;
    *high = entry;
  }
}

void Marker::queue_stretches(const heap::Typed& typed) {
  const std::ptrdiff_t before = top_ - stack_;
  heap::for_each_stretch(typed,
                         [this](Word* first, std::size_t count) { queue_stretch(first, count); });
  reverse_above(before);
}

void Marker::scan_layout(const heap::Typed& typed) {
  const heap::Layout& layout = *typed.layout;
  const bool has_pointers_apart =
      layout.trace == nullptr && layout.element_pointers != nullptr && !layout.element_is_pointers;
  if (!has_pointers_apart || typed.words * sizeof(Word) <= heap::kMaxSmall) {
    return queue_stretches(typed);
  }
  scan_elements(elements_of(typed));
  queue_stretches({&layout, typed.object, layout.fixed_words});
}

void Marker::scan_described_array(Word object, std::size_t size) {
  const Elements elements = elements_of(object, size);
  if (size > heap::kMaxSmall) return scan_elements(elements);
  for (std::size_t i = elements.count; i-- > 0;) scan_element(elements, i);
}

void Marker::scan_element(const Elements& elements, std::size_t index) {
  const Word element = elements.at(index);
  if (elements.layout == nullptr) {
    return scan_descriptor(element, elements.size, elements.descriptor);
  }
  const std::ptrdiff_t before = top_ - stack_;
  heap::for_each_stretch_of_elements(
      *elements.layout, reinterpret_cast<Word*>(element),
      reinterpret_cast<const Word*>(elements.at(index + 1)),
      [this](Word* first, std::size_t count) { queue_stretch(first, count); });
  reverse_above(before);
}

// The first step over the stack, since the object's address stands for the whole object.
void Marker::scan_elements(const Elements& elements) {
  if (elements.count == 0) return;
  Pointers pointers = next_elements(elements, 0);
  while (pointers.bits != 0) push_word_at(pointers.take_last());
}

// Elements wait on the stack. For those for which it has no room, there is no other time.
void Marker::await_elements(const Elements& elements, std::size_t index, std::size_t end) {
  if (top_ != limit_ || extend_stack()) {
    *top_++ = Entry::object(elements.at(index));
    return;
  }
  for (; index < end; ++index) scan_element(elements, index);
}

// An entry at an element stands for those up to the end of its part, and at the beginning of the
// n-th part for as many parts as the largest power of two that divides n; of 0, for all. So what
// waits of an array is a few entries, the oldest of which stands for half of it: other markers take
// that one first. Leaves on the stack what the entry stands for but for one step, which it returns.
Marker::Pointers Marker::next_elements(const Elements& elements, std::size_t index) {
  const std::size_t step = elements_in_step(elements);
  const std::size_t part = step * kPartSteps;
  if (index % part == 0) {
    const std::size_t number = index / part;
    const std::size_t parts = base::div_up(elements.count, part);
    const auto begin_of = [&](std::size_t n) { return base::min_of(n * part, elements.count); };
    std::size_t stands_for = lowest_power(number);
    if (number == 0) stands_for = std::size_t{2} << base::log2_floor(parts);
    while ((stands_for /= 2) != 0) {
      const std::size_t behind = number + stands_for;
      if (behind >= parts) continue;
      await_elements(elements, begin_of(behind), begin_of(behind + stands_for));
    }
  }
  const std::size_t next = base::min_of(index + step, elements.count);
  if (next != elements.count && next % part != 0) {
    await_elements(elements, next, base::min_of((index / part + 1) * part, elements.count));
  }
  if (elements.pointer_bits == 0) {
    scan_element(elements, index);
    return {};
  }
  const std::size_t words = elements.size / sizeof(Word);
  Word bits = elements.pointer_bits;
  for (std::size_t repeated = words; repeated < 64; repeated *= 2) bits |= bits >> repeated;
  return {reinterpret_cast<const Word*>(elements.at(index)),
          bits & first_bits((next - index) * words)};
}

Marker::Pointers Marker::waiting_elements(Word address) {
  heap::Place place;
  if (!heap::find_place(address, &place)) return {};
  const Word memory = place.address();
  const heap::Kind& kind = heap::kinds[place.block->kind];
  Elements elements{};
  heap::Typed typed;
  if (!kind.has_layout()) {
    elements = elements_of(memory, place.size());
  } else if (heap::typed_at(memory, kind, &typed)) {
    elements = elements_of(typed);
  }
  if (elements.size == 0) return {};
  return next_elements(elements, (address - elements.first) / elements.size);
}

}  // namespace jd::mark

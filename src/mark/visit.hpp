// From a word to its object's mark bit: what the loop and the scan of the roots share, inlined into
// both.
#pragma once

#include "heap/space.hpp"
#include "mark/entry.hpp"
#include "mark/marker.hpp"

namespace jd::mark {

// What the loop asks of the heap. A copy: the compiler cannot know that setting a mark bit leaves
// `heap::space` alone, and would read that again for every word.
struct Marker::View {
  // From the compiler: `word + below` stays that, one instruction, where a difference is two.
  static Word hidden(Word word) {
    asm("" : "+r"(word));
    return word;
  }

  Word base = heap::space.base;
  Word below = hidden(0 - heap::space.base);
  Word span = heap::space.span;
  // Where the record of the block at address 0 would be.
  Word records = base::as_word(heap::space.blocks) -
                 (heap::space.base >> heap::kBlockShift) * sizeof(heap::Block);

  // The same of a marker's own bits, in company, and of what says where they are.
  Word own_marks = 0;
  Word touched = 0;

  View() = default;
  View(const OwnMarks* own, const std::uint8_t* touched)
      : own_marks(base::as_word(own) - (heap::space.base >> heap::kBlockShift) * sizeof(OwnMarks)),
        touched(base::as_word(touched) - (heap::space.base >> (heap::kBlockShift + kTouchShift))) {}

  [[nodiscard]] bool holds(Word word) const { return word + below < span; }
  [[nodiscard]] OwnMarks& own_marks_of(Word word) const {
    return *reinterpret_cast<OwnMarks*>(own_marks + (word >> heap::kBlockShift) * sizeof(OwnMarks));
  }
  void note_own_marks_of(Word word) const {
    *reinterpret_cast<std::uint8_t*>(touched + (word >> (heap::kBlockShift + kTouchShift))) = 1;
  }
  [[nodiscard]] heap::Block& record_of(Word word) const {
    return *reinterpret_cast<heap::Block*>(records +
                                           (word >> heap::kBlockShift) * sizeof(heap::Block));
  }
};

// Marks beside other markers without an atomic instruction, of which each would cost as much as
// scanning a small object. The shared bit may get lost: another marker that sets a bit of the same
// word at the same time writes back what it read before. Then somebody finds it clear and scans the
// object again, at most once each. What counts in the end are the markers' own bits (Team::mark).
inline bool Marker::mark_in_team(const View& view, Word word, std::uint64_t* shared,
                                 std::uint64_t* own, std::uint64_t bit) {
  const std::uint64_t seen = __atomic_load_n(shared, __ATOMIC_RELAXED);
  if ((seen & bit) != 0) return false;
  __atomic_store_n(shared, seen | bit, __ATOMIC_RELAXED);
  if ((*own & bit) != 0) return false;
  *own |= bit;
  view.note_own_marks_of(word);
  return true;
}

// Everything from the first ring's end to what is scanned next: finds the slot, tests and sets the
// mark. True if the object is newly marked and may have words to scan: then they are in *contents.
template <Marker::Company kCompany>
[[gnu::always_inline]] inline bool Marker::visit(const View& view, Word word, Entry* contents) {
  heap::Block& block = view.record_of(word);
  const Word offset = word & (heap::kBlockSize - 1);
  const std::uint64_t product = offset * block.magic;
  const auto slot = static_cast<unsigned>(product >> 32);
  if (__builtin_expect(slot >= block.slots, 0)) {
    *contents = visit_unusual(word);
    return contents->next != nullptr;
  }
  const std::uint64_t bit = std::uint64_t{1} << (slot & 63);
  std::uint64_t& marks = block.marks[slot >> 6];
  // The mark of a free slot is set, too.
  if constexpr (kCompany == Company::Team) {
    std::uint64_t& own = view.own_marks_of(word).words[slot >> 6];
    if (!mark_in_team(view, word, &marks, &own, bit)) return false;
  } else if constexpr (kCompany == Company::Steps) {
    const std::uint64_t seen = __atomic_load_n(&marks, __ATOMIC_RELAXED);
    if (((seen >> (slot & 63)) & 1) != 0) return false;
    if (!beside_) {
      marks = seen | bit;
    } else if ((__atomic_fetch_or(&marks, bit, __ATOMIC_RELAXED) & bit) != 0) {
      // The program has freed it; or it would be lost that it frees another object of the word.
      return false;
    }
  } else {
    const std::uint64_t seen = marks;
    if (((seen >> (slot & 63)) & 1) != 0) return false;
    marks = seen | bit;
  }
  // Mostly the word is the slot's address (heap::is_slot_begin). Then the object's words can be
  // asked for without waiting for the slot's number; hidden, or the compiler would wait after all.
  Word address = word;
  if (__builtin_expect(!heap::is_slot_begin(product, block.magic), 0)) {
    address = View::hidden(word - offset + Word{slot} * block.slot_size);
  }
  if (__builtin_expect(block.state == heap::BlockState::Small && block.scan == heap::Scan::Words,
                       1)) {
    *contents = {reinterpret_cast<const Word*>(address),
                 reinterpret_cast<const Word*>(address + block.slot_size)};
    if (contents->is_object()) __builtin_unreachable();
    return true;
  }
  // An object of a homogeneous layout, as a rule. (A run of no words is scanned, too: an array
  // without elements.)
  if (block.state == heap::BlockState::Small && block.pointers.end != 0) {
    *contents = {reinterpret_cast<const Word*>(address + block.pointers.begin),
                 reinterpret_cast<const Word*>(address + block.pointers.end)};
    if (contents->is_object()) __builtin_unreachable();
    return true;
  }
  if (block.scan == heap::Scan::None) {
    if (__builtin_expect(block.state == heap::BlockState::Mixed, 0)) mark_leaf(&block, slot);
    return false;
  }
  if (block.scan == heap::Scan::Descriptor) {
    // What its descriptor says may lie in the object, which has not arrived yet: mostly in its last
    // word (libgc/described.cpp). (contents_of says so too, but is a call.)
    *contents = Entry::object(address);
    __builtin_prefetch(base::as_pointer(address + block.slot_size - sizeof(Word)), 0, 3);
  } else {
    *contents = contents_of(block, address);
  }
  return true;
}

}  // namespace jd::mark

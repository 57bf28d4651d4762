// Ambiguous roots: static data by lines, of which few words are pointers, and stacks, of which many
// are (docs/design/mark.md, "Roots").
#include "base/bits.hpp"
#include "heap/size_class.hpp"
#include "mark/filter.hpp"
#include "mark/visit.hpp"

namespace jd::mark {
namespace {

// What roots lead to is marked when so many entries wait, half a megabyte of them: seldom, so that
// their time is measured apart. Not measured against others.
constexpr std::ptrdiff_t kMostRootEntries = base::kMiB / 2 / sizeof(Entry);

// Words of the stack that is being scanned that were looked at lately, each where its address says:
// one in eight of its words (a guess), for clearing takes time, and at most all of these.
constexpr std::size_t kRememberedOf = 8;
constexpr std::size_t kMostRemembered = 1024;
// Under the lock. All clear outside of scan_stack: where the library is linked statically, its data
// are scanned as the program's are, and what is left here would hold objects.
Word seen[kMostRemembered];

}  // namespace

// An object that fills its slot may be meant by a word one past its end, which mostly is a pointer
// to the object behind it.
inline void Marker::mark_object_ending_at(const View& view, Word word) {
  const Word offset = word & (heap::kBlockSize - 1);
  heap::Block& block = view.record_of(word);
  if (__builtin_expect(offset == 0 || block.state != heap::BlockState::Small, 0)) {
    mark_unusual_object_ending_at(word);
    return;
  }
  if (!heap::is_full_class(block.size_class)) return;
  const unsigned slot = block.slot_of(offset - 1);
  if (slot >= block.slots || (slot + 1) * block.slot_size != offset) return;
  const heap::Place before{&block, slot};
  if (before.marked() || !before.allocated()) return;
  before.set_mark();
  push_contents(before);
}

// Half, because marking needs some room itself.
Entry* Marker::drain_above() {
  return stack_ + base::min_of((reserved_limit_ - stack_) / 2, kMostRootEntries);
}

// Within the loops over roots: a call of it took a third more instructions.
[[gnu::always_inline, gnu::no_sanitize_address]] inline void Marker::mark_ambiguous(
    const View& view, Word word, bool past_end, const Entry* most) {
  if (__builtin_expect(!view.holds(word), 0)) return mark_unusual_object_ending_at(word);
  Entry contents;
  if (visit<Company::Alone>(view, word, &contents)) push(contents);
  if (past_end && word % heap::kGranule == 0) mark_object_ending_at(view, word);
  if (__builtin_expect(top_ > most, 0)) drain();
}

// Helpers are asleep while roots are scanned.
[[gnu::no_sanitize_address]] void Marker::scan_roots(const void* low, const void* high) {
  const View view;
  const HeapFilter filter = HeapFilter::of_heap();
  const Entry* const most = drain_above();
  const auto* const end =
      reinterpret_cast<const Word*>(base::align_down(base::as_word(high), sizeof(Word)));
  const auto* at = reinterpret_cast<const Word*>(base::align_up(base::as_word(low), sizeof(Word)));
  while (at < end) {
    at = filter.skip(at, end);
    for (const Word* const some = at + base::min_of(end - at, HeapFilter::kWords); at < some;
         ++at) {
      const Word word = *at;
      if (view.holds(word)) mark_ambiguous(view, word, false, most);
    }
  }
}

// Reads whole stacks, red zones and all. Of a stack, most fours hold some pointer into the heap, so
// it is not filtered; and frames of a recursion hold the same words.
[[gnu::no_sanitize_address]] void Marker::scan_stack(const void* low, const void* high,
                                                     bool past_end) {
  const View view;
  // The last object of the heap ends where the heap does.
  const Word within = view.span + (past_end ? 1 : 0);
  const Word end = base::align_down(base::as_word(high), sizeof(Word));
  Word at = base::align_up(base::as_word(low), sizeof(Word));
  if (at >= end) return;
  const Entry* const most = drain_above();
  const std::size_t words = (end - at) / sizeof(Word);
  const std::size_t remembered =
      base::min_of(std::size_t{1} << base::log2_floor(words / kRememberedOf + 1), kMostRemembered);
  for (; at < end; at += sizeof(Word)) {
    const Word word = *reinterpret_cast<const Word*>(at);
    if (word + view.below >= within) continue;
    Word& last = seen[word / heap::kGranule & (remembered - 1)];
    if (last == word) continue;
    last = word;
    mark_ambiguous(view, word, past_end, most);
  }
  base::clear_bytes(seen, remembered * sizeof(Word));
}

}  // namespace jd::mark

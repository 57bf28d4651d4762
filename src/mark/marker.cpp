#include "mark/marker.hpp"

#include "heap/size_class.hpp"
#include "heap/walk.hpp"
#include "mark/ring.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"

namespace jd::mark {
namespace {

using heap::Block;
using heap::BlockState;
using heap::kBlockShift;
using heap::kBlockSize;
using heap::Scan;
using heap::space;

inline void prefetch(Word address) { __builtin_prefetch(base::as_pointer(address), 0, 3); }

inline Block& record_of(Word word) { return space.blocks[(word - space.base) >> kBlockShift]; }

// A stack must hold at least the ranges of one step.
constexpr std::size_t kLeastEntries = 16;
// What is committed at first: 64 KiB, which few programs ever fill. The rest is committed when it
// is needed, because systems count committed memory (RLIMIT_DATA, strict overcommit).
constexpr std::size_t kFirstEntries = 64 * base::kKiB / sizeof(Range);

// The rings' sizes, and how many entries wait behind one before it leaves: the time that its line
// has to arrive (docs/design/mark.md, "Rings").
constexpr unsigned kWordRing = 64;
constexpr unsigned kWordDistance = 16;
constexpr unsigned kObjectRing = 64;
constexpr unsigned kObjectDistance = 16;
// With fewer words than this in the ring, the object is fetched before anybody knows whether it is
// marked already.
constexpr unsigned kIdleBelow = 4;

// What is left of an object of a line or so when the ring is full.
constexpr std::ptrdiff_t kFewWords = 8;

// Words ahead of the scan at which large objects are prefetched on grey: four lines.
constexpr std::size_t kLinearPrefetch = 32;

}  // namespace

Marker marker;

// Everything from the ring's end to the range: finds the slot, tests and sets the mark. True if
// the object is newly marked and has words to scan.
inline bool Marker::visit(Word word, Range* contents) {
  Block& block = record_of(word);
  const Word offset = word & (kBlockSize - 1);
  const auto slot = static_cast<unsigned>((offset * block.magic) >> 32);
  if (slot >= block.slots) return visit_unusual(word, contents);
  const std::uint64_t bit = std::uint64_t{1} << (slot & 63);
  std::uint64_t& marks = block.marks[slot >> 6];
  if ((marks & bit) != 0) return false;
  marks |= bit;
  if (block.scan == Scan::None) return false;
  if (block.scan == Scan::Words && block.slot_size != 0) {
    const Word address = word - offset + Word{slot} * block.slot_size;
    *contents = {reinterpret_cast<const Word*>(address),
                 reinterpret_cast<const Word*>(address + block.slot_size)};
    return true;
  }
  return contents_of(block, word - offset + Word{slot} * block.slot_size, contents);
}

// Words that lead into the body of a large object, or nowhere.
bool Marker::visit_unusual(Word word, Range* contents) {
  heap::Place place;
  if (!heap::find_object(word, &place) || place.marked() || !place.is_held_by(word)) return false;
  place.set_mark();
  return contents_of(*place.block, place.address(), contents);
}

bool Marker::contents_of(const Block& block, Word address, Range* contents) {
  std::size_t size = block.slot_size;
  if (block.state == BlockState::LargeHead) size = heap::extra_of(&block).bytes;
  if (block.scan == Scan::None) return false;
  if (block.scan == Scan::Words) {
    *contents = {reinterpret_cast<const Word*>(address),
                 reinterpret_cast<const Word*>(address + size)};
    return true;
  }
  const heap::Kind& kind = heap::kinds[block.kind];
  scan_descriptor(address, size, kind.descriptor + (kind.add_size ? size : 0), 0);
  return false;
}

inline void Marker::push(Range range) {
  if (__builtin_expect(top_ == limit_, 0) && !extend_stack()) {
    overflowed_ = true;
    return;
  }
  *top_++ = range;
}

// One loop for the three strategies.
//
// Ring: words wait in `words` for their records; newly marked objects wait in `objects` for their
// contents. So only objects that are not marked yet cost a fetch; but while few words wait, as in
// a list, memory is idle and the object is fetched together with the record.
template <MarkStrategy kStrategy>
void Marker::run_loop() {
  constexpr bool kRing = kStrategy == MarkStrategy::Ring;
  constexpr bool kOnGrey = kStrategy == MarkStrategy::OnGrey;
  const Word base = space.base;
  const Word span = space.span;
  Ring<Word, kWordRing> words;
  Ring<Range, kObjectRing> objects;
  const auto await_record = [&](Word word) {
    prefetch(base::as_word(&record_of(word)));
    if (words.count() < kIdleBelow) prefetch(word);
    words.put(word);
  };
  for (;;) {
    Range range;
    if (kRing && objects.count() > kObjectDistance) {
      range = objects.take();
    } else if (kRing && words.count() > kWordDistance) {
      if (visit(words.take(), &range)) {
        prefetch(base::as_word(range.next));
        objects.put(range);
      }
      continue;
    } else if (top_ != stack_) {
      range = *--top_;
      if (kRing && range.is_word()) {
        await_record(base::as_word(range.next));
        continue;
      }
      if (__builtin_expect(range.is_object(), 0) && !expand(&range)) continue;
    } else if (kRing && words.count() != 0) {
      // Nothing else to do: let the last ones go without waiting.
      if (visit(words.take(), &range)) {
        prefetch(base::as_word(range.next));
        objects.put(range);
      }
      continue;
    } else if (kRing && objects.count() != 0) {
      range = objects.take();
    } else {
      break;
    }

    if (kOnGrey) {
      // The word scanned last is pushed last and popped first: fetch it before the others.
      for (const Word* last = range.end; last > range.next && last > range.end - 4;) {
        const Word word = *--last;
        if (word - base < span) {
          prefetch(word);
          break;
        }
      }
    }
    for (; range.next < range.end; ++range.next) {
      const Word word = *range.next;
      if (kOnGrey && range.end - range.next > static_cast<std::ptrdiff_t>(kLinearPrefetch)) {
        prefetch(base::as_word(range.next + kLinearPrefetch));
      }
      if (word - base >= span) continue;
      if (kRing) {
        if (words.full()) break;
        await_record(word);
      } else {
        Range child;
        if (!visit(word, &child)) continue;
        if (kOnGrey) prefetch(base::as_word(child.next));
        push(child);
      }
    }
    if (kRing && range.next < range.end) push_rest(range);
  }
}

// The part of a range for which the ring had no room. A few words are pushed one by one: as a range
// they would be read again from memory that has left the caches by then.
inline void Marker::push_rest(Range range) {
  if (range.end - range.next > kFewWords) {
    push(range);
    return;
  }
  for (; range.next < range.end; ++range.next) {
    const Word word = *range.next;
    if (word - space.base < space.span) push(Range::word(word));
  }
}

void Marker::run() {
  switch (strategy_) {
    case MarkStrategy::None:
      return run_loop<MarkStrategy::None>();
    case MarkStrategy::OnGrey:
      return run_loop<MarkStrategy::OnGrey>();
    case MarkStrategy::Ring:
      return run_loop<MarkStrategy::Ring>();
  }
}

void Marker::drain() {
  run();
  while (overflowed_) {
    overflowed_ = false;
    ++overflows_;
    rescan_marked_objects();
    run();
  }
}

// Some marked object was not scanned, and nobody knows which: scan them all again. A pass that
// loses a range again has marked an object that was not marked before, so the passes end.
void Marker::rescan_marked_objects() {
  heap::for_each_block([this](heap::BlockNumber, Block& block) {
    if (block.state == BlockState::Free || block.scan == Scan::None) return;
    heap::for_each_marked(block, [&](unsigned slot) {
      push_contents({&block, slot});
      if (top_ == limit_) run();
    });
  });
}

bool Marker::initialise(MarkStrategy strategy, std::size_t entries) {
  strategy_ = strategy;
  if (entries != 0) {
    entries = base::max_of(entries, kLeastEntries);
  } else {
    // An entry for every smallest object, or for every word in the heap, is what the worst graph
    // could need; a sixteenth of the first is far beyond what any program has needed and costs only
    // address space. If it is not enough, or not to be had, the overflow path is there.
    entries = (std::size_t{space.reserved} << kBlockShift) / heap::kGranule / 16;
  }
  for (; entries >= kLeastEntries; entries /= 2) {
    const std::size_t bytes = base::align_up(entries * sizeof(Range), os::page_size());
    stack_ = static_cast<Range*>(os::reserve(bytes, os::page_size()));
    if (stack_ != nullptr) break;
  }
  if (stack_ == nullptr) return false;
  top_ = stack_;
  limit_ = stack_;
  reserved_limit_ = stack_ + entries;
  return extend_stack();
}

bool Marker::extend_stack() {
  const auto room = static_cast<std::size_t>(reserved_limit_ - limit_);
  const auto now = static_cast<std::size_t>(limit_ - stack_);
  // Doubling, in whole pages: limit_ stays a page's end until the last step.
  const std::size_t more = base::min_of(base::max_of(now, kFirstEntries), room);
  if (more == 0) return false;
  const std::size_t bytes = base::align_up(more * sizeof(Range), os::page_size());
  if (!os::commit(limit_, bytes)) return false;
  limit_ += more;
  return true;
}

bool Marker::mark_word(Word word) {
  if (!heap::in_heap(word)) return false;
  heap::Place place;
  if (!heap::find_object(word, &place) || place.marked() || !place.is_held_by(word)) return false;
  place.set_mark();
  push_contents(place);
  return true;
}

// Only an object that fills its slot ends where another may begin.
void Marker::mark_object_ending_at(Word word) {
  heap::Place before;
  if (!heap::find_object(word - 1, &before) || before.marked()) return;
  if (!before.is_large() && !heap::is_full_class(before.block->size_class)) return;
  if (before.address() + before.size() != word) return;
  before.set_mark();
  push_contents(before);
}

// Reads whole stacks, red zones and all.
[[gnu::no_sanitize_address]] void Marker::scan_roots(const void* low, const void* high,
                                                     bool past_end) {
  const Word base = space.base;
  const Word span = space.span;
  const Word end = base::align_down(base::as_word(high), sizeof(Word));
  for (Word at = base::align_up(base::as_word(low), sizeof(Word)); at < end; at += sizeof(Word)) {
    const Word word = *reinterpret_cast<const Word*>(at);
    if (word - base >= span) continue;
    mark_word(word);
    if (past_end && word % heap::kGranule == 0) mark_object_ending_at(word);
    // Draining now keeps the stack small; half, because it needs some room itself.
    if (top_ - stack_ > (limit_ - stack_) / 2) drain();
  }
}

void Marker::push_range(const void* low, const void* high) {
  const Word begin = base::align_up(base::as_word(low), sizeof(Word));
  const Word end = base::align_down(base::as_word(high), sizeof(Word));
  if (top_ != limit_ || extend_stack()) {
    if (begin < end) {
      *top_++ = {reinterpret_cast<const Word*>(begin), reinterpret_cast<const Word*>(end)};
    }
    return;
  }
  // One object may have more ranges than the stack has entries: the rest is marked at once, or no
  // pass over the heap would ever scan it.
  for (Word at = begin; at < end; at += sizeof(Word)) {
    mark_word(*reinterpret_cast<const Word*>(at));
  }
}

// An entry that stands for a whole object with a descriptor, which is read when the entry is taken
// from the stack. So a mark procedure that pushes an object of its own kind, which pushes another,
// does not recurse.
bool Marker::expand(Range* range) {
  heap::Place place;
  if (!heap::find_place(base::as_word(range->next), &place)) return false;
  return contents_of(*place.block, place.address(), range);
}

void Marker::push_contents(const heap::Place& place) {
  if (place.block->scan == Scan::Descriptor) {
    push(Range::object(place.address()));
    return;
  }
  Range range;
  if (contents_of(*place.block, place.address(), &range)) push(range);
}

void Marker::mark_uncollectable() {
  heap::for_each_block([this](heap::BlockNumber, Block& block) {
    if (block.state == BlockState::Free || !heap::kinds[block.kind].uncollectable) return;
    for (unsigned w = 0; w < block.bit_words(); ++w) block.marks[w] |= block.allocated[w];
    if (block.scan == Scan::None) return;
    heap::for_each_bit(block.allocated, block.slots, [&](unsigned slot) {
      push_contents({&block, slot});
      if (top_ - stack_ > (limit_ - stack_) / 2) drain();
    });
  });
}

void Marker::mark_from_unreachable() {
  heap::for_each_block([this](heap::BlockNumber, Block& block) {
    if (block.state == BlockState::Free || block.scan == Scan::None) return;
    if (!heap::kinds[block.kind].mark_from_unreachable) return;
    for (unsigned w = 0; w < block.bit_words(); ++w) {
      const std::uint64_t dead = block.allocated[w] & ~block.marks[w];
      heap::for_each_bit(&dead, 64, [&](unsigned bit) {
        push_contents({&block, w * 64 + bit});
        if (top_ - stack_ > (limit_ - stack_) / 2) drain();
      });
    }
  });
}

}  // namespace jd::mark

// The hot part of marking: the loop from a word to its object's mark bit and on to the object's
// words, through the rings.
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/size_class.hpp"
#include "heap/space.hpp"
#include "mark/elements.hpp"
#include "mark/marker.hpp"
#include "mark/ring.hpp"
#include "mark/team.hpp"
#include "mark/visit.hpp"
#include "os/cpu.hpp"

namespace jd::mark {
namespace {

using heap::Block;
using heap::BlockState;
using heap::kBlockSize;
using heap::Scan;

inline void prefetch(Word address) { __builtin_prefetch(base::as_pointer(address), 0, 3); }
inline void prefetch(const Word* address) { __builtin_prefetch(address, 0, 3); }

// For writing: another marker may have the line.
inline void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  // The instruction does nothing on processors that lack it; compilers emit it only when told of
  // the processor.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1, 3);
#endif
}

// The rings' sizes, and how many entries wait behind one before it leaves: the time that its line
// has to arrive (docs/design/mark.md, "Rings").
constexpr unsigned kWordRing = 64;
constexpr unsigned kWordDistance = 16;
constexpr unsigned kObjectDistance = 64;
// With fewer words than this in the ring, the object is fetched before anybody knows whether it is
// marked already.
constexpr unsigned kIdleBelow = 4;
// Then the object is also fetched that so many steps of the same length lead to: memory has nothing
// else to do, and of a list whose nodes lie in order it is one of the next (docs/design/mark.md,
// "Rings"; 32 gain a little more there, and nothing elsewhere: docs/design/mark-measured.md).
constexpr std::intptr_t kStepsAhead = 16;

// An object of so many words or fewer is scanned as a whole: the ring has room for it while no more
// than kMostWords wait there. When more do, the words that objects have beside their first go onto
// the stack, until fewer than kEnoughWords wait.
constexpr std::ptrdiff_t kFewWords = 16;
constexpr unsigned kMostWords = kWordRing - kFewWords;
constexpr unsigned kEnoughWords = 40;
// What does not fit into the ring of a longer object goes onto the stack, too: so many words or
// fewer one by one, more as a range (docs/design/mark.md, "Objects of more than a line").
constexpr std::ptrdiff_t kRestWords = 64;

// Words ahead of the scan at which large objects are prefetched on grey, a line at a time.
constexpr std::ptrdiff_t kLineWords = base::kLine / sizeof(Word);
// Slots of no more words never lie in two lines.
constexpr std::ptrdiff_t kHalfLineWords = kLineWords / 2;
constexpr std::ptrdiff_t kLinearPrefetch = 4 * kLineWords;

// Without a ring longer ranges are scanned in parts, so that a turn ends soon enough: half a
// millisecond if each word is waited for.
constexpr std::ptrdiff_t kLongWords = 4096;

// A hungry marker gets every second of the oldest entries (they lead to the largest part of the
// graph, and in a tree each to as much as all that follow it: the oldest half would be nearly all),
// but of a stack with fewer than this nothing: its entries would come back before they are done.
constexpr std::ptrdiff_t kLeastShared = 4;
// Longer ranges are halved when somebody is hungry.
constexpr std::ptrdiff_t kSplitWords = 1024;

}  // namespace

// Copied and passed by value: then the rings' counters stay in registers.
struct Marker::Rings {
  Ring<Word, kWordRing> words;                // not looked at yet
  DelayLine<Entry, kObjectDistance> objects;  // marked, not scanned yet
};

bool Marker::mark(const heap::Place& place) {
  if (in_team_) {
    const unsigned w = place.slot / 64;
    const View view(own_marks_.entries(), touched_.entries());
    const Word begin = heap::block_address(heap::number_of(place.block));
    return mark_in_team(view, begin, &place.block->marks[w], &view.own_marks_of(begin).words[w],
                        std::uint64_t{1} << (place.slot % 64));
  }
  if (place.marked()) return false;
  place.set_mark();
  return true;
}

// What an object without words to scan looks like.
constexpr Entry kNothing = {};

// Words that lead into the body of a large object, or nowhere.
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

// What the descriptor of an object says is to be scanned. What a procedure finds is on the stack.
struct Marker::Described {
  Entry range = kNothing;
  Pointers pointers = {};
};

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

// Out of line, as those below: the loop's registers are for what is frequent.
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
[[gnu::noinline]] void Marker::mark_leaf(heap::Block* block, unsigned granule) {
  const heap::BlockNumber number = heap::number_of(block);
  if (__builtin_expect(block->known_starts() == heap::Starts::Open, 0)) heap::learn_starts(number);
  if (__builtin_expect(block->is_allocated(granule), 1)) return;
  heap::Place place;
  if (heap::find_mixed(heap::block_address(number) + Word{granule} * heap::kGranule, &place)) {
    mark(place);
  }
}

[[gnu::noinline]] Marker::Pointers Marker::pointers_of_mixed(heap::Block* block, Word granule) {
  const auto slot = static_cast<unsigned>((granule & (kBlockSize - 1)) / heap::kGranule);
  if (__builtin_expect(block->known_starts() != heap::Starts::Known || !block->is_allocated(slot),
                       0)) {
    return pointers_at_granule(block, granule);
  }
  return pointers_at(granule, heap::kinds[block->kind]);
}

inline Marker::Described Marker::describe(Word object) {
  const Block& block = View().record_of(object);
  if (__builtin_expect(block.state != BlockState::Small, 0)) {
    if (block.state == BlockState::LargeBody || object % kBlockSize != 0) {
      return {kNothing, waiting_elements(object)};
    }
    if (block.scan == Scan::Words) {
      push_written_pages(object, heap::unmixed_size(block));
      return {};
    }
  }
  const heap::Kind& kind = heap::kinds[block.kind];
  const std::size_t size = heap::unmixed_size(block);
  const auto* words = reinterpret_cast<const Word*>(object);
  const std::size_t count = size / sizeof(Word);
  Word descriptor = heap::descriptor_of(kind, size);
  if ((descriptor & heap::kDescriptorTag) != heap::kTagBitmap) {
    descriptor = final_descriptor(object, size, descriptor);
  }
  switch (descriptor & heap::kDescriptorTag) {
    case heap::kTagBitmap: {
      if (__builtin_expect(count > heap::kBitmapWords, 0) && kind.layout != nullptr &&
          kind.layout->element_pointers != nullptr) {
        scan_layout({kind.layout, object, count});
        return {};
      }
      return {kNothing, {words, descriptor & ~heap::kDescriptorTag & first_bits(count)}};
    }
    case heap::kTagLength:
      return {{words, words + base::min_of(count, descriptor / sizeof(Word))}, {}};
    default:
      scan_descriptor(object, size, descriptor);
      return {};
  }
}

inline void Marker::push_word(Word word) {
  if (__builtin_expect(top_ == limit_, 0) && !extend_stack()) {
    mark_word(word);
  } else {
    *top_++ = Entry::word(word);
  }
}

// Whether share() has anything to do. Asked first, since somebody stays hungry for as long as a
// list is all that there is.
inline bool Marker::may_share(const Entry& current) const {
  return top_ - bottom_ >= kLeastShared || current.end - current.next > 2 * kSplitWords ||
         (top_ == bottom_ && bottom_ != stack_);
}

// One loop for the three strategies, alone or in company. False if its patience ended, of which
// only a lone marker has any where it uses the rings: then everything that is left is on the stack.
//
// Ring: words wait in `words` for their records; newly marked objects wait in `objects` for their
// contents. So only objects that are not marked yet cost a fetch; but while few words wait, as in
// a list, memory is idle and the object is fetched together with the record.
template <MarkStrategy kStrategy, Marker::Company kCompany>
bool Marker::run_loop() {
  constexpr bool kRing = kStrategy == MarkStrategy::Ring;
  constexpr bool kOnGrey = kStrategy == MarkStrategy::OnGrey;
  constexpr bool kAlone = kCompany == Company::Alone;
  const View view = kAlone ? View() : View(own_marks_.entries(), touched_.entries());
  Word waiting_words[kWordRing];
  Entry waiting_objects[kObjectDistance];
  Ring<Word, kWordRing> words(waiting_words);
  DelayLine<Entry, kObjectDistance> objects(waiting_objects);
  if (kRing) objects.clear();
  const auto await_record = [&](Word word, bool and_object) {
    if (kAlone) {
      prefetch(base::as_word(&view.record_of(word)));
    } else {
      prefetch_to_write(&view.record_of(word));
      prefetch_to_write(&view.own_marks_of(word));
    }
    if (and_object) prefetch(word);
    words.put(word);
  };
  unsigned distance = kWordDistance;
  unsigned most = kMostWords;
  for (;;) {
    Entry range;
    if (kRing && words.count() > distance) {
      const Word word = words.take();
      const bool is_new = kAlone ? visit<kCompany>(view, word, &range)
                                 : visit_inlined<kCompany>(view, word, &range);
      if (!is_new) continue;
      // Where nothing else is known, as in a list, it was mostly fetched with its record.
      const bool fetched =
          __builtin_expect(distance == 0, 0) && words.count() < kIdleBelow && objects.count() == 0;
      if (!fetched) {
        prefetch(range.next);
        if (range.end - range.next > kHalfLineWords) prefetch(range.end - 1);
        range = objects.pass(range);
      }
    } else if (top_ != bottom_) {
      if ((kAlone || !kRing) && --patience_ == 0) {
        put_back({words, objects});
        return false;
      }
      range = *--top_;
      distance = kWordDistance;
      if (kRing && range.is_word()) {
        await_record(base::as_word(range.next), words.count() < kIdleBelow);
        continue;
      }
      if (kRing && __builtin_expect(top_ >= long_stack_, 0) && !range.is_tagged()) {
        // What is left of an object (push_rest), whose lines have left the caches.
        prefetch(range.next);
        prefetch(range.end - 1);
        range = objects.pass(range);
      }
    } else if (kRing && words.count() != 0) {
      // Nothing else to do: let the last ones go without waiting.
      distance = 0;
      continue;
    } else if (kRing && objects.count() != 0) {
      range = objects.take();
    } else {
      if (kRing) passed_ = objects.passed();
      return true;
    }

    Described described;
    if (__builtin_expect(range.is_tagged(), 0)) {
      if (kRing && range.next == nullptr) {
        objects.grow();
        continue;
      }
      // Left by a turn with the rings.
      if (!kRing && range.is_word()) {
        mark_word(base::as_word(range.next));
        ++words_left_;
        continue;
      }
      const Word object = base::as_word(range.next);
      Block& block = view.record_of(object);
      if (block.state == BlockState::Mixed) {
        described.pointers = pointers_of_mixed(&block, object);
      } else if (const Word bits = heap::kinds[block.kind].pointer_bits;
                 __builtin_expect(bits != 0, 1)) {
        described.pointers = {range.next, bits};
      } else {
        described = describe(object);
      }
      range = described.range;
    }
    if (!kAlone && __builtin_expect(team.hungry(), 0) &&
        (words.count() > kWordDistance || may_share(range))) {
      if (words.count() > kWordDistance) {
        put_back({words, objects});
        words.clear();
        objects.clear();
      }
      range = share(range);
    }
    const auto take = [&](Word word) {
      Entry child;
      if (!visit<kCompany>(view, word, &child)) return;
      if (kOnGrey) prefetch(child.next);
      push(child);
    };
    Pointers& pointers = described.pointers;
    while (__builtin_expect(pointers.bits != 0, 0)) {
      const unsigned skipped = 63 - base::log2_floor(pointers.bits);
      const Word word = pointers.first[skipped];
      pointers.bits <<= skipped;
      pointers.bits <<= 1;
      pointers.first += skipped + 1;
      if (!view.holds(word)) continue;
      if (!kRing) {
        take(word);
      } else if (words.full()) {
        push_word(word);
      } else {
        await_record(word, words.count() < kIdleBelow);
      }
    }
    if (kRing) {
      const bool idle = words.count() < kIdleBelow;
      if (__builtin_expect(range.end - range.next > kFewWords, 0)) {
        while (range.next < range.end && !words.full()) {
          const Word* const end =
              range.next + base::min_of(range.end - range.next, std::ptrdiff_t{words.room()});
          for (; range.next < end; ++range.next) {
            if (view.holds(*range.next)) await_record(*range.next, idle);
          }
        }
      } else if (__builtin_expect(words.count() <= most, 1)) {
        most = kMostWords;
        if (__builtin_expect(idle, 0)) {
          for (; range.next < range.end; ++range.next) {
            const Word word = *range.next;
            if (!view.holds(word)) continue;
            await_record(word, true);
            const auto step = static_cast<std::intptr_t>(word - base::as_word(range.next));
            prefetch(word + static_cast<Word>(step * kStepsAhead));
          }
          continue;
        }
        for (; range.next < range.end; ++range.next) {
          if (view.holds(*range.next)) await_record(*range.next, false);
        }
        continue;
      } else {
        most = kEnoughWords;
        while (range.next < range.end && !view.holds(*range.next)) ++range.next;
        if (range.next < range.end && !words.full()) await_record(*range.next++, false);
      }
      if (range.next < range.end) {
        push_rest(view, range);
        distance = kWordDistance;
        if (kAlone && --patience_ == 0) {
          put_back({words, objects});
          return false;
        }
      }
      continue;
    }
    if (__builtin_expect(range.end - range.next > kLongWords, 0) &&
        (top_ != limit_ || extend_stack())) {
      push({range.next + kLongWords, range.end});
      range.end = range.next + kLongWords;
    }
    // Backwards: then the first object is pushed last and popped next. That is mostly the one that
    // the program made first, and so the walk goes upwards in memory; and of a list's nodes, which
    // mostly begin with what is in the list, no more than one waits on the stack.
    if (kOnGrey && range.next < range.end && view.holds(*range.next)) {
      // What is popped next has the shortest time to arrive: fetch it before the others.
      prefetch(*range.next);
    }
    while (kOnGrey && __builtin_expect(range.end - range.next > kLinearPrefetch, 0)) {
      prefetch(range.end - kLinearPrefetch);
      for (const Word* const low = range.end - kLineWords; range.end > low;) {
        const Word word = *--range.end;
        if (__builtin_expect(view.holds(word), 1)) take(word);
      }
    }
    while (range.end > range.next) {
      const Word word = *--range.end;
      if (__builtin_expect(view.holds(word), 1)) take(word);
    }
  }
}

// What an object holds beside the words for which the ring had room. A few are pushed one by one,
// unless the stack is long already: as a range they would be read again from memory that has left
// the caches by then, but take less room. Those of a range for which the stack has no room are
// pushed one by one, too: it may belong to an object that is not marked itself, which no pass over
// the heap would find.
inline void Marker::push_rest(const View& view, Entry range) {
  if ((range.end - range.next > kRestWords ||
       (range.end - range.next > kHalfLineWords && top_ >= long_stack_)) &&
      (top_ != limit_ || extend_stack())) {
    *top_++ = range;
    return;
  }
  // The stack's last extension may be of fewer entries.
  const auto has_no_room = [this] { return limit_ - top_ < kRestWords; };
  if (__builtin_expect(range.end - range.next > kRestWords, 0) ||
      (__builtin_expect(has_no_room(), 0) && (!extend_stack() || has_no_room()))) {
    for (; range.next < range.end; ++range.next) {
      if (view.holds(*range.next)) push_word(*range.next);
    }
    return;
  }
  Entry* top = top_;
  for (; range.next < range.end; ++range.next) {
    if (view.holds(*range.next)) *top++ = Entry::word(*range.next);
  }
  top_ = top;
}

// The rings by value: if their address were known outside the loop, their counters could not stay
// in registers.
void Marker::put_back(Rings rings) {
  passed_ = rings.objects.passed();
  while (rings.objects.count() != 0) {
    const Entry entry = rings.objects.take();
    // A range may have come from the stack, and then belong to an object that is not marked itself.
    if (entry.is_tagged()) {
      push(entry);
    } else {
      push_range(entry.next, entry.end);
    }
  }
  while (rings.words.count() != 0) push_word(rings.words.take());
}

// Gives away entries of the stack, or half of `current`, the range that this marker is about to
// scan: so it is not without work itself. Returns what is left of `current`.
Entry Marker::share(Entry current) {
  // What was given away from an empty stack's beginning is room again.
  if (top_ == bottom_) bottom_ = top_ = stack_;
  bool split = false;
  if (current.end - current.next > 2 * kSplitWords && (top_ != limit_ || extend_stack())) {
    const Word* middle = current.next + (current.end - current.next) / 2;
    push({middle, current.end});
    current.end = middle;
    split = true;
  }
  const std::ptrdiff_t entries = top_ - bottom_;
  if (entries < kLeastShared && !split) return current;
  const auto count = static_cast<unsigned>(base::min_of(
      base::max_of(entries / 2, std::ptrdiff_t{1}), std::ptrdiff_t{Team::kPacketEntries}));
  Entry packet[Team::kPacketEntries];
  for (unsigned i = 0; i < count; ++i) packet[i] = bottom_[2 * i];
  if (!team.give(packet, count)) return current;
  if (entries > 1) {
    for (unsigned i = count; i-- > 0;) bottom_[count + i] = bottom_[2 * i + 1];
  }
  bottom_ += count;
  return current;
}

template <Marker::Company kCompany>
bool Marker::run_strategy() {
  switch (strategy_) {
    case MarkStrategy::None:
      return run_loop<MarkStrategy::None, kCompany>();
    case MarkStrategy::OnGrey:
      return run_loop<MarkStrategy::OnGrey, kCompany>();
    case MarkStrategy::Ring:
      return run_loop<MarkStrategy::Ring, kCompany>();
    case MarkStrategy::Measured:
      break;
  }
  __builtin_unreachable();
}

// Marks until the stack is empty, or (false) so many entries were taken from it (0: for as long as
// it takes), or a turn without the rings is over. Notes in taken_ how many were.
template <Marker::Company kCompany>
bool Marker::run_turn(std::uint64_t most) {
  const std::uint64_t turn = team.turn_entries();
  if (strategy_ != MarkStrategy::Ring || turn == 0) {
    taken_ = patience_ = most;
    return run_strategy<kCompany>();
  }
  const bool is_stress = turn <= Team::kStressTurn;
  const bool with_rings = is_stress ? (++stress_turns_ & 1) != 0 : ring_use_.with_rings();
  const bool may_end = (!with_rings || is_stress) && (most == 0 || turn < most);
  taken_ = may_end ? turn : most;
  // The loop ends before it takes the entry at which its patience ends: a turn is to take some.
  const std::uint64_t patience = may_end ? turn + 1 : most;
  patience_ = patience;
  words_left_ = 0;
  const std::uint64_t begin = os::now_ns();
  const bool done = with_rings ? run_loop<MarkStrategy::Ring, kCompany>()
                               : run_loop<MarkStrategy::None, kCompany>();
  // Without the rings, an entry is an object.
  const std::uint64_t objects = with_rings ? passed_ : patience - patience_ - words_left_;
  ring_use_.note(objects, os::now_ns() - begin);
  return done;
}

void Marker::run_while_allowed() {
  // About a tenth of a millisecond (by hand: 613 questions in 73 ms, a tree of 4 million nodes).
  constexpr std::uint64_t kEntries = 4096;
  if (was_stopped_) return forget_queued();
  while (!run_turn<Company::Alone>(kEntries)) {
    if (!stop_question_()) continue;
    was_stopped_ = true;
    return forget_queued();
  }
}

void Marker::run() {
  if (__builtin_expect(stop_question_ != nullptr, 0)) return run_while_allowed();
  for (std::uint64_t patience = team.patience(); !run_turn<Company::Alone>(patience);) {
    if (patience == 0) continue;  // for ever
    patience -= taken_;
    if (patience == 0 && team.mark(this)) return;
  }
}

void Marker::run_in_team() {
  in_team_ = true;
  while (!run_turn<Company::Team>(0)) {
  }
  in_team_ = false;
  bottom_ = top_ = stack_;
}

}  // namespace jd::mark

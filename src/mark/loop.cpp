// The hot part of marking: the loop from a word to its object's mark bit and on to the object's
// words, through the rings.
#include "heap/space.hpp"
#include "mark/filter.hpp"
#include "mark/marker.hpp"
#include "mark/ring.hpp"
#include "mark/team.hpp"
#include "mark/visit.hpp"
#include "os/cpu.hpp"

namespace jd::mark {
namespace {

using heap::BlockState;

// Always inlined, or the compiler takes calls of a function without an effect away.
[[gnu::always_inline]] inline void prefetch(Word address) {
  __builtin_prefetch(base::as_pointer(address), 0, 3);
}
[[gnu::always_inline]] inline void prefetch(const Word* address) {
  __builtin_prefetch(address, 0, 3);
}

// For writing: another marker may have the line.
[[gnu::always_inline]] inline void prefetch_to_write(const void* address) {
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

// Words ahead of the scan at which large objects are prefetched with on-grey, a line at a time.
// What is longer is looked at by lines (filter.hpp); for less, words one by one are as quick (a
// guess).
constexpr std::ptrdiff_t kLineWords = base::kLine / sizeof(Word);
// Slots of no more words never lie in two lines.
constexpr std::ptrdiff_t kHalfLineWords = kLineWords / 2;
constexpr std::ptrdiff_t kLinearPrefetch = 4 * kLineWords;

// Longer ranges are scanned in parts. Without a ring, so that a turn ends soon enough: half a
// millisecond if each word is waited for. With it, so that what is left can be shared; where words
// lead nowhere, some ten microseconds (and parts of 4096 take 1.5 times as long).
constexpr std::ptrdiff_t kLongWords = 4096;
constexpr std::ptrdiff_t kLongWordsForRing = 32768;
// So many words in a row take about as long as an entry of the stack, and count as one: 20 ns.
constexpr std::ptrdiff_t kWordsOfEntry = 64;

// A hungry marker gets every second of the oldest entries (they lead to the largest part of the
// graph, and in a tree each to as much as all that follow it: the oldest half would be nearly all),
// but of a stack with fewer than this nothing: its entries would come back before they are done.
constexpr std::ptrdiff_t kLeastShared = 4;
// Longer ranges are halved when somebody is hungry.
constexpr std::ptrdiff_t kSplitWords = 2048;

// A word of the heap's. Beside the program it may change at any time, and what is looked up must be
// what was tested: so it is read once there. (Elsewhere too, GCC takes a fifth more instructions.)
template <Marker::Company kCompany>
[[gnu::always_inline]] inline Word read(const Word* at) {
  if constexpr (kCompany == Marker::Company::Steps) return __atomic_load_n(at, __ATOMIC_RELAXED);
  return *at;
}

}  // namespace

// Apart, for registers: the loop has none to spare.
[[gnu::noinline]] const Word* Marker::skip(const Word* next, const Word* end) {
  return HeapFilter::of_heap().skip(next, end);
}
template <bool kFetches>
[[gnu::noinline]] const Word* Marker::skip_back(const Word* next, const Word* end) {
  return HeapFilter::of_heap().skip_back<kFetches>(next, end);
}

// Copied and passed by value: then the rings' counters stay in registers.
struct Marker::Rings {
  Ring<Word, kWordRing> words;                // not looked at yet
  DelayLine<Entry, kObjectDistance> objects;  // marked, not scanned yet
};

// Whether share() has anything to do. Asked first, since somebody stays hungry for as long as a
// list is all that there is.
inline bool Marker::may_share(const Entry& current) const {
  return top_ - bottom_ >= kLeastShared || current.end - current.next > kSplitWords ||
         (top_ == bottom_ && bottom_ != stack_);
}

// What an object holds beside the words for which the ring had room. A few are pushed one by one,
// unless the stack is long already: as a range they would be read again from memory that has left
// the caches by then, but take less room. Those of a range for which the stack has no room are
// pushed one by one, too: it may belong to an object that is not marked itself, which no pass over
// the heap would find.
template <Marker::Company kCompany>
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
      const Word word = read<kCompany>(range.next);
      if (view.holds(word)) push_word(word);
    }
    return;
  }
  Entry* top = top_;
  for (; range.next < range.end; ++range.next) {
    const Word word = read<kCompany>(range.next);
    if (view.holds(word)) *top++ = Entry::word(word);
  }
  top_ = top;
}

// One loop for all strategies, alone, in company or in steps.
//
// Ring: words wait in `words_` for their records; newly marked objects wait in `objects_` for their
// contents. So only objects that are not marked yet cost a fetch; but while few words wait, as in
// a list, memory is idle and the object is fetched together with the record.
//
// All its functions are inlined into run(), and nothing keeps its address: so its members are in
// registers. The rings' storage is the caller's for the same reason.
template <MarkStrategy kStrategy, Marker::Company kCompany>
class Marker::Loop {
 public:
  Loop(Marker* marker, Word (&words)[kWordRing], Entry (&objects)[kObjectDistance])
      : m_(*marker), words_(words), objects_(objects) {
    if (kRing) objects_.clear();
  }

  // False if the marker's patience ended, of which only a lone one has any where it uses the rings:
  // then everything that is left is on the stack.
  [[gnu::always_inline]] bool run() {
    for (;;) {
      Entry range;
      if (kRing && words_.count() > distance_) {
        // As many lists as the rings have room for never go to the stack.
        if (kSteps && ends_patience()) return false;
        if (!take_word(&range)) continue;
      } else if (const Next next = take_other(&range); next != Next::Scan) {
        if (next == Next::Nothing) continue;
        return next == Next::End;
      }
      Pointers pointers = {};
      if (__builtin_expect(range.is_tagged(), 0)) {
        if (is_done_with(range)) continue;
        if (kSteps && m_.puts_aside(range)) continue;
        const Described described = describe(base::as_word(range.next));
        pointers = described.pointers;
        range = described.range;
      }
      if (kInTeam && __builtin_expect(team.hungry(), 0)) range = share(range);
      if (__builtin_expect(pointers.bits != 0, 0)) scan_pointers(pointers);
      if constexpr (!kRing) {
        scan_backwards(range);
      } else if (!scan_into_ring(range)) {
        return false;
      }
    }
  }

 private:
  static constexpr bool kRing = kStrategy == MarkStrategy::Ring;
  static constexpr bool kOnGrey = kStrategy == MarkStrategy::OnGrey;
  static constexpr bool kInTeam = kCompany == Company::Team;
  static constexpr bool kSteps = kCompany == Company::Steps;

  enum class Next {
    Scan,     // what was taken
    Nothing,  // of what was taken nothing is to be scanned yet
    Pause,    // the patience ended
    End,      // nothing is left
  };

  // While no word has waited for long enough.
  [[gnu::always_inline]] Next take_other(Entry* range) {
    if (m_.top_ != m_.bottom_) return take_entry(range);
    if (kRing && words_.count() != 0) {
      // Nothing else to do: let the last ones go without waiting.
      distance_ = 0;
      return Next::Nothing;
    }
    if (kRing && objects_.count() != 0) {
      *range = objects_.take();
      return Next::Scan;
    }
    if (kRing) m_.passed_ = objects_.passed();
    return Next::End;
  }

  // The object at the word that has waited longest goes to those that wait for their contents, and
  // the oldest of them comes back. False if it was marked already.
  [[gnu::always_inline]] bool take_word(Entry* range) {
    const Word word = words_.take();
    if (!m_.visit<kCompany>(view_, word, range)) return false;
    if (__builtin_expect(distance_ == 0, 0)) {
      if (!kInTeam && words_.count() + objects_.count() != 0 && ends_patience_in_lists(*range)) {
        return false;
      }
      // Where nothing else is known, as in a list, it was mostly fetched with its record.
      if (is_idle() && objects_.count() == 0) return true;
    }
    prefetch(range->next);
    if (range->end - range->next > kHalfLineWords) prefetch(range->end - 1);
    *range = objects_.pass(*range);
    return true;
  }

  // Several lists never go to the stack, but could be shared. Then take_entry ends the patience,
  // for an entry that waits there.
  [[gnu::always_inline]] bool ends_patience_in_lists(Entry contents) {
    if (--m_.patience_ != 0) return false;
    m_.patience_ = 1;
    m_.push(contents);
    distance_ = kWordDistance;
    return true;
  }

  [[gnu::always_inline]] Next take_entry(Entry* range) {
    if ((!kInTeam || !kRing) && ends_patience()) return Next::Pause;
    *range = *--m_.top_;
    distance_ = kWordDistance;
    if (kRing && range->is_word()) {
      offer();
      await_record(base::as_word(range->next), is_idle());
      return Next::Nothing;
    }
    if (kRing && __builtin_expect(m_.top_ >= m_.long_stack_, 0) && !range->is_tagged()) {
      // What is left of an object (push_rest), whose lines have left the caches.
      prefetch(range->next);
      prefetch(range->end - 1);
      *range = objects_.pass(*range);
    }
    return Next::Scan;
  }

  [[gnu::always_inline]] bool ends_patience() {
    if (--m_.patience_ != 0 && !(kSteps && m_.is_to_leave())) return false;
    m_.put_back({words_, objects_});
    return true;
  }

  // What is neither a range nor an object: Entry{}, which comes from the ring of objects while that
  // fills; or, without the rings, a single word.
  [[gnu::always_inline]] bool is_done_with(Entry entry) {
    if (kRing && entry.next == nullptr) {
      objects_.grow();
      return true;
    }
    if (!kRing && entry.is_word()) {
      offer();
      // A new object's own entry counts for both.
      m_.word_entries_ += push_contents(base::as_word(entry.next));
      return true;
    }
    return false;
  }

  [[gnu::always_inline]] Described describe(Word object) {
    heap::Block& block = view_.record_of(object);
    if (block.state == BlockState::Mixed) return {kNothing, m_.pointers_of_mixed(&block, object)};
    const Word bits = heap::kinds[block.kind].pointer_bits;
    if (__builtin_expect(bits != 0, 1)) {
      return {kNothing, {reinterpret_cast<const Word*>(object), bits}};
    }
    return m_.describe(object);
  }

  // What is beyond that many words goes onto the stack.
  [[gnu::always_inline]] void cut(Entry* range) {
    constexpr std::ptrdiff_t most = kRing ? kLongWordsForRing : kLongWords;
    if (__builtin_expect(range->end - range->next <= most, 1)) return;
    if (m_.top_ == m_.limit_ && !m_.extend_stack()) return;
    m_.push({range->next + most, range->end});
    range->end = range->next + most;
  }
  // Words that may lead nowhere cost patience, too. One is left: ends_patience() looks for the end.
  // (A patience of 0, for ever, wraps here as it does there.)
  [[gnu::always_inline]] void note_words(std::ptrdiff_t words) {
    const auto entries =
        base::min_of(static_cast<std::uint64_t>(words / kWordsOfEntry), m_.patience_ - 1);
    m_.patience_ -= entries;
    m_.word_entries_ += entries;
  }

  // Gives work away, if there is enough. What is left of the range.
  [[gnu::always_inline]] Entry share(Entry range) {
    if (words_.count() <= kWordDistance) {
      if (m_.may_share(range)) return m_.share(range, kLeastShared);
      if (__builtin_expect(--m_.hungry_objects_ != 0, 1)) return range;
      m_.hungry_objects_ = kHungryObjects;
    }
    m_.put_back({words_, objects_});
    words_.clear();
    objects_.clear();
    return m_.share(range, 1);
  }
  // The same of the stack alone, in front of an entry that is no range: there may be nothing else
  // on it for long.
  [[gnu::always_inline]] void offer() {
    if (!kInTeam || __builtin_expect(!team.hungry(), 1)) return;
    if (m_.may_share(kNothing)) m_.share(kNothing, kLeastShared);
  }

  // Memory has nothing else to do.
  [[nodiscard, gnu::always_inline]] bool is_idle() const { return words_.count() < kIdleBelow; }

  [[gnu::always_inline]] void await_record(Word word, bool and_object) {
    if (!kInTeam) {
      prefetch(base::as_word(&view_.record_of(word)));
    } else {
      prefetch_to_write(&view_.record_of(word));
      prefetch_to_write(&view_.own_marks_of(word));
    }
    if (and_object) prefetch(word);
    words_.put(word);
  }

  // Without the rings, a word is looked at when it is read. True if its object is new, and waits.
  [[gnu::always_inline]] bool push_contents(Word word) {
    Entry child;
    if (!m_.visit<kCompany>(view_, word, &child)) return false;
    if (kStrategy != MarkStrategy::None) prefetch(child.next);
    m_.push(child);
    return true;
  }

  // The first of them is to be looked at first: so it goes into a queue first, and onto a stack
  // last (scan_backwards).
  [[gnu::always_inline]] void scan_pointers(Pointers pointers) {
    do {
      const Word word = read<kCompany>(kRing ? pointers.take_first() : pointers.take_last());
      if (!view_.holds(word)) continue;
      if (!kRing) {
        push_contents(word);
      } else if (words_.full()) {
        m_.push_word(word);
      } else {
        await_record(word, is_idle());
      }
    } while (pointers.bits != 0);
  }

  // False if the patience ended.
  [[gnu::always_inline]] bool scan_into_ring(Entry range) {
    if (__builtin_expect(range.end - range.next > kFewWords, 0)) {
      cut(&range);
      const Word* const begin = range.next;
      fill_ring(&range);
      if (!kInTeam && range.next - begin >= kWordsOfEntry) note_words(range.next - begin);
    } else if (__builtin_expect(words_.count() <= most_, 1)) {
      scan_few(range);
      return true;
    } else {
      most_ = kEnoughWords;
      for (; range.next < range.end && !words_.full(); ++range.next) {
        const Word word = read<kCompany>(range.next);
        if (!view_.holds(word)) continue;
        await_record(word, false);
        ++range.next;
        break;
      }
    }
    if (range.next == range.end) return true;
    m_.push_rest<kCompany>(view_, range);
    distance_ = kWordDistance;
    return kInTeam || !ends_patience();
  }

  // For as much of a long range as there is room.
  [[gnu::always_inline]] void fill_ring(Entry* range) {
    const bool idle = is_idle();
    while (!words_.full()) {
      range->next = skip(range->next, range->end);
      if (range->next == range->end) return;
      const std::ptrdiff_t words = base::min_of(range->end - range->next, HeapFilter::kWords);
      const Word* const end = range->next + base::min_of(words, std::ptrdiff_t{words_.room()});
      for (; range->next < end; ++range->next) {
        const Word word = read<kCompany>(range->next);
        if (view_.holds(word)) await_record(word, idle);
      }
    }
  }

  // A range for all of which there is room.
  [[gnu::always_inline]] void scan_few(Entry range) {
    most_ = kMostWords;
    if (__builtin_expect(is_idle(), 0)) {
      for (; range.next < range.end; ++range.next) {
        const Word word = read<kCompany>(range.next);
        if (!view_.holds(word)) continue;
        await_record(word, true);
        const auto step = static_cast<std::intptr_t>(word - base::as_word(range.next));
        prefetch(word + static_cast<Word>(step * kStepsAhead));
      }
      return;
    }
    for (; range.next < range.end; ++range.next) {
      const Word word = read<kCompany>(range.next);
      if (view_.holds(word)) await_record(word, false);
    }
  }

  // Backwards: then the first object is pushed last and popped next. That is mostly the one that
  // the program made first, and so the walk goes upwards in memory; and of a list's nodes, which
  // mostly begin with what is in the list, no more than one waits on the stack.
  [[gnu::always_inline]] void scan_backwards(Entry range) {
    cut(&range);
    if (kOnGrey && range.next < range.end) {
      // What is popped next has the shortest time to arrive: fetch it before the others.
      const Word first = read<kCompany>(range.next);
      if (view_.holds(first)) prefetch(first);
    }
    if (__builtin_expect(range.end - range.next > kLinearPrefetch, 0)) {
      if (range.end - range.next >= kWordsOfEntry) note_words(range.end - range.next);
      scan_lines_backwards(&range);
    }
    push_contents_back(&range, range.next);
  }
  // All but what fills no line.
  [[gnu::always_inline]] void scan_lines_backwards(Entry* range) {
    while (range->end - range->next >= HeapFilter::kWords) {
      if (kOnGrey && range->end - range->next > kLinearPrefetch) {
        prefetch(range->end - kLinearPrefetch);
      }
      range->end = skip_back<kStrategy != MarkStrategy::None>(range->next, range->end);
      const std::ptrdiff_t words = base::min_of(range->end - range->next, HeapFilter::kWords);
      push_contents_back(range, range->end - words);
    }
  }
  [[gnu::always_inline]] void push_contents_back(Entry* range, const Word* low) {
    while (range->end > low) {
      const Word word = read<kCompany>(--range->end);
      if (__builtin_expect(view_.holds(word), 1)) push_contents(word);
    }
  }

  Marker& m_;
  const View view_ = kInTeam ? View(m_.own_marks_.entries(), m_.touched_.entries()) : View();
  Ring<Word, kWordRing> words_;
  DelayLine<Entry, kObjectDistance> objects_;
  // How many words wait behind one that is taken.
  unsigned distance_ = kWordDistance;
  // While no more words wait, there is room for a whole object of few.
  unsigned most_ = kMostWords;
};

template <MarkStrategy kStrategy, Marker::Company kCompany>
bool Marker::run_loop() {
  Word words[kWordRing];
  Entry objects[kObjectDistance];
  return Loop<kStrategy, kCompany>(this, words, objects).run();
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

// Gives away entries of the stack, if it has so many, or half of `current`, the range that this
// marker is about to scan: so it is not without work itself. Returns what is left of `current`.
Entry Marker::share(Entry current, std::ptrdiff_t least) {
  // What was given away from an empty stack's beginning is room again.
  if (top_ == bottom_) bottom_ = top_ = stack_;
  bool split = false;
  if (current.end - current.next > kSplitWords && (top_ != limit_ || extend_stack())) {
    const Word* middle = current.next + (current.end - current.next) / 2;
    push({middle, current.end});
    current.end = middle;
    split = true;
  }
  const std::ptrdiff_t entries = top_ - bottom_;
  if (entries < least && !split) return current;
  const auto count = static_cast<unsigned>(base::min_of(
      base::max_of(entries / 2, std::ptrdiff_t{1}), std::ptrdiff_t{team.packet_entries()}));
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
    case MarkStrategy::Grey:
      return run_loop<MarkStrategy::Grey, kCompany>();
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
  const bool is_stress = team.is_stress();
  const bool with_rings = is_stress ? (++stress_turns_ & 1) != 0 : ring_use_.with_rings();
  const bool may_end = (!with_rings || is_stress) && (most == 0 || turn < most);
  taken_ = may_end ? turn : most;
  // The loop ends before it takes the entry at which its patience ends: a turn is to take some.
  const std::uint64_t patience = may_end ? turn + 1 : most;
  patience_ = patience;
  word_entries_ = 0;
  const std::uint64_t begin = os::now_ns();
  const bool done = with_rings ? run_loop<MarkStrategy::Ring, kCompany>()
                               : run_loop<MarkStrategy::Grey, kCompany>();
  // Without the rings, an entry is an object.
  const std::uint64_t objects = with_rings ? passed_ : patience - patience_ - word_entries_;
  ring_use_.note(objects, os::now_ns() - begin);
  return done;
}

template bool Marker::run_turn<Marker::Company::Alone>(std::uint64_t most);
template bool Marker::run_turn<Marker::Company::Team>(std::uint64_t most);
template bool Marker::run_turn<Marker::Company::Steps>(std::uint64_t most);

}  // namespace jd::mark

// The marker: small FIFO rings, of candidate words and of newly marked objects, in front of a LIFO
// stack of entries.
//
// Sources: Boehm, "Reducing Garbage Collector Cache Misses" (2000), for prefetch-on-grey; Cher,
// Hosking & Vitek, "Software Prefetching for Mark-Sweep Garbage Collection" (2004), for the FIFO.
// Differs in: there are two rings. The first holds unresolved words until the record of their block
// has arrived; the second holds objects that were found unmarked until their contents have
// (docs/design/mark.md, "Rings").
//
// A marker works in a stopped world, but for run_beside, and is used by one thread at a time;
// several may work at once (team.hpp).
//
// Requirements (docs/design/mark.md): mark.req.one-loop, mark.req.overflow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/options.hpp"
#include "heap/growable.hpp"
#include "heap/layout.hpp"
#include "heap/side_table.hpp"
#include "heap/space.hpp"
#include "mark/entry.hpp"
#include "mark/ring.hpp"
#include "mark/ring_use.hpp"
#include "os/written_pages.hpp"

namespace jd::os {
class WatchedPages;
}

namespace jd::mark {

using base::MarkStrategy;

struct Elements;

// What was found to have changed. Known: of all pages.
struct Changed {
  bool known = false;
  std::size_t pages = 0;    // that hold marked objects
  std::size_t watched = 0;  // of these
};

class alignas(128) Marker {
 public:
  // Alone in a stopped world; beside others that may set the same mark bits; or alone, in steps
  // each of which is to end soon.
  enum class Company { Alone, Team, Steps };

  // Reserves the mark stack: room for so many entries; 0: for as many as the heap can need.
  // False if the system refuses.
  [[nodiscard]] bool initialise(std::size_t entries);

  // The same for a helper, which may have been one before the process forked.
  [[nodiscard]] bool initialise_as_helper(std::size_t entries);

  // For the collection that begins. Pre: not Measured, which is no way to mark.
  void set_strategy(MarkStrategy strategy);
  [[nodiscard]] MarkStrategy strategy() const { return strategy_; }

  // Scans [low, high) as roots: every aligned word is ambiguous, and pointers to anywhere in an
  // object hold it. The mark stack is drained whenever it has grown.
  void scan_roots(const void* low, const void* high);

  // The same of a thread's stack or registers. past_end: a pointer to a slot's first byte also
  // holds the object that ends there, if one does (one-past-the-end pointers; no byte of padding is
  // needed for them).
  void scan_stack(const void* low, const void* high, bool past_end);

  // Marks the object at or around this word, if there is one, and queues its contents. True if the
  // object was not marked before.
  bool mark_word(Word word);

  // Queues the contents of an object, whether or not it is marked itself.
  void push_contents(const heap::Place& place);

  // Marks every object of the uncollectable kinds and queues the contents of those that were not.
  void mark_uncollectable();

  // Queues what the program may have changed in marked objects: what lies on pages that were
  // written, and the contents of those whose kind has a mark procedure, which may look elsewhere.
  Changed push_changed(const os::WatchedPages& pages);

  // Queues the words of a range for scanning as heap words.
  void push_range(const void* low, const void* high);

  // Marks all that what is queued leads to. Post: nothing is queued; every marked object's
  // children are marked. (Not so where there is a deadline.)
  void drain();

  // Marking in steps (cycle/incremental.hpp), by this marker alone. Until it is 0 again: at this
  // time (os::now_ns) drain ends though something may be queued, unless that takes too much memory.
  void set_deadline(std::uint64_t ns) { deadline_ = ns; }
  // Marks until that time, and 4096 entries at least (fewer under stress: Team::is_stress), or
  // until nothing is queued (true).
  bool run_until(std::uint64_t ns);
  // The same while the program runs, with the heap's lock held: for some tenths of a millisecond.
  // leaves: or until somebody waits for the lock. False if it can't go on so: nothing is queued, or
  // only what is put aside, or that is much. Objects are put aside that only a stopped world tells
  // how to scan.
  bool run_beside(bool leaves);
  // Queues those. In the stopped world.
  void take_put_aside();
  [[nodiscard]] bool has_queued() const { return top_ != bottom_ || put_aside_.count() != 0; }
  // Forgets queued objects that are not there any more, freed and maybe replaced.
  void forget_queued_that_are_gone();
  // Whether something is lost that drain would find again.
  [[nodiscard]] bool has_overflowed() const { return overflowed_; }

  // Until it is null again: asked every few thousand entries of the stack, and where it says so the
  // collection is to be abandoned: what was queued is forgotten. The marker works alone meanwhile.
  void set_stop_question(bool (*question)()) {
    stop_question_ = question;
    was_stopped_ = false;
  }
  [[nodiscard]] bool was_stopped() const { return was_stopped_; }
  // What was queued is lost: as if the question had been answered so.
  void abandon() {
    was_stopped_ = true;
    forget_queued();
  }

  // Forgets what is queued, when a collection is abandoned. Objects may stay marked whose contents
  // were not scanned.
  void forget_queued() {
    bottom_ = top_ = stack_;
    put_aside_.clear();
    overflowed_ = false;
    in_team_ = false;
  }

  // Queues the contents of the unmarked objects of kinds that want it (Kind::
  // mark_from_unreachable).
  void mark_from_unreachable();

  // How often the stack overflowed since this was last asked.
  std::size_t take_overflows() {
    const std::size_t overflows = overflows_;
    overflows_ = 0;
    return overflows;
  }

  // For the team. Marks what the stack's entries lead to, giving some away when others are hungry;
  // takes entries; takes over what another marker's overflow asks for.
  void run_in_team();
  void receive(const Entry* entries, unsigned count);
  void adopt_overflow(Marker* other);
  // Room for this marker's own bits of all blocks; false if the system refuses.
  [[nodiscard]] bool prepare_own_marks();
  // Gives the pages of what is empty between collections back until they are needed again.
  void discard_tables();
  // Adds this marker's bits to the records', and clears them.
  void merge_own_marks();

 private:
  struct View;
  struct Rings;
  template <MarkStrategy kStrategy, Company kCompany>
  class Loop;
  // The words from `first` on whose bits are set, the highest for the first.
  struct Pointers {
    const Word* first;
    Word bits;

    // Pre, of both: there is one.
    const Word* take_first() {
      const unsigned skipped = 63 - base::log2_floor(bits);
      const Word* const word = first + skipped;
      bits = bits << skipped << 1;
      first = word + 1;
      return word;
    }
    const Word* take_last() {
      const Word* const word = first + (63 - base::lowest_bit(bits));
      bits &= bits - 1;
      return word;
    }
  };
  // What the descriptor of an object says is to be scanned. What a procedure finds is on the stack.
  struct Described {
    Entry range = kNothing;
    Pointers pointers = {};
  };
  // A block's bits as one marker set them; the first 8 words, of slots of 32 bytes and more, are a
  // line.
  struct alignas(128) OwnMarks {
    std::uint64_t words[heap::kBitWords];
  };

  void run();
  void drain_until_deadline();
  void run_while_allowed();
  void run_with_patience();
  // Commits more of the stack. False when all of its reservation is in use, or the system refuses.
  bool extend_stack();
  template <Company kCompany>
  bool run_strategy();
  template <Company kCompany>
  bool run_turn(std::uint64_t most);
  template <MarkStrategy kStrategy, Company kCompany>
  bool run_loop();
  template <Company kCompany>
  bool visit(const View& view, Word word, Entry* contents);
  bool mark(const heap::Place& place);
  bool puts_aside(Entry entry);
  [[nodiscard]] bool is_to_leave() const { return leaves_ && heap::heap_lock.is_wanted(); }
  static bool mark_in_team(const View& view, Word word, std::uint64_t* shared, std::uint64_t* own,
                           std::uint64_t bit);
  [[nodiscard]] bool may_share(const Entry& current) const;
  Entry share(Entry current, std::ptrdiff_t least);
  void put_back(Rings rings);
  Entry visit_unusual(Word word);
  static Entry contents_of(const heap::Block& block, Word address);
  void scan_descriptor(Word object, std::size_t size, Word descriptor);
  void scan_own(Word object, std::size_t size, Word environment);
  void scan_long_bitmap(Word object, std::size_t size, Word number);
  void scan_described_array(Word object, std::size_t size);
  void scan_layout(const heap::Typed& typed);
  void queue_stretches(const heap::Typed& typed);
  void reverse_above(std::ptrdiff_t height);
  // The elements of a large object are scanned step by step: the others wait on the stack.
  void scan_elements(const Elements& elements);
  void scan_element(const Elements& elements, std::size_t index);
  void await_elements(const Elements& elements, std::size_t index, std::size_t end);
  Pointers next_elements(const Elements& elements, std::size_t index);
  Pointers waiting_elements(Word address);
  Pointers pointers_of_mixed(heap::Block* block, Word granule);
  Pointers pointers_at_granule(heap::Block* block, Word granule);
  Pointers pointers_at(Word memory, const heap::Kind& kind);
  Pointers scan_mixed(Word memory, const heap::Kind& kind);
  void mark_leaf(heap::Block* block, unsigned granule);
  void push_word_at(const Word* at) {
    const Word word = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (heap::in_heap(word)) push_word(word);
  }
  void queue_stretch(const Word* first, std::size_t count) {
    if (count == 1) return push_word_at(first);
    push_range(first, first + count);
  }
  // The stack is to be drained where it grows beyond this, while roots are scanned.
  Entry* drain_above();
  // Past the lines of a long range that lead nowhere (filter.hpp).
  static const Word* skip(const Word* next, const Word* end);
  template <bool kFetches>
  static const Word* skip_back(const Word* next, const Word* end);
  void mark_ambiguous(const View& view, Word word, bool past_end, const Entry* most);
  void mark_object_ending_at(const View& view, Word word);
  // At a block's beginning, or in one that has no slots.
  void mark_unusual_object_ending_at(Word word);
  // For the contents of marked objects: what does not fit is found again (drain).
  void push(Entry entry) {
    if (__builtin_expect(top_ == limit_, 0) && !extend_stack()) {
      overflowed_ = true;
    } else {
      *top_++ = entry;
    }
  }
  // For words of any origin that are in the heap: one that does not fit is marked at once.
  void push_word(Word word) {
    if (__builtin_expect(top_ == limit_, 0) && !extend_stack()) {
      mark_word(word);
    } else {
      *top_++ = Entry::word(word);
    }
  }
  template <Company kCompany>
  void push_rest(const View& view, Entry range);
  Described describe_by(Word descriptor, Word object, std::size_t size);
  Described describe(Word object);
  void push_written_pages(Word object, std::size_t size);
  class ChangedPages;
  void push_marked(heap::Block* block, unsigned from, unsigned to, Word low, Word high);
  void push_marked_with_procedures();
  void rescan_marked_objects();
  void mark_objects_at_granules(heap::Block* block);

  Entry* stack_ = nullptr;
  Entry* bottom_ = nullptr;  // the oldest entry; those below it were given away
  Entry* top_ = nullptr;     // one past the newest entry
  Entry* limit_ = nullptr;   // one past the last entry that is committed
  Entry* reserved_limit_ = nullptr;
  // From here on the stack is long for the heap, and room on it counts more than time.
  Entry* long_stack_ = nullptr;
  // None must be 0, so that unused markers stay in .bss.
  MarkStrategy strategy_ = MarkStrategy::None;
  // How many entries the loop still takes from the stack before it comes back; 0: for ever.
  std::uint64_t patience_ = 0;
  // That, when the last turn began.
  std::uint64_t taken_ = 0;
  // Of the last turn: how many objects came through the rings; how many of the entries were words,
  // or were counted for the words of long ranges.
  std::uint64_t passed_ = 0;
  std::uint64_t word_entries_ = 0;
  // How many objects are still scanned while another marker is hungry before a few are enough to
  // be shared, since what waits on a short stack may be the other one of two lists. Some ten
  // microseconds at first; a guess.
  static constexpr unsigned kHungryObjects = 2048;
  unsigned hungry_objects_ = 0;
  // Turns that were so short (Team::is_stress).
  unsigned stress_turns_ = 0;
  os::PageMap page_map_{};  // closed while the loop does not run
  RingUse ring_use_;
  // All clear outside of a phase of the team's.
  heap::SideTable<OwnMarks> own_marks_;
  // A byte for 32 neighbouring blocks, whose bits are a page: not 0 if any of them is set. Cleared
  // as they are.
  static constexpr unsigned kTouchShift = 5;
  static_assert(sizeof(OwnMarks) << kTouchShift == 4096);
  heap::SideTable<std::uint8_t, kTouchShift> touched_;
  bool in_team_ = false;
  bool beside_ = false;  // the running program
  bool leaves_ = false;
  heap::Growable<Entry> put_aside_;
  bool (*stop_question_)() = nullptr;
  std::uint64_t deadline_ = 0;
  bool was_stopped_ = false;
  // An entry did not fit: some marked object's contents were not scanned.
  bool overflowed_ = false;
  std::size_t overflows_ = 0;
};

// Of objects of so many bytes or more whose words are all scanned, only the pages that were written
// are, until they were found filled (docs/design/mark.md, "Pages that nobody wrote"). Set at the
// start.
extern std::size_t by_written_pages_from;

// The collecting thread's: used under the heap's lock. A helper's marker is its
// own within a phase, and the collecting thread's otherwise (Exchange).
extern Marker marker;

}  // namespace jd::mark

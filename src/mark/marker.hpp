// The marker: small FIFO rings, of candidate words and of newly marked objects, in front of a LIFO
// stack of ranges.
//
// Sources: Boehm, "Reducing Garbage Collector Cache Misses" (2000), for prefetch-on-grey; Cher,
// Hosking & Vitek, "Software Prefetching for Mark-Sweep Garbage Collection" (2004), for the FIFO.
// Differs in: there are two rings. The first holds unresolved words until the record of their block
// has arrived; the second holds objects that were found unmarked until their contents have
// (docs/design/mark.md, "Rings").
//
// A marker works in a stopped world and is used by one thread at a time. Requirements are in
// docs/design/mark.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/options.hpp"
#include "heap/space.hpp"

namespace jd::mark {

using base::MarkStrategy;
using base::Word;

// An entry of the mark stack: words that are still to be scanned, and, marked by an `end` that no
// range has, one word that was scanned but not looked at, or an object with a descriptor.
struct Range {
  const Word* next;
  const Word* end;

  static Range word(Word word) { return tagged(word, kWordTag); }
  static Range object(Word address) { return tagged(address, kObjectTag); }
  [[nodiscard]] bool is_word() const { return base::as_word(end) == kWordTag; }
  [[nodiscard]] bool is_object() const { return base::as_word(end) == kObjectTag; }

 private:
  static constexpr Word kObjectTag = 0;
  static constexpr Word kWordTag = sizeof(Word);
  static Range tagged(Word value, Word tag) {
    return {reinterpret_cast<const Word*>(value), reinterpret_cast<const Word*>(tag)};
  }
};

class Marker {
 public:
  // Reserves the mark stack: room for `entries` ranges; 0: for as many as the heap can need.
  // False if the system refuses.
  [[nodiscard]] bool initialise(MarkStrategy strategy, std::size_t entries);

  void set_strategy(MarkStrategy strategy) { strategy_ = strategy; }

  // Scans [low, high) as roots: every aligned word is ambiguous, and pointers to anywhere in an
  // object hold it. past_end: a pointer to a slot's first byte also holds the object that ends
  // there, if one does (one-past-the-end pointers; no byte of padding is needed for them). The mark
  // stack is drained whenever it has grown.
  void scan_roots(const void* low, const void* high, bool past_end);

  // Marks the object at or around this word, if there is one, and queues its contents. True if the
  // object was not marked before.
  bool mark_word(Word word);

  // Queues the contents of an object, whether or not it is marked itself.
  void push_contents(const heap::Place& place);

  // Marks every object of the uncollectable kinds and queues their contents.
  void mark_uncollectable();

  // Queues the words of a range for scanning as heap words.
  void push_range(const void* low, const void* high);

  // Marks all that the queued ranges reach. Post: nothing is queued; every marked object's
  // children are marked.
  void drain();

  // Queues the contents of the unmarked objects of kinds that want it (Kind::
  // mark_from_unreachable).
  void mark_from_unreachable();

  // How often the stack overflowed since this was last asked.
  std::size_t take_overflows() {
    const std::size_t overflows = overflows_;
    overflows_ = 0;
    return overflows;
  }

 private:
  void run();
  // Commits more of the stack. False when all of its reservation is in use, or the system refuses.
  bool extend_stack();
  template <MarkStrategy kStrategy>
  void run_loop();
  bool visit(Word word, Range* contents);
  bool visit_unusual(Word word, Range* contents);
  bool contents_of(const heap::Block& block, Word address, Range* contents);
  void scan_descriptor(Word object, std::size_t size, Word descriptor, unsigned depth);
  void scan_bitmap(Word object, std::size_t size, Word bitmap);
  void scan_long_bitmap(Word object, std::size_t size, Word number);
  void scan_typed_array(Word object, std::size_t size);
  void queue_word(const Word* word);
  void mark_object_ending_at(Word word);
  void push(Range range);
  void push_rest(Range range);
  bool expand(Range* range);
  void rescan_marked_objects();

  Range* stack_ = nullptr;
  Range* top_ = nullptr;    // one past the newest entry
  Range* limit_ = nullptr;  // one past the last entry that is committed
  Range* reserved_limit_ = nullptr;
  MarkStrategy strategy_ = MarkStrategy::Ring;
  // An entry did not fit: some marked object's contents were not scanned.
  bool overflowed_ = false;
  std::size_t overflows_ = 0;
};

// The one marker. (Parallel marking will have one a worker.)
extern Marker marker;

}  // namespace jd::mark

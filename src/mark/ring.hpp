// FIFO rings for what waits until its cache lines have arrived.
#pragma once

#include "base/bits.hpp"

namespace jd::mark {

// In storage of the caller's: a ring itself is a few integers, which stay in registers.
template <class Entry, unsigned kCapacity>
class Ring {
 public:
  static_assert(base::is_power_of_two(kCapacity));

  explicit Ring(Entry (&storage)[kCapacity]) : entries_(storage) {}
  // One by one: copied as a whole, both counters would live in one register.
  Ring(const Ring& other) : entries_(other.entries_), head_(other.head_), tail_(other.tail_) {}

  [[nodiscard]] unsigned count() const { return tail_ - head_; }
  [[nodiscard]] unsigned room() const { return kCapacity - count(); }
  [[nodiscard]] bool full() const { return count() == kCapacity; }
  void put(Entry entry) { entries_[tail_++ % kCapacity] = entry; }
  // In two steps: in one expression, the compiler keeps the old and the new counter
  // (docs/design/mark-measured.md, "The loop").
  Entry take() {
    const Entry oldest = entries_[head_ % kCapacity];
    ++head_;
    return oldest;
  }
  void clear() { head_ = tail_; }

 private:
  Entry* entries_;
  // Free-running; unsigned wrap-around is harmless because the capacity is a power of two.
  unsigned head_ = 0;
  unsigned tail_ = 0;
};

// A ring whose entries leave as soon as kDelay others have come: then the one that comes and the
// one that leaves change places. While fewer have come, an empty entry, Entry{}, leaves instead: so
// the way through has no branch.
template <class Entry, unsigned kDelay>
class DelayLine {
 public:
  static_assert(base::is_power_of_two(kDelay));

  // Not ready before clear().
  explicit DelayLine(Entry (&storage)[kDelay]) : entries_(storage) {}

  // Puts an entry in, which is not empty. What leaves; grow() if that is empty.
  Entry pass(Entry entry) {
    Entry& place = entries_[next_++ % kDelay];
    const Entry oldest = place;
    place = entry;
    return oldest;
  }
  void grow() { ++count_; }
  // How many entries were put in.
  [[nodiscard]] unsigned passed() const { return next_; }
  [[nodiscard]] unsigned count() const { return count_; }
  // The oldest, however long it has waited. Pre: count() != 0.
  Entry take() {
    Entry& place = entries_[(next_ - count_--) % kDelay];
    const Entry oldest = place;
    place = Entry{};
    return oldest;
  }
  void clear() {
    count_ = 0;
    for (unsigned i = 0; i < kDelay; ++i) entries_[i] = Entry{};
  }

 private:
  Entry* entries_;
  unsigned next_ = 0;  // free-running
  unsigned count_ = 0;
};

}  // namespace jd::mark

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

  [[nodiscard]] unsigned count() const { return tail_ - head_; }
  [[nodiscard]] unsigned room() const { return kCapacity - count(); }
  [[nodiscard]] bool full() const { return count() == kCapacity; }
  void put(Entry entry) { entries_[tail_++ % kCapacity] = entry; }
  Entry take() { return entries_[head_++ % kCapacity]; }
  void clear() { head_ = tail_; }

 private:
  Entry* entries_;
  // Free-running; unsigned wrap-around is harmless because the capacity is a power of two.
  unsigned head_ = 0;
  unsigned tail_ = 0;
};

// A ring whose entries leave as soon as kDelay others have come: one that is full stays full, and
// then an entry that comes and the one that leaves change places.
template <class Entry, unsigned kDelay>
class DelayLine {
 public:
  static_assert(base::is_power_of_two(kDelay));

  explicit DelayLine(Entry (&storage)[kDelay]) : entries_(storage) {}

  [[nodiscard]] unsigned count() const { return count_; }
  // Puts *entry in. True if an entry has waited long enough: then it is in *entry.
  bool pass(Entry* entry) {
    Entry& place = entries_[next_++ % kDelay];
    if (__builtin_expect(count_ != kDelay, 0)) {
      place = *entry;
      ++count_;
      return false;
    }
    const Entry oldest = place;
    place = *entry;
    *entry = oldest;
    return true;
  }
  // The oldest, however long it has waited. Pre: count() != 0.
  Entry take() { return entries_[(next_ - count_--) % kDelay]; }
  void clear() { count_ = 0; }

 private:
  Entry* entries_;
  unsigned next_ = 0;  // free-running
  unsigned count_ = 0;
};

}  // namespace jd::mark

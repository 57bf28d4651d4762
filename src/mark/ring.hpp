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

}  // namespace jd::mark

// FIFO rings for what waits until its cache lines have arrived.
#pragma once

#include "base/bits.hpp"

namespace jd::mark {

template <class Entry, unsigned kCapacity>
class Ring {
 public:
  static_assert(base::is_power_of_two(kCapacity));

  [[nodiscard]] unsigned count() const { return tail_ - head_; }
  [[nodiscard]] bool full() const { return count() == kCapacity; }
  void put(Entry entry) { entries_[tail_++ % kCapacity] = entry; }
  Entry take() { return entries_[head_++ % kCapacity]; }

 private:
  Entry entries_[kCapacity];
  // Free-running; unsigned wrap-around is harmless because the capacity is a power of two.
  unsigned head_ = 0;
  unsigned tail_ = 0;
};

}  // namespace jd::mark

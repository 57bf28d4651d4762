// Threads that hold a mutual-exclusion lock together, as readers, against those who hold it alone
// (GC_call_with_reader_lock). The first who comes takes the lock for all, and the last who leaves
// releases it: so those who want it alone, nearly everybody, need not know of readers.
//
// Who wants the lock alone gets its turn: while somebody waits, newcomers don't join the readers
// that there are, but wait too. Not recursive. Not async-signal-safe.
#pragma once

#include "os/lock.hpp"

namespace jd::os {

template <class Sync>
class ReadersOver {
 public:
  explicit constexpr ReadersOver(LockOver<Sync>& lock) : lock_(lock) {}

  void enter() {
    // Who comes while another waits for the lock here joins that one.
    const Guard<LockOver<Sync>> guard(door_);
    if (!lock_.is_wanted() && join()) return;
    lock_.acquire();
    inside_.store(1, std::memory_order_relaxed);
  }
  void leave() {
    // What each reader did comes before what the last one releases.
    if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) lock_.release();
  }
  // With the lock that they share (LockOver::reset_in_child).
  void reset_in_child() {
    door_.reset_in_child();
    inside_.store(0, std::memory_order_relaxed);
  }

 private:
  // False if nobody is inside.
  bool join() {
    std::uint32_t seen = inside_.load(std::memory_order_relaxed);
    while (seen != 0 && !inside_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire,
                                                         std::memory_order_relaxed)) {
    }
    return seen != 0;
  }

  LockOver<Sync>& lock_;
  LockOver<Sync> door_;  // comes before lock_
  // How many are inside, for whom one of them has taken the lock. Written by each as it enters,
  // behind the door, and as it leaves.
  typename Sync::template Atomic<std::uint32_t> inside_{0};
};
using Readers = ReadersOver<Machine>;

}  // namespace jd::os

// Threads that hold a mutual-exclusion lock together, as readers, against those who hold it alone
// (GC_call_with_reader_lock). The first who comes takes the lock for all, and the last who leaves
// releases it: so those who want it alone, nearly everybody, need not know of readers.
//
// Who wants the lock alone gets its turn: while somebody waits for it, newcomers don't join the
// readers that there are. One of them waits for the lock, the others for that one. Not for ever: it
// may be suspended, or jump out of a handler. Not recursive. Not async-signal-safe.
#pragma once

#include "os/lock.hpp"

namespace jd::os {

template <class Sync>
class ReadersOver {
 public:
  explicit constexpr ReadersOver(LockOver<Sync>& lock) : lock_(lock) {}

  void enter() {
    if (!lock_.is_wanted() && join()) return;
    const std::uint32_t seen = openings_.load(std::memory_order_acquire);
    std::uint32_t led = 0;
    if (!is_led_.compare_exchange_strong(led, 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      static_cast<void>(Sync::wait(&openings_, seen, kPatience));
      if (join()) return;
    }
    lock_.acquire();
    inside_.store(1, std::memory_order_release);
    is_led_.store(0, std::memory_order_release);
    openings_.fetch_add(1, std::memory_order_release);
    Sync::wake(&openings_, kAll);
  }
  void leave() {
    // What each reader did comes before what the last one releases.
    if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) lock_.release();
  }
  // With the lock that they share (LockOver::reset_in_child).
  void reset_in_child() {
    inside_.store(0, std::memory_order_relaxed);
    is_led_.store(0, std::memory_order_relaxed);
  }

 private:
  // For the reader that waits for the lock: as for a reserved lock's.
  static constexpr std::uint64_t kPatience = 10000000;  // 10 ms; a guess
  static constexpr int kAll = 0x7fffffff;

  // False if nobody is inside.
  bool join() {
    std::uint32_t seen = inside_.load(std::memory_order_relaxed);
    while (seen != 0 && !inside_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire,
                                                         std::memory_order_relaxed)) {
    }
    return seen != 0;
  }

  LockOver<Sync>& lock_;
  // How many are inside, for whom one of them has taken the lock. Written by the one that took the
  // lock under that (release), by each as it enters (acquire: what that one sees) and as it leaves
  // (release, for the one that leaves last).
  typename Sync::template Atomic<std::uint32_t> inside_{0};
  // A reader waits for the lock, and the next ones for that one. Written and read by readers that
  // enter; a hint, whose order is that of openings_ (acquire, release).
  typename Sync::template Atomic<std::uint32_t> is_led_{0};
  // Counts the readers that have taken the lock. Written by these, waited for by those who are to
  // join them.
  typename Sync::template Atomic<std::uint32_t> openings_{0};
};
using Readers = ReadersOver<Machine>;

}  // namespace jd::os

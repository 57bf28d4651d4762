// A mutual-exclusion lock that spins briefly, backs off, and then waits in the kernel (bdwgc's
// scalability notes: never sleep blindly; docs/design/os.md). Whoever has waited for long is
// let in before newcomers (os.req.fair-lock). Not recursive. Not async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/sync.hpp"

namespace jd::os {

// The lock over what makes atomics, waits and wakes: the machine (Lock, below), or a test that
// tries every interleaving (tests/support/interleaving.hpp).
template <class Sync>
class LockOver {
 public:
  void acquire() {
    if (Sync::is_alone() && change_alone(kFree, kHeld)) return Sync::tell_acquired(&state_);
    std::uint32_t free = kFree;
    // Pairs with the release in release(): what the last holder wrote is visible here.
    if (!state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      const Wanting wanting(*this);
      acquire_slowly();
    }
    Sync::tell_acquired(&state_);
  }
  // Whoever it fails for sees what the holder wrote before it took the lock by this function.
  [[nodiscard]] bool try_acquire() {
    std::uint32_t free = kFree;
    const bool taken = state_.compare_exchange_strong(free, kHeld, std::memory_order_acq_rel,
                                                      std::memory_order_acquire);
    if (taken) Sync::tell_acquired(&state_);
    return taken;
  }
  void release() {
    Sync::tell_released(&state_);
    if (Sync::is_alone() && change_alone(kHeld, kFree)) return;
    std::uint32_t held = kHeld;
    if (!state_.compare_exchange_strong(held, kFree, std::memory_order_release,
                                        std::memory_order_relaxed)) {
      release_slowly();
    }
  }
  // Does some thread wait, spinning or asleep? For a holder that can leave the lock for a while. A
  // hint: threads that are suspended, or that jump out of a handler, stay counted.
  [[nodiscard]] bool is_wanted() const { return wanting_.load(std::memory_order_relaxed) != 0; }
  // For its lifetime the caller counts as one of those.
  class Wanting {
   public:
    explicit Wanting(LockOver& lock) : lock_(lock) {
      lock_.wanting_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Wanting() {
      // In the child of a fork, nobody is counted.
      std::uint32_t seen = lock_.wanting_.load(std::memory_order_relaxed);
      while (seen != 0 &&
             !lock_.wanting_.compare_exchange_weak(seen, seen - 1, std::memory_order_relaxed)) {
      }
    }
    Wanting(const Wanting&) = delete;
    Wanting& operator=(const Wanting&) = delete;

   private:
    LockOver& lock_;
  };
  // For a holder that has parked another thread: that one may have been the sleeper woken last, and
  // will not take the lock now. So the next sleeper has to be woken in its stead, and nothing is
  // reserved for the parked one. Pre: held.
  void mark_contended() {
    std::uint32_t held = kHeld;
    state_.compare_exchange_strong(held, kContended, std::memory_order_relaxed,
                                   std::memory_order_relaxed);
    forget_starving();
  }
  // The child of a fork owns every lock that fork() was called with; it starts them afresh.
  void reset_in_child() {
    state_.store(kFree, std::memory_order_relaxed);
    starving_.store(0, std::memory_order_relaxed);
    wanting_.store(0, std::memory_order_relaxed);
  }

 private:
  // Usually whoever comes first takes a free lock, a newcomer before a sleeper that was just woken:
  // that keeps the lock busy. But a thread that takes it again and again, as one that collects in a
  // loop does, would keep a sleeper out for seconds. So a sleeper that has waited for kLongWait has
  // the holder leave the lock reserved, for those who have slept, and wake one of them.
  enum : std::uint32_t {
    kFree = 0,
    kHeld = 1,
    kContended = 2,  // held, and somebody may sleep
    kStarving = 3,   // held, and somebody sleeps who has waited for long
    kReserved = 4,   // free for those who have slept
  };
  // Well above what waking a thread takes, so that bursts stay first come, first served.
  static constexpr std::uint64_t kLongWait = 1000000;  // 1 ms
  // A reserved lock that nobody takes (its thread may sit in a handler of the program's) is
  // anybody's after this.
  static constexpr std::uint64_t kReservation = 10000000;  // 10 ms
  // Looks at the state, each after a pause twice as long as the one before: 127 pauses in all, two
  // to four microseconds. That is the length of a usual critical section here (taking a block), and
  // well under the cost of sleeping and waking.
  static constexpr unsigned kLooks = 7;

  // Without the cost of an atomic change. Pre: there is no other thread.
  bool change_alone(std::uint32_t from, std::uint32_t to) {
    if (state_.load(std::memory_order_relaxed) != from) return false;
    state_.store(to, std::memory_order_relaxed);
    return true;
  }
  void acquire_slowly();
  void release_slowly();

  // Counts the caller as starving; returns the round that it is counted in.
  std::uint64_t count_starving() {
    return starving_.fetch_add(1, std::memory_order_relaxed) / kRound;
  }
  void uncount_starving(std::uint64_t round) {
    std::uint64_t seen = starving_.load(std::memory_order_relaxed);
    while (seen / kRound == round &&
           !starving_.compare_exchange_strong(seen, seen - 1, std::memory_order_relaxed,
                                              std::memory_order_relaxed)) {
    }
  }
  // A thread still waiting counts itself again when it wakes; a parked one does not.
  void forget_starving() {
    std::uint64_t seen = starving_.load(std::memory_order_relaxed);
    while (seen % kRound != 0 && !starving_.compare_exchange_strong(
                                     seen, (seen / kRound + 1) * kRound, std::memory_order_relaxed,
                                     std::memory_order_relaxed)) {
    }
  }

  // Written by every thread that takes, leaves, or waits for the lock. Taking it is an acquire that
  // pairs with the release of leaving it; everything else needs no order.
  typename Sync::template Atomic<std::uint32_t> state_{kFree};
  // Threads that have waited for long and are not in yet. They need not sleep: one whose wait was
  // interrupted is in a handler, perhaps for a collection by the very thread that holds the lock.
  // That is the lower half; the upper counts the rounds, each of which ends as all are forgotten.
  // Written by these threads and by whoever forgets them, read by whoever leaves the lock (relaxed:
  // a hint).
  static constexpr std::uint64_t kRound = std::uint64_t{1} << 32;
  typename Sync::template Atomic<std::uint64_t> starving_{0};
  // How many wait. Written by them (relaxed: is_wanted), and no part of what is shown of the lock.
  std::atomic<std::uint32_t> wanting_{0};
};

template <class Sync>
void LockOver<Sync>::acquire_slowly() {
  const unsigned looks = Sync::looks(kLooks);
  for (unsigned look = 0; look < looks; ++look) {
    for (unsigned pause = 0; pause < 1u << look; ++pause) Sync::pause();
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    if (seen == kReserved || seen == kStarving) break;
    if (seen == kFree && state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire,
                                                        std::memory_order_relaxed)) {
      return;
    }
  }
  const std::uint64_t began = Sync::now();
  bool starving = false;           // it has waited for long, and is counted
  std::uint64_t round = 0;         // in this round
  bool may_take_reserved = false;  // it has slept, and is no newcomer
  bool has_lapsed = false;         // nobody came whom the lock was reserved for when it slept last
  for (;;) {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    if (seen == kFree || (seen == kReserved && may_take_reserved)) {
      // Others may sleep; a starving thread passes on what it got, until nobody sleeps or one got
      // it in time.
      if (state_.compare_exchange_strong(seen, starving ? kStarving : kContended,
                                         std::memory_order_acquire, std::memory_order_relaxed)) {
        // Those counted did not come, and may not for long: once is enough to wait for them.
        if (seen == kReserved && has_lapsed) forget_starving();
        if (starving) uncount_starving(round);
        return;
      }
      continue;
    }
    const std::uint32_t wanted = starving ? kStarving : kContended;
    if (seen < wanted) {
      if (!state_.compare_exchange_strong(seen, wanted, std::memory_order_relaxed,
                                          std::memory_order_relaxed)) {
        continue;
      }
      seen = wanted;
    }
    Sync::tell_waiting(&state_);
    const bool woken =
        Sync::wait_stoppably(&state_, seen, seen == kReserved ? kReservation : kForever);
    has_lapsed = seen == kReserved && !woken;
    // Woken, or the state has changed, or nobody came: no newcomer any more.
    may_take_reserved = true;
    if (starving ? round != starving_.load(std::memory_order_relaxed) / kRound
                 : Sync::now() - began > kLongWait) {
      starving = true;
      round = count_starving();
    }
  }
}

template <class Sync>
void LockOver<Sync>::release_slowly() {
  // Only the holder takes the state away from these two.
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  while (!state_.compare_exchange_strong(seen, seen == kStarving ? kReserved : kFree,
                                         std::memory_order_release, std::memory_order_relaxed)) {
  }
  if (Sync::wake(&state_, 1) != 0 || seen != kStarving) return;
  if (starving_.load(std::memory_order_relaxed) % kRound != 0) return;
  // Nobody waits any more, so it need not be reserved. Whoever came meanwhile may be asleep.
  seen = kReserved;
  if (state_.compare_exchange_strong(seen, kFree, std::memory_order_relaxed,
                                     std::memory_order_relaxed)) {
    Sync::wake(&state_, 1);
  }
}

extern template class LockOver<Machine>;
using Lock = LockOver<Machine>;

// The signal by which a lock's holder may stop threads: from now on it comes to any thread that has
// waited for a lock for 10 ms, even if that has blocked it, until the wait's end
// (os.req.lock-lets-stop). Its handler must not take locks. 0: none. Once, at the start.
void let_in_while_waiting(int signal);

template <class AnyLock>
class Guard {
 public:
  explicit Guard(AnyLock& lock) : lock_(lock) { lock_.acquire(); }
  ~Guard() { lock_.release(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  AnyLock& lock_;
};
using LockGuard = Guard<Lock>;

}  // namespace jd::os

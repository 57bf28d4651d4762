// How markers pass work to each other, and how they find out that all is done.
//
// A phase is one time that marking is shared. The leader (the collecting thread) begins it; helpers
// join as they wake, and guests, who have something else to do and may not come at all. Whoever has
// nothing to do is *idle*, and looks for a *packet* of entries that
// another gave away because it saw that somebody is *hungry*: idle, or invited and not there yet.
//
// Requirement (docs/design/mark.md): mark.req.exact-end — the phase ends when every member is idle
// and no packet is left, decided under one lock. tests/mark/exchange_test.cpp runs this very code
// in every interleaving of a small phase.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bits.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"

namespace jd::mark {

// Entry: what is passed on; copied as bytes. Sync: os::Machine, or a test's. Lock: a lock over it.
// Padded, so that what markers read has a line of its own.
template <class Entry, unsigned kEntries, unsigned kMembers, class Sync, class Lock>
class Exchange {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  struct Packet {
    unsigned count;
    Entry entries[kEntries];
  };
  // `packets`: room for kMembers of them, which are never more than there are hungry markers.
  constexpr explicit Exchange(Packet* packets) : packets_(packets) {}

  // --- The leader -------------------------------------------------------------------------------

  // Begins a phase with `helpers` helpers, those numbered below that, and at most so many guests,
  // whom invite() tells of it; calls work() for as long as there are entries; receive(entries,
  // count), under the lock, takes them. Pre: no phase is under way. Post: nobody has or offers any
  // entries, no helper or guest is within work(), and what they wrote there is visible.
  template <class Receive, class Work, class Invite>
  void lead(unsigned helpers, unsigned guests, Receive receive, Work work, Invite invite) {
    const std::uint32_t phase = begin(helpers, guests);
    invite();
    do {
      work();
    } while (find_entries(phase, receive));
  }

  // --- A helper ---------------------------------------------------------------------------------

  // Takes part in every phase from now on that invites this number.
  template <class Receive, class Work>
  [[noreturn]] void help(unsigned number, Receive receive, Work work) {
    for (;;) {
      // Acquire: pairs with begin(), which comes after what the leader prepared.
      const std::uint32_t phase = phase_.load(std::memory_order_acquire);
      if (join(number, phase)) {
        while (find_entries(phase, receive)) work();
      }
      while (phase_.load(std::memory_order_acquire) == phase) Sync::wait(&phase_, phase);
    }
  }

  // --- A guest ----------------------------------------------------------------------------------

  // Takes part in the phase that is under way, as the guest of some number that the phase has.
  // False if there is none, or it has as many as it may.
  template <class Receive, class Work>
  bool help_as_guest(Receive receive, Work work) {
    unsigned number = 0;
    const std::uint32_t phase = phase_.load(std::memory_order_acquire);
    if (!join_as_guest(phase, &number)) return false;
    const auto receive_as = [&](const Entry* entries, unsigned count) {
      receive(number, entries, count);
    };
    while (find_entries(phase, receive_as)) work(number);
    return true;
  }

  // --- Within work() ----------------------------------------------------------------------------

  // Does anybody wait for entries that nobody has given away yet?
  [[nodiscard]] bool hungry() const { return hungry_.load(std::memory_order_relaxed) > 0; }
  // Gives entries away. Pre: count <= kEntries. False if there is no room for a packet.
  bool give(const Entry* entries, unsigned count);

  // ----------------------------------------------------------------------------------------------

  // Packets that changed hands, waits for one, looks of those who waited, and guests that came,
  // since the start.
  struct Counts {
    std::uint64_t packets;
    std::uint64_t waits;
    std::uint64_t looks;
    std::uint64_t guests;
  };
  Counts counts() {
    const os::Guard<Lock> guard(lock_);
    return counts_;
  }

  // The child of a fork has no helpers. True if there were some in a phase that is under way: with
  // them went what they had to do, and the phase ends as soon as the leader has nothing to do, whom
  // the caller has interrupted. A leader that was alone goes on alone, with the packets that it
  // gave away and nobody took.
  [[nodiscard]] bool forget_helpers_in_child() {
    const bool is_under_way = open_.load(std::memory_order_relaxed);
    const bool some_are_lost = is_under_way && members_ > 1;
    lock_.reset_in_child();
    // The leader may be one of them. Those who are gone are woken in vain.
    if (!is_under_way) sleepers_.store(0, std::memory_order_relaxed);
    invited_ = guests_ = seats_ = 0;
    hungry_.store(0, std::memory_order_relaxed);
    if (some_are_lost) {
      members_ = 1;
      open_.store(false, std::memory_order_relaxed);
      // It may be idle, and have looked already whether the phase has ended.
      change_.fetch_add(1);
    }
    return some_are_lost;
  }

 private:
  // Looks of an idle marker before it goes to sleep: some tens of microseconds, about what sleeping
  // and being woken costs. With one processor there is nobody to wait for.
  static constexpr unsigned kLooks = 500;

  std::uint32_t begin(unsigned helpers, unsigned guests);
  bool join(unsigned number, std::uint32_t phase);
  bool join_as_guest(std::uint32_t phase, unsigned* number);
  template <class Receive>
  bool find_entries(std::uint32_t phase, Receive receive);
  template <class Receive>
  bool take_packet(Receive receive);
  void update_hungry();

  template <class T>
  using Atomic = typename Sync::template Atomic<T>;

  // Packets that are wanted and not there. Written under the lock; read by working markers without
  // it (relaxed: a late answer is as good), each time they take an object. Alone on its line, which
  // changes only when somebody becomes idle or finds work.
  alignas(base::kLine) Atomic<int> hungry_{0};

  // What follows is written under it.
  alignas(base::kLine) Lock lock_;
  // Counts the phases. Read by helpers without the lock, which wait on it (acquire; the leader's
  // store is a release).
  Atomic<std::uint32_t> phase_{0};
  // Counts packets and ends. Idle markers wait on it: they read it, then look for a packet, then
  // say that they sleep (sleepers_), then wait while it is the same. Whoever changes it looks at
  // sleepers_ afterwards. So one of the two sees the other (sequentially consistent, all four
  // accesses).
  Atomic<std::uint32_t> change_{0};
  // Written by those who sleep, without the lock; see change_.
  Atomic<std::uint32_t> sleepers_{0};
  // A phase is under way; packets that are offered. Read without the lock as a hint that it is
  // worth taking (relaxed).
  Atomic<bool> open_{false};
  Atomic<unsigned> packet_count_{0};
  unsigned invited_ = 0;  // helpers that may join this phase
  unsigned seats_ = 0;    // guests that may
  unsigned guests_ = 0;   // guests that have
  unsigned members_ = 0;  // markers that have joined it, and of these
  unsigned idle_ = 0;     // the ones without entries
  Counts counts_{};
  Packet* packets_;
};

#define JD_EXCHANGE_TEMPLATE \
  template <class Entry, unsigned kEntries, unsigned kMembers, class Sync, class Lock>
#define JD_EXCHANGE Exchange<Entry, kEntries, kMembers, Sync, Lock>

JD_EXCHANGE_TEMPLATE
void JD_EXCHANGE::update_hungry() {
  // Nobody waits for guests.
  const unsigned absent = invited_ + 1 + guests_ - members_;
  hungry_.store(static_cast<int>(absent + idle_) -
                    static_cast<int>(packet_count_.load(std::memory_order_relaxed)),
                std::memory_order_relaxed);
}

JD_EXCHANGE_TEMPLATE
std::uint32_t JD_EXCHANGE::begin(unsigned helpers, unsigned guests) {
  std::uint32_t phase = 0;
  {
    const os::Guard<Lock> guard(lock_);
    invited_ = helpers;
    seats_ = guests;
    guests_ = 0;
    members_ = 1;
    idle_ = 0;
    packet_count_.store(0, std::memory_order_relaxed);
    phase = phase_.load(std::memory_order_relaxed) + 1;
    phase_.store(phase, std::memory_order_release);
    open_.store(true, std::memory_order_relaxed);
    update_hungry();
  }
  Sync::wake(&phase_, os::kAllWaiters);
  return phase;
}

// False if it is too late, or the helper was made after the phase began and is not prepared for it.
JD_EXCHANGE_TEMPLATE
bool JD_EXCHANGE::join(unsigned number, std::uint32_t phase) {
  const os::Guard<Lock> guard(lock_);
  if (!open_.load(std::memory_order_relaxed) || phase_.load(std::memory_order_relaxed) != phase ||
      number >= invited_) {
    return false;
  }
  ++members_;
  update_hungry();
  return true;
}

JD_EXCHANGE_TEMPLATE
bool JD_EXCHANGE::join_as_guest(std::uint32_t phase, unsigned* number) {
  if (!open_.load(std::memory_order_relaxed)) return false;
  const os::Guard<Lock> guard(lock_);
  if (!open_.load(std::memory_order_relaxed) || phase_.load(std::memory_order_relaxed) != phase ||
      guests_ == seats_) {
    return false;
  }
  *number = guests_++;
  ++members_;
  ++counts_.guests;
  update_hungry();
  return true;
}

// Pre: the lock is held.
JD_EXCHANGE_TEMPLATE
template <class Receive>
bool JD_EXCHANGE::take_packet(Receive receive) {
  const unsigned count = packet_count_.load(std::memory_order_relaxed);
  if (count == 0) return false;
  const Packet& packet = packets_[count - 1];
  receive(packet.entries, packet.count);
  packet_count_.store(count - 1, std::memory_order_relaxed);
  ++counts_.packets;
  update_hungry();
  return true;
}

JD_EXCHANGE_TEMPLATE
bool JD_EXCHANGE::give(const Entry* entries, unsigned count) {
  bool wake = false;
  {
    const os::Guard<Lock> guard(lock_);
    const unsigned packets = packet_count_.load(std::memory_order_relaxed);
    if (packets == kMembers) return false;
    packets_[packets].count = count;
    base::copy_bytes(packets_[packets].entries, entries, count * sizeof(Entry));
    packet_count_.store(packets + 1, std::memory_order_relaxed);
    Sync::tell_atomic(&change_);
    change_.fetch_add(1);
    wake = sleepers_.load() != 0;
    update_hungry();
  }
  if (wake) Sync::wake(&change_, 1);
  return true;
}

// True when the marker has entries again; false when the phase has ended.
JD_EXCHANGE_TEMPLATE
template <class Receive>
bool JD_EXCHANGE::find_entries(std::uint32_t phase, Receive receive) {
  {
    const os::Guard<Lock> guard(lock_);
    if (take_packet(receive)) return true;
    ++idle_;
    ++counts_.waits;
    if (idle_ == members_) {
      open_.store(false, std::memory_order_relaxed);
      hungry_.store(0, std::memory_order_relaxed);
      Sync::tell_atomic(&change_);
      change_.fetch_add(1);
    } else {
      update_hungry();
    }
  }
  const unsigned looks = Sync::looks(kLooks);
  for (unsigned look = 0;; ++look) {
    const std::uint32_t seen = change_.load();
    if (packet_count_.load(std::memory_order_relaxed) != 0 ||
        !open_.load(std::memory_order_relaxed) || phase_.load(std::memory_order_relaxed) != phase) {
      const os::Guard<Lock> guard(lock_);
      const bool ended =
          !open_.load(std::memory_order_relaxed) || phase_.load(std::memory_order_relaxed) != phase;
      const bool found = !ended && packet_count_.load(std::memory_order_relaxed) != 0;
      if (ended || found) counts_.looks += look;
      if (ended) break;
      if (found) {
        --idle_;
        return take_packet(receive);
      }
    }
    if (look < looks) {
      Sync::pause();
      continue;
    }
    Sync::tell_atomic(&sleepers_);
    sleepers_.fetch_add(1);
    Sync::wait(&change_, seen);
    Sync::tell_atomic(&sleepers_);
    sleepers_.fetch_sub(1);
  }
  if (sleepers_.load() != 0) Sync::wake(&change_, os::kAllWaiters);
  return false;
}

#undef JD_EXCHANGE_TEMPLATE
#undef JD_EXCHANGE

}  // namespace jd::mark

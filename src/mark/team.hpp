// Marking by several threads: the collecting thread and its helpers.
//
// Source: Boehm's notes on bdwgc's parallel marker, and Flood, Detlefs, Shavit & Zhang, "Parallel
// Garbage Collection for Shared Memory Multiprocessors" (2001), for sharing in units of many
// entries. Differs in: markers have stacks of their own and share only when somebody is hungry, so
// that a lone marker, and a graph that is a list, pay one load of an unchanging line an object.
//
// Requirements (docs/design/mark.md; the way they are met: docs/design/mark-team.md):
// mark.req.exact-end — marking ends when every marker is idle and no packet is left, decided under
// one lock; mark.req.lazy — no thread is made before marking has taken long enough to share, and
// none in a stopped world.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/options.hpp"
#include "mark/entry.hpp"
#include "mark/exchange.hpp"
#include "os/lock.hpp"

namespace jd::mark {

class Marker;

class Team {
 public:
  static constexpr unsigned kMostMarkers = 64;
  // Entries that are handed over at a time, at most.
  static constexpr unsigned kPacketEntries = 128;
  // Some tens of microseconds of marking, about what waking a helper takes. A lone list is nothing
  // to share.
  static constexpr std::uint64_t kPatience = base::Options{}.mark_patience;

  // Fewer objects than this, of fewer bytes, are marked in less time than waking a helper is worth:
  // the processors take half as much time again for a third of a millisecond less at best.
  static constexpr std::size_t kFew = 65536;
  static constexpr std::size_t kFewBytes = kFew * base::kLine;  // a line each; a guess
  static constexpr std::uint64_t kPatienceWithFew = 16 * kPatience;
  // A process that ends soon, such as many a fork's child, marks less, and making threads in it
  // takes longer than that.
  static constexpr std::uint64_t kWorthThreads = 2000000;  // ns: 2 ms

  struct Settings {
    unsigned markers = 1;  // that may work, the collecting thread included; at most kMostMarkers
    // How often a lone marker goes to its stack, or to one of several lists, before it shares; and
    // where few objects were alive the last time (kFew), if that is not the same.
    std::uint64_t patience = kPatience;
    std::uint64_t patience_with_few = 0;
    // Helpers are made when collections that want them have marked for so long, in ns; 0: at once.
    std::uint64_t worth_threads = 0;
    // Of a marker's turn without the rings (ring_use.hpp); 0: always with them.
    std::uint64_t turn_entries = base::Options{}.mark_turn;
    std::size_t stack_entries = 0;  // of each marker's stack; 0: by the heap
    bool measured = false;          // whether company pays (choice.hpp)
    int* published = nullptr;       // where the number of helpers is told to the program
  };
  // Once, before there are helpers.
  void configure(const Settings& settings) { settings_ = settings; }
  // 0: for ever.
  [[nodiscard]] std::uint64_t patience() const {
    if (settings_.markers == 1) return 0;
    return had_few_ && settings_.patience_with_few != 0 ? settings_.patience_with_few
                                                        : settings_.patience;
  }

  // As many as an empty stack has room for: what is handed over may lead to the contents of an
  // object that is not marked itself, and would not be found again.
  [[nodiscard]] unsigned packet_entries() const {
    const std::size_t room = settings_.stack_entries;
    return room == 0 || room >= kPacketEntries ? kPacketEntries : static_cast<unsigned>(room);
  }
  [[nodiscard]] std::uint64_t turn_entries() const { return settings_.turn_entries; }
  [[nodiscard]] bool is_stress() const {
    return settings_.turn_entries != 0 && settings_.turn_entries <= kStressTurn;
  }

  // Threads of the program's that wait for something else, and mark meanwhile.
  struct Pool {
    unsigned (*idle)();           // how many wait now, about
    void (*wake)(unsigned most);  // has so many of them call help_as_guest() once
  };
  // Pre: the heap's lock is held. Post: so many may be guests at the same time, but no more than
  // there are to be markers. The system may refuse; then fewer.
  void prepare_guests(const Pool& pool, unsigned count);
  // Marks for as long as the phase lasts that is under way, if there is one, and something to do
  // for one more. Pre: no collection stops the caller, or needs its stack from here on: it is in a
  // blocking section.
  void help_as_guest();

  // How many threads help.
  [[nodiscard]] unsigned helpers() const { return helpers_.load(std::memory_order_relaxed); }

  // Marks what `first` has queued and all that it leads to, with guests, and with helpers for those
  // that are not there; asks for more helpers if there are too few of both (in_demand). False,
  // having marked nothing, if there are neither, or no memory for them, or it is to be alone
  // (begin_collection). Pre: the world is stopped, the heap's lock is held.
  // Post: every helper is idle; overflows are noted in `first`.
  bool mark(Marker* first);
  // As Marker::discard_tables, of the helpers' and guests' markers. Pre: the heap's lock is held.
  void discard_tables() const;

  // A collection begins. alone: nobody is woken for it, whatever helpers there are. Pre: the heap's
  // lock is held.
  void begin_collection(bool alone) {
    alone_ = alone;
    had_choice_ = false;
  }
  // So far it was marked in company, or would have been if it were not to be alone.
  [[nodiscard]] bool had_choice() const { return had_choice_; }
  // Whether a choice is to be made: the program has not said when to share.
  [[nodiscard]] bool is_measured() const { return settings_.measured && settings_.markers > 1; }
  [[nodiscard]] unsigned most_markers() const { return settings_.markers; }

  // A collection has marked so many objects, of so many bytes together, in so many ns. Pre: the
  // heap's lock is held.
  void note_collection(std::size_t objects, std::size_t bytes, std::uint64_t ns);

  // Whether marking took long enough for more helpers to be worth while.
  [[nodiscard]] bool in_demand() const { return demand_.load(std::memory_order_relaxed); }
  // Makes the helper threads. Pre: the world runs, and no lock of ours is held: making a thread
  // allocates, maybe through us. Returns how many helpers there are now.
  unsigned start_helpers();

  // The child of a fork has no helpers; it gets new ones when they are wanted again. Where the fork
  // was called by a handler that interrupted a phase with helpers, what these had to do is lost,
  // and the phase ends with `first` abandoned (Marker::abandon).
  void forget_helpers_in_child();

  // For working markers (Exchange).
  [[nodiscard]] bool hungry() const { return exchange_.hungry(); }
  bool give(const Entry* entries, unsigned count) { return exchange_.give(entries, count); }

 private:
  // Turns of at most so many entries alternate between using the rings and not.
  static constexpr std::uint64_t kStressTurn = 15;

  using TheExchange = Exchange<Entry, kPacketEntries, kMostMarkers, os::Machine, os::Lock>;

 public:
  using Counts = TheExchange::Counts;
  [[nodiscard]] Counts counts() { return exchange_.counts(); }

  // Static data that holds words of the heap's but is no root.
  static char* scratch() { return reinterpret_cast<char*>(packets); }
  static constexpr std::size_t scratch_size() { return sizeof packets; }

 private:
  static void* run_helper(void* self);
  [[nodiscard]] unsigned guests_at_hand() const {
    return guests_ == 0 ? 0 : base::min_of(pool_.idle(), guests_);
  }
  void publish(unsigned helpers);
  void want_more_if_worth_it();

  // Outside of the object, whose first state would otherwise fill a file's pages.
  static TheExchange::Packet packets[kMostMarkers];
  TheExchange exchange_{packets};

  // Written once, before there are helpers.
  Settings settings_;
  // Under the heap's lock.
  Pool pool_{};
  unsigned guests_ = 0;  // markers that are prepared for them
  bool had_few_ = true;  // the last collection
  // The present collection.
  bool alone_ = false;
  bool had_choice_ = false;
  // The present collection wants more helpers; and how long those before it that did have marked,
  // since the start or the fork, in ns.
  bool wants_more_ = false;
  std::uint64_t wanting_ns_ = 0;
  // Helper threads that were made. Written by the maker (starting_), which prepares each under the
  // heap's lock before; read by the collector, which holds that lock. So a helper that is seen is
  // seen prepared (relaxed).
  std::atomic<unsigned> helpers_{0};
  // The system refused a thread: no more are asked for, but in the child of a fork. Written by the
  // maker, read by the collector; a hint (relaxed).
  std::atomic<bool> no_more_{false};
  // Helpers are wanted. Set by the collector, taken back by the maker; read by every slow path, as
  // a hint (relaxed).
  std::atomic<bool> demand_{false};
  // The child of a fork has come into a phase whose helpers it does not have, and which has not
  // ended yet. Under the heap's lock.
  bool some_are_lost_ = false;
  // Somebody makes helpers. Whoever changes it from false (acquire) to true is the maker, until it
  // changes it back (release).
  std::atomic<bool> starting_{false};
};
// Ready before any constructor runs: a program's may allocate.
extern constinit Team team;

}  // namespace jd::mark

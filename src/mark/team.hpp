// Marking by several threads: the collecting thread and its helpers.
//
// Source: Boehm's notes on bdwgc's parallel marker, and Flood, Detlefs, Shavit & Zhang, "Parallel
// Garbage Collection for Shared Memory Multiprocessors" (2001), for sharing in units of many
// entries. Differs in: markers have stacks of their own and share only when somebody is hungry, so
// that a lone marker, and a graph that is a list, pay one load of an unchanging line an object.
//
// Requirements (docs/design/mark.md, "Several markers"): mark.req.exact-end — marking ends when
// every marker is idle and no packet is left, decided under one lock; mark.req.lazy — no thread is
// made before marking has taken long enough to share, and none in a stopped world.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/options.hpp"
#include "mark/range.hpp"
#include "os/lock.hpp"

namespace jd::mark {

class Marker;

// What working markers read has a line of its own.
class Team {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  static constexpr unsigned kMostMarkers = 64;
  // Entries that are handed over at a time.
  static constexpr unsigned kPacketEntries = 128;
  // Some tens of microseconds of marking, about what waking a helper takes. A list never goes to
  // the stack.
  static constexpr std::uint64_t kPatience = base::Options{}.mark_patience;

  struct Settings {
    unsigned markers = 1;  // that may work, the collecting thread included; at most kMostMarkers
    // How often a lone marker goes to its stack before it shares.
    std::uint64_t patience = kPatience;
    std::size_t stack_entries = 0;  // of helpers' stacks; 0: by the heap
    int* published = nullptr;       // where the number of helpers is told to the program
  };
  // Once, before there are helpers.
  void configure(const Settings& settings) { settings_ = settings; }
  // 0: for ever.
  [[nodiscard]] std::uint64_t patience() const {
    return settings_.markers > 1 ? settings_.patience : 0;
  }

  // How many threads help.
  [[nodiscard]] unsigned helpers() const { return helpers_.load(std::memory_order_relaxed); }

  // Marks what `first` has queued and all that it leads to, with all helpers. False, having done
  // nothing, if there are none: then note_demand() asks for them. Pre: the world is stopped, the
  // heap's lock is held. Post: every helper is idle; overflows are noted in `first`.
  bool mark(Marker* first);

  // Marking took long enough for helpers to be worth while.
  void note_demand() {
    if (!no_more_ && helpers() + 1 < settings_.markers) demand_.store(true);
  }
  [[nodiscard]] bool in_demand() const { return demand_.load(std::memory_order_relaxed); }
  // Makes the helper threads. Pre: the world runs, and no lock of ours is held: making a thread
  // allocates, maybe through us. Returns how many helpers there are now.
  unsigned start_helpers();

  // The child of a fork has no helpers; it gets new ones when they are wanted again.
  void forget_helpers_in_child();

  // For working markers: does anybody wait for work that nobody has given away yet?
  [[nodiscard]] bool hungry() const { return hungry_.load(std::memory_order_relaxed) > 0; }
  // Gives entries away. Pre: count <= kPacketEntries. False if there is no room for a packet.
  bool give(const Range* entries, unsigned count);

  // Packets that changed hands, and waits for one, since the start of the process.
  struct Counts {
    std::uint64_t packets;
    std::uint64_t waits;
  };
  [[nodiscard]] Counts counts();

 private:
  struct Packet {
    unsigned count;
    Range entries[kPacketEntries];
  };

  static void* run_helper(void* self);
  void publish(unsigned helpers);
  bool join(const Marker* marker, std::uint32_t phase);
  bool find_work(Marker* marker, std::uint32_t phase);
  bool take_packet(Marker* marker);
  void update_hungry();

  // What working markers read, on a line that changes only when somebody becomes idle or finds
  // work.
  alignas(64) std::atomic<int> hungry_{0};

  alignas(64) os::Lock lock_;
  // Under the lock; those that are read without it are atomic.
  std::atomic<std::uint32_t> phase_{0};   // counts the times that marking was shared
  std::atomic<std::uint32_t> change_{0};  // counts packets and ends: what idle markers wait for
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> open_{false};  // a phase is under way
  std::atomic<unsigned> packet_count_{0};
  unsigned invited_ = 0;  // helpers that may join this phase
  unsigned members_ = 0;  // markers that have joined it, and of these
  unsigned idle_ = 0;     // the ones without work
  std::atomic<unsigned> helpers_{0};
  Counts counts_{};

  Settings settings_;
  // The system refused a thread.
  std::atomic<bool> no_more_{false};
  std::atomic<bool> demand_{false};
  std::atomic<bool> starting_{false};
  // Never more than there are hungry markers. Outside of the object, whose first state would else
  // fill a file's pages.
  static Packet offered[kMostMarkers];
};
// Ready before any constructor runs: a program's may allocate.
extern constinit Team team;

}  // namespace jd::mark

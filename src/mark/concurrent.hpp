// A thread that marks beside the running program: a collection that is done in steps
// (cycle/incremental.hpp) goes on while the program runs, where there is a processor for it.
//
// Source: Boehm, Demers & Shenker, "Mostly Parallel Garbage Collection" (1991). Differs in: it
// marks under the heap's lock, which it leaves as soon as somebody waits for it; so no block's
// record changes meanwhile, and what it meets is what a step in a stopped world could meet, but for
// objects' words, and bits of slots that are handed out or freed without that lock.
//
// Requirement (docs/design/cycle.md): cycle.req.incremental.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/futex.hpp"

namespace jd::mark {

class Concurrent {
 public:
  // Marks for a while. False if there is nothing to do until the next wake. Pre: the heap's lock is
  // held.
  using Step = bool (*)();
  // Once, before there is anything to mark, or never: then there is no thread.
  void configure(Step step) { step_ = step; }

  // Does it run, or will it?
  [[nodiscard]] bool is_on() const {
    return step_ != nullptr && !is_refused_.load(std::memory_order_relaxed);
  }
  // How many threads it is, 0 or 1.
  [[nodiscard]] unsigned threads() const { return runs_.load(std::memory_order_relaxed) ? 1 : 0; }
  // Odd while it has the heap's lock, or tries to get it, for which it never waits; another value
  // each time.
  [[nodiscard]] std::uint32_t turns() const { return turns_.load(std::memory_order_seq_cst); }
  // There is something to mark. Pre: the heap's lock is held.
  void wake();
  // Is the thread wanted, and not made?
  [[nodiscard]] bool in_demand() const { return demand_.load(std::memory_order_relaxed); }
  // Makes it. Pre: the world runs, and no lock of ours is held: making a thread allocates, maybe
  // through us.
  void start();
  // The child of a fork has no such thread; it gets one when it is wanted again.
  void forget_in_child();

 private:
  enum class Turn : std::uint8_t { NoLock, Nothing, More };

  static void* run(void* self);
  Turn take_turn();

  Step step_ = nullptr;
  // Counts wakes. Written by whoever wakes, waited for by the thread (relaxed: what there is to do
  // is said under the heap's lock).
  std::atomic<std::uint32_t> wakes_{0};
  // Written by the thread; read by others that want to know who has the lock (sequentially
  // consistent: odd before it is taken, even after it is left).
  std::atomic<std::uint32_t> turns_{0};
  // The thread was made, or the system refused it; it is wanted; somebody makes it. Each is written
  // by the maker, demand_ also by whoever wakes; hints (relaxed), but whoever changes starting_
  // from false is the maker.
  std::atomic<bool> runs_{false};
  std::atomic<bool> is_refused_{false};
  std::atomic<bool> demand_{false};
  std::atomic<bool> starting_{false};
};
// Ready before any constructor runs.
extern constinit Concurrent concurrent;

}  // namespace jd::mark

// A thread that marks beside the running program: a collection that is done in steps
// (cycle/incremental.hpp) goes on while the program runs, where there is a processor for it.
//
// Source: Boehm, Demers & Shenker, "Mostly Parallel Garbage Collection" (1991). Differs in: it
// marks under the heap's lock, which it leaves as soon as somebody waits for it. So no block comes
// into use, goes, or changes its kind or its slots meanwhile, and what it meets is what a step in a
// stopped world could meet, but for what is written without that lock: objects' words, bits of
// slots that are handed out or freed, and the size of a large object that grows where it is.
//
// Requirement (docs/design/cycle.md): cycle.req.incremental.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/futex.hpp"

namespace jd::mark {

class Concurrent {
 public:
  // Marks for a while, or (leaves) until somebody wants the lock. False if there is nothing to do
  // until the next wake. Pre: the heap's lock is held.
  using Step = bool (*)(bool leaves);
  // Once, before there is anything to mark, or never: then there is no thread.
  void configure(Step step) { step_ = step; }

  // How many threads it is, 0 or 1.
  [[nodiscard]] unsigned threads() const { return runs_.load(std::memory_order_relaxed) ? 1 : 0; }
  // Takes the heap's lock if nobody has it, or waits for this thread to leave it. False if another
  // thread has it, perhaps the caller. Async-signal-safe.
  [[nodiscard]] bool try_lock_heap() const;
  // There is something to mark. Pre: the heap's lock is held.
  void wake();
  // Is the thread wanted, and not made?
  [[nodiscard]] bool in_demand() const { return demand_.load(std::memory_order_relaxed); }
  // Makes it. Pre: the world runs, and no lock of ours is held: making a thread allocates, maybe
  // through us.
  void start();
  // Until let_start or forget_in_child, none is made: a fork is under way. Pre: the caller is the
  // process's only thread.
  void hold_back() { starting_.store(true, std::memory_order_relaxed); }
  void let_start() { starting_.store(false, std::memory_order_release); }
  // The child of a fork has no such thread; it gets one when it is wanted again.
  void forget_in_child();

 private:
  enum class Hold : std::uint8_t { NoLock, Nothing, More };

  // Does it run, or will it?
  [[nodiscard]] bool is_on() const {
    return step_ != nullptr && !is_refused_.load(std::memory_order_relaxed);
  }
  static void* run(void* self);
  Hold take_hold(bool leaves);

  Step step_ = nullptr;
  // Counts wakes. Written by whoever wakes, waited for by the thread (relaxed: what there is to do
  // is said under the heap's lock).
  std::atomic<std::uint32_t> wakes_{0};
  // Odd while the thread has the lock, or tries to get it, for which it never waits; another value
  // each time. Written by the thread, before it takes the lock and after it has left it (release);
  // read by who did not get the lock (acquire).
  std::atomic<std::uint32_t> holds_{0};
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

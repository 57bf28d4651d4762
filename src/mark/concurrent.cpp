#include "mark/concurrent.hpp"

#include "base/bits.hpp"
#include "heap/space.hpp"
#include "os/cpu.hpp"
#include "os/lock.hpp"
#include "os/thread.hpp"

namespace jd::mark {
namespace {

// No procedure of the program's runs on it.
constexpr std::size_t kStack = 128 * base::kKiB;

// Whoever waits is to have the lock first. Not for ever: it may be suspended. False: the lock is
// still wanted after some tens of microseconds; a guess.
bool let_others_in() {
  constexpr unsigned kMostPauses = 1024;
  for (unsigned i = 0; i < kMostPauses; ++i) {
    if (!heap::heap_lock.is_wanted()) return true;
    os::cpu_relax();
  }
  return false;
}

// The lock is held. So many times it may be for a moment; then it is for a pause, whose end wakes
// the thread, or by somebody who tells of no end: naps of 20 us to 20 ms. Guesses.
constexpr unsigned kShortAttempts = 4;
std::uint64_t nap(unsigned attempt) {
  constexpr std::uint64_t kShortest = 20000;  // ns
  constexpr unsigned kMostDoublings = 10;
  return kShortest << base::min_of(attempt - kShortAttempts, kMostDoublings);
}

}  // namespace

constinit Concurrent concurrent;

void Concurrent::wake() {
  if (!is_on()) return;
  if (!runs_.load(std::memory_order_relaxed)) {
    demand_.store(true, std::memory_order_relaxed);
    return;
  }
  wakes_.fetch_add(1, std::memory_order_relaxed);
  os::futex_wake(&wakes_, 1);
}

Concurrent::Hold Concurrent::take_hold(bool leaves) {
  Hold hold = Hold::NoLock;
  holds_.fetch_add(1, std::memory_order_release);
  if (heap::heap_lock.try_acquire()) {
    hold = step_(leaves) ? Hold::More : Hold::Nothing;
    heap::heap_lock.release();
  }
  holds_.fetch_add(1, std::memory_order_release);
  return hold;
}

bool Concurrent::try_lock_heap() const {
  constexpr unsigned kShortAttempts = 128;
  constexpr std::uint64_t kNap = 50000;  // ns
  const os::Lock::Wanting wanting(heap::heap_lock);
  for (unsigned attempt = 0;; ++attempt) {
    const std::uint32_t before = holds_.load(std::memory_order_acquire);
    if (heap::heap_lock.try_acquire()) return true;
    if (before % 2 == 0 && holds_.load(std::memory_order_acquire) == before) return false;
    // It may not run at all while a thread of higher priority does. (The numbers are guesses.)
    if (attempt < kShortAttempts) {
      os::cpu_relax();
    } else {
      os::sleep_ns(kNap);
    }
  }
}

void* Concurrent::run(void* self) {
  auto* const thread = static_cast<Concurrent*>(self);
  bool leaves = true;
  for (unsigned attempt = 0;;) {
    const std::uint32_t seen = thread->wakes_.load(std::memory_order_relaxed);
    switch (thread->take_hold(leaves)) {
      case Hold::More:
        attempt = 0;
        leaves = let_others_in();
        break;
      case Hold::Nothing:
        attempt = 0;
        os::futex_wait(&thread->wakes_, seen);
        break;
      case Hold::NoLock:
        if (attempt < kShortAttempts) {
          static_cast<void>(let_others_in());
        } else if (os::futex_wait(&thread->wakes_, seen, nap(attempt))) {
          attempt = 0;
          break;
        }
        ++attempt;
        break;
    }
  }
}

void Concurrent::start() {
  // Making a thread may allocate, and so lead here again.
  if (starting_.exchange(true, std::memory_order_acquire)) return;
  demand_.store(false, std::memory_order_relaxed);
  if (!runs_.load(std::memory_order_relaxed)) {
    const bool made = os::start_thread(run, this, kStack, "gc-concurrent");
    (made ? runs_ : is_refused_).store(true, std::memory_order_relaxed);
  }
  // Whoever wanted it meanwhile did not know, or not yet, that it was there.
  wakes_.fetch_add(1, std::memory_order_relaxed);
  os::futex_wake(&wakes_, 1);
  starting_.store(false, std::memory_order_release);
}

void Concurrent::forget_in_child() {
  holds_.store(0, std::memory_order_relaxed);
  runs_.store(false, std::memory_order_relaxed);
#if defined(JD_SANITIZE_THREAD)
  // ThreadSanitizer ends a child that makes threads (docs/guide/building.md).
  constexpr bool is_refused = true;
#else
  constexpr bool is_refused = false;
#endif
  is_refused_.store(is_refused, std::memory_order_relaxed);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_relaxed);
}

}  // namespace jd::mark

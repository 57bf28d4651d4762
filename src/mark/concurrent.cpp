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

// Whoever waits is to have the lock first. Not for ever: it may be stopped, or wait for another
// lock for long. Some tens of microseconds; a guess.
void let_others_in() {
  constexpr unsigned kMostPauses = 1024;
  for (unsigned i = 0; i < kMostPauses && os::somebody_waits_for_a_lock(); ++i) os::cpu_relax();
}

// The lock is held: for a moment, or for a whole collection.
void wait_for_lock(unsigned attempt) {
  constexpr unsigned kShortAttempts = 4;
  constexpr std::uint64_t kShortest = 20000;  // ns
  constexpr unsigned kMostDoublings = 6;
  if (attempt < kShortAttempts) return let_others_in();
  os::sleep_ns(kShortest << base::min_of(attempt - kShortAttempts, kMostDoublings));
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

Concurrent::Turn Concurrent::take_turn() {
  Turn turn = Turn::NoLock;
  turns_.fetch_add(1, std::memory_order_seq_cst);
  if (heap::heap_lock.try_acquire()) {
    turn = step_() ? Turn::More : Turn::Nothing;
    heap::heap_lock.release();
  }
  turns_.fetch_add(1, std::memory_order_seq_cst);
  return turn;
}

void* Concurrent::run(void* self) {
  auto* const thread = static_cast<Concurrent*>(self);
  for (;;) {
    const std::uint32_t seen = thread->wakes_.load(std::memory_order_relaxed);
    unsigned attempt = 0;
    for (Turn turn = Turn::More; turn != Turn::Nothing;) {
      turn = thread->take_turn();
      if (turn == Turn::NoLock) {
        wait_for_lock(attempt++);
      } else {
        attempt = 0;
        let_others_in();
      }
    }
    os::futex_wait(&thread->wakes_, seen);
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
  starting_.store(false, std::memory_order_release);
}

void Concurrent::forget_in_child() {
  turns_.store(0, std::memory_order_relaxed);
  runs_.store(false, std::memory_order_relaxed);
  is_refused_.store(false, std::memory_order_relaxed);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_relaxed);
}

}  // namespace jd::mark

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

bool Concurrent::step() {
  const os::LockGuard guard(heap::heap_lock);
  holds_lock_.store(true, std::memory_order_relaxed);
  const bool more = step_();
  holds_lock_.store(false, std::memory_order_relaxed);
  return more;
}

void* Concurrent::run(void* self) {
  auto* const thread = static_cast<Concurrent*>(self);
  for (;;) {
    const std::uint32_t seen = thread->wakes_.load(std::memory_order_relaxed);
    while (thread->step()) let_others_in();
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
  holds_lock_.store(false, std::memory_order_relaxed);
  runs_.store(false, std::memory_order_relaxed);
  is_refused_.store(false, std::memory_order_relaxed);
  demand_.store(false, std::memory_order_relaxed);
  starting_.store(false, std::memory_order_relaxed);
}

}  // namespace jd::mark

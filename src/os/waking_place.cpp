#include "os/waking_place.hpp"

#include <cstring>

#include "os/cpu.hpp"
#include "os/kept_errno.hpp"

namespace jd::os {

void WakingPlace::begin_sleep(int thread) {
  // A waker of the sleep before may not be done: then this one is as any other thread's.
  if (state_.load(std::memory_order_acquire) != kAwake) return;
  thread_ = thread;
  state_.store(kAsleep, std::memory_order_release);
}

void WakingPlace::end_sleep() {
  std::uint32_t state = kAsleep;
  state_.compare_exchange_strong(state, kAwake, std::memory_order_relaxed);
  // Its waker has two system calls to go at most, some microseconds, unless it has lost its
  // processor: then naps leave that to it, a few slices long. Guesses.
  constexpr int kLooks = 1000;
  constexpr std::uint64_t kNap = 50000;  // ns
  constexpr int kNaps = 200;
  for (int i = 0; i < kLooks + kNaps; ++i) {
    if (state_.load(std::memory_order_acquire) != kMoving) return;
    if (i < kLooks) {
      cpu_relax();
    } else {
      sleep_ns(kNap);
    }
  }
}

bool WakingPlace::leave_this_cpu() {
  std::uint32_t state = kAsleep;
  if (!state_.compare_exchange_strong(state, kMoving, std::memory_order_acquire)) return false;
  const KeptErrno kept;
  const int here = sched_getcpu();
  is_moved_ = false;
  // Fails where there are more processors than the set has room for.
  if (here >= 0 && sched_getaffinity(thread_, sizeof before_, &before_) == 0 &&
      CPU_ISSET(here, &before_) && CPU_COUNT(&before_) > 1) {
    since_ = before_;
    CPU_CLR(here, &since_);
    is_moved_ = sched_setaffinity(thread_, sizeof since_, &since_) == 0;
  }
  return true;
}

// The kernel keeps a mask that was asked for, and takes it into account when the thread's cpuset
// changes: one of all processors leaves a thread free to follow that. Only a mask that is narrower
// than the cpuset, the program's own, has to be asked for by name.
void WakingPlace::give_back_mask() {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  cpu_set_t now;
  if (sched_setaffinity(thread_, sizeof all, &all) == 0 &&
      sched_getaffinity(thread_, sizeof now, &now) == 0 && CPU_EQUAL(&now, &before_)) {
    return;
  }
  sched_setaffinity(thread_, sizeof before_, &before_);
}

void WakingPlace::put_back() {
  const KeptErrno kept;
  // Unless the program has given it another mask meanwhile.
  cpu_set_t now;
  if (is_moved_ && sched_getaffinity(thread_, sizeof now, &now) == 0 && CPU_EQUAL(&now, &since_)) {
    give_back_mask();
  }
  state_.store(kAwake, std::memory_order_release);
}

}  // namespace jd::os

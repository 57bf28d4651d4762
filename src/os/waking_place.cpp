#include "os/waking_place.hpp"

#include <errno.h>

#include "os/cpu.hpp"

namespace jd::os {

void WakingPlace::begin_sleep(int thread) {
  thread_ = thread;
  state_.store(kAsleep, std::memory_order_release);
}

void WakingPlace::end_sleep() {
  std::uint32_t state = kAsleep;
  if (state_.compare_exchange_strong(state, kAwake, std::memory_order_acquire)) return;
  while ((state = state_.load(std::memory_order_acquire)) == kMoving) yield();
  state_.store(kAwake, std::memory_order_relaxed);
  if (state != kMoved) return;
  const int saved = errno;
  // Unless the program has given it another mask meanwhile.
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &since_)) {
    sched_setaffinity(0, sizeof before_, &before_);
  }
  errno = saved;
}

bool WakingPlace::leave_this_cpu() {
  std::uint32_t state = kAsleep;
  if (!state_.compare_exchange_strong(state, kMoving, std::memory_order_acquire)) return false;
  const int saved = errno;
  const int here = sched_getcpu();
  bool moved = false;
  // Fails where there are more processors than the set has room for.
  if (here >= 0 && sched_getaffinity(thread_, sizeof before_, &before_) == 0 &&
      CPU_ISSET(here, &before_) && CPU_COUNT(&before_) > 1) {
    since_ = before_;
    CPU_CLR(here, &since_);
    moved = sched_setaffinity(thread_, sizeof since_, &since_) == 0;
  }
  errno = saved;
  state_.store(moved ? kMoved : kLeft, std::memory_order_release);
  return true;
}

}  // namespace jd::os

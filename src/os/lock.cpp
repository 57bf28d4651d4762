#include "os/lock.hpp"

#include "os/cpu.hpp"
#include "os/futex.hpp"

namespace jd::os {
namespace {

// About two microseconds: the length of a usual critical section here (taking a block), and well
// under the cost of sleeping and waking. A single CPU never spins.
constexpr int kSpins = 100;

}  // namespace

void Lock::acquire_slowly() {
  if (cpu_count() > 1) {
    for (int spin = 0; spin < kSpins; ++spin) {
      cpu_relax();
      std::uint32_t free = kFree;
      if (state_.load(std::memory_order_relaxed) == kFree &&
          state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
        return;
      }
    }
  }
  while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
    base::note_lock_wait(this);
    futex_wait(&state_, kContended);
  }
}

void Lock::wake_one() { futex_wake(&state_, 1); }

}  // namespace jd::os

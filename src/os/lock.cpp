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
      if (state_.load(std::memory_order_relaxed) == kFree && try_acquire()) return;
    }
  }
  while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
    futex_wait(&state_, kContended);
  }
}

void Lock::wake_one() { futex_wake(&state_, 1); }

}  // namespace jd::os

// A mutual-exclusion lock that spins briefly and then waits in the kernel (bdwgc's scalability
// notes: never sleep blindly; design, section 6). Not recursive. Not async-signal-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/sharing.hpp"

#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer does not see the atomics of files that are compiled without it
// (src/CMakeLists.txt), nor those of a thread that was cancelled in a call of libc's. So the lock
// says which order it makes.
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace jd::os {

class Lock {
 public:
  void acquire() {
    std::uint32_t free = kFree;
    // Pairs with the release store in release(): what the last holder wrote is visible here.
    if (!state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      acquire_slowly();
    }
    tell_acquired();
  }
  [[nodiscard]] bool try_acquire() {
    std::uint32_t free = kFree;
    const bool taken = state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                                      std::memory_order_relaxed);
    if (taken) tell_acquired();
    return taken;
  }
  void release() {
    tell_released();
    if (state_.exchange(kFree, std::memory_order_release) == kContended) wake_one();
  }
  // For a holder that has parked another thread: that one may have been the sleeper woken last, and
  // will not take the lock now. So the next sleeper has to be woken in its stead. Pre: held.
  void mark_contended() { state_.store(kContended, std::memory_order_relaxed); }
  // The child of a fork owns every lock that fork() was called with; it starts them afresh.
  void reset_in_child() { state_.store(kFree, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kContended = 2;  // held, and somebody may sleep

  void acquire_slowly();
  void wake_one();

  // Once for each acquisition.
#if defined(JD_SANITIZE_THREAD)
  void tell_acquired() { __tsan_acquire(&state_); }
  void tell_released() { __tsan_release(&state_); }
#else
  void tell_acquired() { base::note_lock(this); }
  void tell_released() {}
#endif

  // Written by every thread that takes or leaves the lock.
  std::atomic<std::uint32_t> state_{kFree};
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.acquire(); }
  ~LockGuard() { lock_.release(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace jd::os

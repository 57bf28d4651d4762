#include "os/lock.hpp"

#include "os/thread.hpp"

namespace jd::os {
namespace {

// Set at the start; read by every thread that waits (relaxed: it guards nothing).
std::atomic<int> let_in{0};

}  // namespace

void let_in_while_waiting(int signal) { let_in.store(signal, std::memory_order_relaxed); }

// A holder that has sent the signal waits for this thread, which has blocked it and waits for the
// holder. Waits are hardly ever as long as to be worth two system calls each.
bool Machine::wait_for_lock(Atomic<std::uint32_t>* word, std::uint32_t expected,
                            std::uint64_t nanoseconds) {
#if defined(JD_SANITIZE_THREAD)
  constexpr std::uint64_t kLong = 1000000;  // futex_wait waits no longer there
#else
  constexpr std::uint64_t kLong = 10000000;  // 10 ms
#endif
  const int signal = let_in.load(std::memory_order_relaxed);
  if (signal == 0 || nanoseconds <= kLong) return futex_wait(word, expected, nanoseconds);
  if (futex_wait(word, expected, kLong)) return true;
  const SignalOpening opening(signal);
  return futex_wait(word, expected, nanoseconds);
}

template class LockOver<Machine>;

}  // namespace jd::os

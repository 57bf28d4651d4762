#include "os/lock.hpp"

#include "os/cpu.hpp"
#include "os/signals.hpp"

namespace jd::os {
namespace {

// Set once, before threads can be stopped; read by every thread that waits for long (relaxed: it
// guards nothing).
std::atomic<int> let_in{0};

}  // namespace

void let_in_while_waiting(int signal) { let_in.store(signal, std::memory_order_relaxed); }

// The holder may have sent the signal, and wait for this thread, which has blocked it and waits for
// the holder. Short waits are spared the two system calls.
bool Machine::wait_stoppably(Atomic<std::uint32_t>* word, std::uint32_t expected,
                             std::uint64_t nanoseconds) {
#if defined(JD_SANITIZE_THREAD)
  constexpr std::uint64_t kLong = 1000000;  // futex_wait waits no longer there
#else
  constexpr std::uint64_t kLong = 10000000;  // 10 ms: above most waits; a guess
#endif
  const int signal = let_in.load(std::memory_order_relaxed);
  if (signal == 0 || nanoseconds <= kLong) return futex_wait(word, expected, nanoseconds);
  // By the clock: the program's own signals may end each wait early.
  const std::uint64_t end = now_ns() + kLong;
  for (std::uint64_t now = end - kLong; now < end; now = now_ns()) {
    bool interrupted = false;
    if (futex_wait(word, expected, end - now, &interrupted) && !interrupted) return true;
  }
  const SignalOpening opening(signal);
  return futex_wait(word, expected, nanoseconds);
}

template class LockOver<Machine>;

}  // namespace jd::os

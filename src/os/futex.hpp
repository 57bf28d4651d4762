// Waiting in the kernel for a 32-bit word to change.
#pragma once

#include <atomic>
#include <cstdint>

namespace jd::os {

inline constexpr std::uint64_t kForever = ~std::uint64_t{0};

// Sleeps while *word == expected, until a wake, a signal, or the time-out. False on time-out only;
// wakes may be spurious, so callers loop. *interrupted tells whether it was a signal.
// Async-signal-safe; keeps errno.
bool futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t expected,
                std::uint64_t nanoseconds = kForever, bool* interrupted = nullptr);
// Wakes up to `count` sleepers, those first who have slept longest. How many it woke.
// Async-signal-safe; keeps errno.
int futex_wake(std::atomic<std::uint32_t>* word, int count);
inline constexpr int kAllWaiters = 0x7fffffff;

}  // namespace jd::os

// The processor's counter of time, in which the scheduler's own counters are kept.
#pragma once

#include <cstdint>

namespace bench {

inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "no counter of time is known for this processor"
#endif
}

}  // namespace bench

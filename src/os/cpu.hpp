// Processors and clocks.
#pragma once

#include <cstdint>

#include "os/groups.hpp"

namespace jd::os {

// CPUs that this process may keep busy: those that it may run on (its affinity mask), but not more
// than its control groups give it the time of; at least 1. Asked once.
unsigned cpu_count();
// What the groups give, in whole CPUs, rounded up: their quota of time in each period, that of the
// strictest group above included. The greatest number if there is no quota.
unsigned cpu_quota(const GroupFiles& files = {});
// Overrides cpu_count (GC_NPROCS).
void set_cpu_count(unsigned count);

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  // Most of AArch64's processors take "yield" for nothing; this waits for some tens of cycles, as
  // x86-64's does.
  asm volatile("isb");
#endif
}

// Monotonic time in nanoseconds.
std::uint64_t now_ns();
// A counter that runs evenly on all CPUs, for times too short for now_ns(); its rate is known only
// from two readings beside now_ns().
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#endif
}
// Sleeps for about that long. No cancellation point.
void sleep_ns(std::uint64_t nanoseconds);
// Lets another thread have this processor, if one waits for it.
void yield();
// Does the calling thread have a shadow stack (CET), which holds return addresses a second time?
bool has_shadow_stack();
// Does the program run in valgrind?
bool under_valgrind();
// Some unpredictable bits for stress delays.
std::uint64_t random_bits();

}  // namespace jd::os

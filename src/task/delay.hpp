// Stress (JACKDAW_TASK_DELAY): a random wait at the named steps of the protocol, so that rare
// orders of them happen.
#pragma once

#include "cycle/settings.hpp"
#include "os/cpu.hpp"

namespace jd::task {

inline void delay() {
  if (__builtin_expect(cycle::options.task_delay == 0, 1)) return;
  // Every other time none: the order that delays everywhere would make is as regular as none.
  const std::uint64_t bits = os::random_bits();
  if ((bits & 1) == 0) return;
  const std::uint64_t end = os::now_ns() + (bits >> 1) % (cycle::options.task_delay * 1000);
  while (os::now_ns() < end) os::cpu_relax();
}

}  // namespace jd::task

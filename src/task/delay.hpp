// Stress (JACKDAW_TASK_DELAY): a random wait at the named steps of the protocol, so that rare
// orders of them happen. JACKDAW_TASK_SEED makes each worker's waits the same in every run.
#pragma once

#include "cycle/settings.hpp"

namespace jd::task {

void delay_by_chance();

inline void delay() {
  if (__builtin_expect(cycle::options.task_delay != 0, 0)) delay_by_chance();
}

}  // namespace jd::task

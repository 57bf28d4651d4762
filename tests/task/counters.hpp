// The scheduler's counters by value.
#pragma once

#include <jackdaw/task.h>

inline jd_task_counters counters_now() {
  jd_task_counters counters{};
  jd_task_get_counters(&counters);
  return counters;
}

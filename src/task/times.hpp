// How long steals take: counts by classes of ticks, four to each power of two, so that a median can
// be told within some tenth.
#pragma once

#include "base/bits.hpp"
#include "jackdaw/task.h"

namespace jd::task {

inline constexpr unsigned kTimeClasses = JD_TASK_TIME_CLASSES;
inline constexpr unsigned kTimeKinds = JD_TASK_TIME_KINDS;

inline unsigned time_class_of(std::uint64_t ticks) {
  if (ticks < 4) return static_cast<unsigned>(ticks);
  const unsigned log = base::log2_floor(ticks);
  const unsigned quarter = static_cast<unsigned>(ticks >> (log - 2)) & 3;
  return base::min_of(4 * (log - 1) + quarter, kTimeClasses - 1);
}

}  // namespace jd::task

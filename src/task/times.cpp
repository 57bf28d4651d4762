#include "task/times.hpp"

#include "task/worker.hpp"

using namespace jd::task;  // NOLINT(google-build-using-namespace): the C names are all global

extern "C" {

uint64_t jd_task_time_class_begin(unsigned time_class) {
  if (time_class < 4) return time_class;
  return (4 + std::uint64_t{time_class % 4}) << (time_class / 4 - 1);
}

void jd_task_get_times(enum jd_task_time kind, jd_task_times* times) {
  *times = {};
  if (static_cast<unsigned>(kind) >= kTimeKinds) return;
  const std::uint32_t workers = runtime.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < workers; ++i) {
    const jd_task_times& part = runtime.workers[i].load(std::memory_order_relaxed)->times[kind];
    for (unsigned k = 0; k < kTimeClasses; ++k) {
      times->count[k] += __atomic_load_n(&part.count[k], __ATOMIC_RELAXED);
    }
  }
}

double jd_task_times_quantile(const jd_task_times* times, double quantile) {
  double all = 0;
  for (const std::uint64_t count : times->count) all += static_cast<double>(count);
  if (all == 0) return 0;
  const double wanted = all * quantile;
  double before = 0;
  double result = 0;
  for (unsigned k = 0; k < kTimeClasses; ++k) {
    const auto here = static_cast<double>(times->count[k]);
    if (here == 0) continue;
    // Within a class as if they were evenly spread.
    const auto begin = static_cast<double>(jd_task_time_class_begin(k));
    const auto end = static_cast<double>(jd_task_time_class_begin(k + 1));
    const double share = wanted > before ? (wanted - before) / here : 0;
    result = begin + (end - begin) * (share < 1 ? share : 1);
    before += here;
    if (before >= wanted) break;
  }
  return result;
}

}  // extern "C"

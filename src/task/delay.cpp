#include "task/delay.hpp"

#include "base/random.hpp"
#include "os/cpu.hpp"
#include "task/worker.hpp"

namespace jd::task {

void delay_by_chance() {
  Worker* worker = current();
  const std::uint64_t bits =
      worker != nullptr ? base::next_random(&worker->delays) : os::random_bits();
  // Every other time none: the order that delays everywhere would make is as regular as none.
  if ((bits & 1) == 0) return;
  const std::uint64_t end = os::now_ns() + (bits >> 1) % (cycle::options.task_delay * 1000);
  while (os::now_ns() < end) os::cpu_relax();
}

}  // namespace jd::task

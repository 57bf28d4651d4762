// Requirement (docs/design/task.md): task.req.last-continues.
#include "task/give_back.hpp"

#include "os/cpu.hpp"
#include "task/delay.hpp"
#include "task/stacks.hpp"

namespace jd::task {

bool give_back(const Worker* last, Stack* stack) {
  Worker* forker = stack->left_by;
  // In a child that is alone the forker's thread may be its parent's.
  if (forker == last || runtime.alone_in_child) return false;
  if (forker->stack.load(std::memory_order_relaxed) != nullptr) return false;
  Stack* none = nullptr;
  // Release: with the frame goes what its other part has computed.
  if (!forker->given.compare_exchange_strong(none, stack, std::memory_order_acq_rel,
                                             std::memory_order_relaxed)) {
    return false;
  }
  delay();
  // A forker that looks for work takes it in a fraction of a microsecond. One that sleeps, or has
  // lost its processor, would keep it for milliseconds.
  constexpr int kSpins = 100;  // some 5 µs: about a steal's time; with 400 as many are taken
  for (int spin = 0; spin < kSpins; ++spin) {
    if (forker->given.load(std::memory_order_relaxed) != stack) return true;
    os::cpu_relax();
  }
  // If the forker has taken it, left it again and was given it again by another, then that one's
  // gift is what this takes, and its giver sees it taken: one goes on in any case.
  Stack* not_taken = stack;
  return !forker->given.compare_exchange_strong(not_taken, nullptr, std::memory_order_acq_rel,
                                                std::memory_order_relaxed);
}

Stack* take_given(Worker* worker) {
  if (!is_given(worker)) return nullptr;
  return worker->given.exchange(nullptr, std::memory_order_acq_rel);
}

}  // namespace jd::task

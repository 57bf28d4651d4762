// The return barrier: a child returns into it whose forker's frame is the newest that is published
// (docs/design/task.md, "The barrier").
//
// Requirement: task.req.barrier-waits.
#include "os/cpu.hpp"
#include "os/log.hpp"
#include "task/delay.hpp"
#include "task/joins.hpp"
#include "task/machine.hpp"
#include "task/published.hpp"
#include "task/switch.hpp"
#include "task/victim.hpp"
#include "world/thread.hpp"

#if JD_TASK_STACKS

namespace jd::task {
namespace {

// Takes the returning child's fork, the stack's newest, from the published ones, and puts the
// barrier above the next. True if it was stolen. Pre: nobody else changes the stack.
bool take_back(Stack* stack, jd_task* task) {
  delay();
  JD_CHECK(stack->top.load(std::memory_order_relaxed) == task, "a return past a barrier");
  const bool stolen = __atomic_load_n(&task->join, __ATOMIC_RELAXED) != kFresh;
  jd_task* older = task->older;
  stack->top.store(older, std::memory_order_relaxed);
  if (!stolen && stack->oldest.load(std::memory_order_relaxed) == task) {
    stack->oldest.store(nullptr, std::memory_order_relaxed);
  }
  if (older != nullptr) {
    older->newer = nullptr;
    install_barrier(older);
  }
  delay();
  return stolen;
}

// The same, if the lock is in the hand of a thief that waits for this very victim's answer. It does
// nothing until it has one, so the victim need not wait for it, only answer late: that there is
// nothing more on the stack, for all that is left is published. False if there is no such thief.
bool take_back_from_asker(Worker* worker, Stack* stack, jd_task* task, bool* stolen) {
  if (worker->request.load(std::memory_order_relaxed) != kAsked) return false;
  const world::NoStop no_stop(world::self());  // as at a poll
  if (!accept(worker)) return false;
  const bool is_ours = worker->asked == stack;
  if (is_ours) *stolen = take_back(stack, task);
  give(worker, Answer::Refused);
  return is_ours;
}

bool take_back_after_waiting(Worker* worker, Stack* stack, jd_task* task) {
  add(&worker->counters.barrier_waits);
  const std::uint64_t begin = os::ticks();
  const auto note_wait = [&] { add(&worker->counters.victim_barrier_ticks, os::ticks() - begin); };
  constexpr int kSpins = 4000;  // some 100 µs: longer than most steals of a thief that runs
  for (int spin = 0;; ++spin) {
    bool stolen = false;
    if (take_back_from_asker(worker, stack, task, &stolen)) {
      note_wait();
      return stolen;
    }
    if (stack->lock.try_acquire()) break;
    if (spin == kSpins) {
      stack->lock.acquire();
      break;
    }
    os::cpu_relax();
  }
  note_wait();
  const bool stolen = take_back(stack, task);
  stack->lock.release();
  return stolen;
}

}  // namespace
}  // namespace jd::task

// The barrier: the child has returned, and its forker's frame is the stack's newest.
extern "C" unsigned long jd_task_at_barrier(jd_task* task) {
  using namespace jd::task;
  constexpr unsigned long kStolen = 2;  // as task.hpp has it
  Worker* worker = current();
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  add(&worker->counters.barrier_hits);
  bool stolen = false;
  if (stack->lock.try_acquire()) {
    stolen = take_back(stack, task);
    stack->lock.release();
  } else {
    stolen = take_back_after_waiting(worker, stack, task);
  }
  if (!stolen) return 0;
  delay();
  wait_for_task(task);
  return kStolen;
}

#endif

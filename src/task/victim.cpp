#include "task/victim.hpp"

#include <signal.h>

#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/signals.hpp"
#include "task/delay.hpp"
#include "task/idle.hpp"
#include "task/machine.hpp"
#include "task/published.hpp"
#include "task/switch.hpp"
#include "world/stop.hpp"
#include "world/thread.hpp"

#if JD_TASK_STACKS

namespace jd::task {

const int steal_signal = SIGURG;

bool accept(Worker* worker) {
  // Pairs with the thief's store: its `asked` is visible.
  std::uint32_t asked = kAsked;
  return worker->request.compare_exchange_strong(asked, kLooking, std::memory_order_acquire);
}

void give(Worker* worker, Answer answer) {
  delay();
  worker->answer = answer;
  if (runtime.mode == JD_TASK_STOP && worker->answer == Answer::Found) {
    worker->request.store(kHolding, std::memory_order_release);
    // Not until it is kNone: the next thief may have asked by then.
    while (worker->request.load(std::memory_order_acquire) == kHolding) pause(1);
  } else {
    worker->request.store(kAnswered, std::memory_order_release);
  }
}

namespace {

static_assert(kRegisters == os::kContextRegisters);

// How many of its newest forks the victim keeps to itself where there are older ones: with the
// barrier right behind it, it would run into it while the thief still walks (task.md, "The steal").
constexpr unsigned kKept = 3;

// Finds and publishes a fork, from the interrupted registers or (not `exactly`) from those at a
// call. The thief holds the stack's lock.
Answer look(Worker* worker, const Registers& registers, bool exactly) {
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  if (stack == nullptr || stack != worker->asked || worker->away.load(std::memory_order_relaxed)) {
    return Answer::Refused;
  }
  // On its way from one stack to another.
  if (!is_in(*stack, registers.value[kRsp])) return Answer::Refused;
  Walk walk(&worker->unwinder, *stack, registers, exactly);
  switch (walk.next()) {
    case Walk::Result::End:
      return Answer::Empty;
    case Walk::Result::Elsewhere:
      return Answer::Refused;
    case Walk::Result::Fork:
      break;
  }
  if (runtime.mode == JD_TASK_BARRIER) {
    Walk further = walk;
    for (unsigned i = 0; i < kKept && further.next() == Walk::Result::Fork; ++i) walk = further;
  }
  delay();
  jd_task* task = walk.task();
  publish(walk, nullptr);
  worker->newest = task;
  worker->walk = walk.registers();
  if (runtime.mode == JD_TASK_BARRIER) {
    // The victim may go on from here, and no further back than here.
    task->older = stack->top.load(std::memory_order_relaxed);
    stack->top.store(task, std::memory_order_relaxed);
    install_barrier(task);
  }
  return Answer::Found;
}

JD_SIGNAL_HANDLER void on_request(int, siginfo_t*, void* context) {
  Worker* worker = current();
  if (worker == nullptr || !accept(worker)) return;
  const std::uint64_t begin = os::ticks();
  unsigned long interrupted[kRegisters];
  Answer answer = Answer::Refused;
  if (os::interrupted_registers(context, &interrupted)) {
    Registers registers;
    for (int i = 0; i < kRegisters; ++i) registers.value[i] = interrupted[i];
    answer = look(worker, registers, true);
  }
  give(worker, answer);
  worker->handled_at = os::now_ns();
  const std::uint64_t ticks = os::ticks() - begin;
  add(&worker->counters.victim_stop_ticks, ticks);
  add_time(worker, JD_TASK_TIME_VICTIM_STOPPED, ticks);
}

}  // namespace

bool has_signal_to_steal() { return world::stop_signal() != steal_signal; }

bool prepare_stealing() {
  if (!has_signal_to_steal()) return false;
  // It may come where the stack has just enough room for the signal's frame.
  return os::install_handler(steal_signal, on_request, os::Faults::Open);
}

void prepare_victim() { os::unblock_signal(steal_signal); }

}  // namespace jd::task

// A poll of a worker whose word is set.
extern "C" void jd_task_answer(void) {
  using namespace jd::task;
  __atomic_store_n(&jd_task_wanted, 0, __ATOMIC_RELAXED);
  Worker* worker = current();
  if (worker == nullptr) return;
  if (with_stacks() && !worker->away.load(std::memory_order_relaxed)) make_direct(worker);
  // A collection that stopped this thread before it has answered would wait for a thief that must
  // not be stopped (stop mode), and that for the answer. In the handler signals are blocked.
  const jd::world::NoStop no_stop(jd::world::self());
  if (!accept(worker)) {
    // The signal was faster, or the thief has taken its request back. Would this have come soon
    // enough after the signal?
    if (worker->handled_at != 0) {
      worker->polls.store(jd::os::now_ns() - worker->handled_at < kPollPatience / 2,
                          std::memory_order_relaxed);
      worker->handled_at = 0;
    }
    return;
  }
  worker->handled_at = 0;
  const std::uint64_t begin = jd::os::ticks();
  Registers registers{};
  jd_task_registers(&registers);
  give(worker, look(worker, registers, false));
  worker->polls.store(true, std::memory_order_relaxed);
  add(&worker->counters.polls_answered);
  const std::uint64_t ticks = jd::os::ticks() - begin;
  add(&worker->counters.victim_poll_ticks, ticks);
  add_time(worker, JD_TASK_TIME_VICTIM_POLLED, ticks);
}

#endif

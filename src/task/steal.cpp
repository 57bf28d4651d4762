// The thief's side of a steal, step by step as in docs/design/task.md, "The steal".
//
// Requirements: task.req.fork-is-a-call, task.req.one-stop.
#include "task/steal.hpp"

#include "os/cpu.hpp"
#include "os/signals.hpp"
#include "task/delay.hpp"
#include "task/give_back.hpp"
#include "task/machine.hpp"
#include "task/published.hpp"
#include "task/victim.hpp"
#include "world/thread.hpp"

#if JD_TASK_STACKS

namespace jd::task {
namespace {

// Fruitless requests make it wait longer until the next: a victim without forks is left in peace.
void note_answer(Worker* victim, Answer answer) {
  constexpr std::uint64_t kFirst = 50000;  // ns
  constexpr unsigned kDoublings = 6;
  const unsigned empty =
      answer == Answer::Empty
          ? base::min_of(victim->empty_answers.load(std::memory_order_relaxed) + 1, kDoublings)
          : 0;
  victim->empty_answers.store(empty, std::memory_order_relaxed);
  std::uint64_t pause = 0;
  if (answer == Answer::Empty) pause = kFirst << empty;
  if (answer == Answer::Refused) pause = kFirst / 8;
  victim->ask_again.store(pause == 0 ? 0 : os::now_ns() + pause, std::memory_order_relaxed);
}

// Waits for the victim's answer. False if it has taken its request back: since this thread is to
// stop meanwhile, and the victim may stand in a stop already, and would answer only after it; since
// the victim takes no signals, which it may have blocked for as long as it likes; or since the
// thief has a frame to go on with.
bool wait_for_answer(const Worker* thief, Worker* victim, const world::Thread* self) {
  constexpr int kSpins = 2000;  // some 50 µs: what a running victim takes
  // Then it lets others run, for a millisecond if there are none. A sleep would end too late: the
  // victim that has answered runs on, and soon wants the stack's lock at its barrier.
  constexpr int kYields = 2000;
  for (int spin = 0;; ++spin) {
    const std::uint32_t request = victim->request.load(std::memory_order_acquire);
    if (request == kAnswered || request == kHolding) return true;
    std::uint32_t asked = kAsked;
    const bool is_late = spin == kSpins + kYields;
    if ((self->stop_pending || is_given(thief) || is_late) &&
        victim->request.compare_exchange_strong(asked, kNone, std::memory_order_relaxed)) {
      if (is_late) note_answer(victim, Answer::Empty);
      return false;
    }
    if (spin < kSpins) {
      os::cpu_relax();
    } else if (spin < kSpins + kYields) {
      os::yield();
    } else {
      os::sleep_ns(10000);
    }
  }
}

// Sends the signal, unless the thief has a frame to go on with. False if nobody was told, so that
// nobody would answer, nor has done so at a poll meanwhile.
bool send_request(Worker* thief, Worker* victim) {
  if (!is_given(thief)) {
    add(&thief->counters.requests);
    if (os::signal_thread(victim->thread, steal_signal) == os::Signalled::Sent) return true;
  }
  std::uint32_t asked = kAsked;
  return !victim->request.compare_exchange_strong(asked, kNone, std::memory_order_acq_rel);
}

// Tells the victim's next poll, or fork, of the request, and waits for it for a moment if they are
// known to come soon. True if the request was answered.
bool wait_for_poll(const Worker* thief, Worker* victim, const world::Thread* self) {
  if (__atomic_load_n(victim->wanted, __ATOMIC_RELAXED) == 0) {
    __atomic_store_n(victim->wanted, 1, __ATOMIC_RELEASE);
    // Release: whoever makes it 1 again sees that it is wanted (make_direct).
    __atomic_store_n(victim->direct, 0, __ATOMIC_RELEASE);
  }
  if (!victim->polls.load(std::memory_order_relaxed)) return false;
  const std::uint64_t end = os::now_ns() + kPollPatience;
  do {
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t request = victim->request.load(std::memory_order_acquire);
      if (request == kAnswered || request == kHolding) return true;
      os::cpu_relax();
    }
    if (is_given(thief)) return false;
  } while (os::now_ns() < end && !self->stop_pending);
  // Until it polls soon after a signal again.
  victim->polls.store(false, std::memory_order_relaxed);
  return false;
}

// Asks the victim and takes its oldest fork. Pre: the stack's lock is held.
jd_task* ask_and_take(Worker* thief, Worker* victim, Stack* stack, jd_task_time* how) {
  const Visit visit;
  if (victim->away.load(std::memory_order_seq_cst)) return nullptr;
  std::uint32_t none = kNone;
  if (!victim->request.compare_exchange_strong(none, kClaimed, std::memory_order_acq_rel)) {
    return nullptr;
  }
  victim->asked = stack;
  victim->request.store(kAsked, std::memory_order_release);
  if (wait_for_poll(thief, victim, world::self())) {
    *how = JD_TASK_TIME_POLLED;
  } else {
    *how = JD_TASK_TIME_STOPPED;
    delay();
    if (!send_request(thief, victim)) return nullptr;
    if (!wait_for_answer(thief, victim, world::self())) return nullptr;
  }
  const Answer answer = victim->answer;
  note_answer(victim, answer);
  if (answer != Answer::Found) {
    victim->request.store(kNone, std::memory_order_release);
    if (answer == Answer::Empty) {
      add(&thief->counters.requests_empty);
    } else {
      add(&thief->counters.requests_refused);
    }
    return nullptr;
  }
  delay();
  jd_task* oldest = publish_older(thief, *stack, victim->walk, victim->newest);
  if (runtime.mode == JD_TASK_STOP) {
    // Stopped for each steal: nothing stays published but what is stolen.
    oldest->older = stack->top.load(std::memory_order_relaxed);
    stack->top.store(oldest, std::memory_order_relaxed);
    __atomic_store_n(&oldest->join, kRunning, __ATOMIC_RELAXED);
    install_barrier(oldest);
    victim->request.store(kNone, std::memory_order_release);
    return oldest;
  }
  // Only now may another thief, who knows the victim by another stack, have its answer.
  victim->request.store(kNone, std::memory_order_release);
  stack->oldest.store(oldest, std::memory_order_relaxed);
  return take_oldest(stack);
}

}  // namespace

jd_task* steal_from_stack(Worker* thief, Worker* victim, jd_task_time* how) {
  Stack* stack = victim->stack.load(std::memory_order_acquire);
  if (stack == nullptr) return nullptr;
  // A glance: under the lock it is looked at again.
  const bool published = stack->oldest.load(std::memory_order_relaxed) != nullptr;
  if (!published) {
    const std::uint64_t again = victim->ask_again.load(std::memory_order_relaxed);
    if (again != 0 && !thief->insists && os::now_ns() < again) return nullptr;
    if (victim->away.load(std::memory_order_acquire)) return nullptr;
  }
  if (!stack->lock.try_acquire()) return nullptr;
  delay();
  jd_task* task = nullptr;
  if (stack->oldest.load(std::memory_order_relaxed) != nullptr) {
    task = take_oldest(stack);
    *how = JD_TASK_TIME_BELOW_BARRIER;
  } else if (!published) {
    if (runtime.mode == JD_TASK_STOP) {
      // Where a stopped thief's victim would wait for the end of a collection, and that for the
      // victim.
      const world::NoStop no_stop(world::self());
      task = ask_and_take(thief, victim, stack, how);
    } else {
      task = ask_and_take(thief, victim, stack, how);
    }
  }
  delay();
  stack->lock.release();
  return task;
}

}  // namespace jd::task

#endif

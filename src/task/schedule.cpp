// What workers do: find a task, run it, and go on with whoever waits for it.
//
// In deque mode a task runs on its worker's own stack, and a join that has to wait runs other tasks
// on top of itself. In the modes with stacks a join that has to wait leaves its stack to whoever
// ends last, and the worker looks for other work, or for the stack (task.req.last-continues).
#include "task/schedule.hpp"

#include "base/random.hpp"
#include "cycle/settings.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/thread.hpp"
#include "task/delay.hpp"
#include "task/give_back.hpp"
#include "task/idle.hpp"
#include "task/published.hpp"
#include "task/stacks.hpp"
#include "task/steal.hpp"
#include "task/switch.hpp"
#include "task/workers.hpp"
#include "world/thread.hpp"

namespace jd::task {
namespace {

// What there is to tell when a task has ended; taken before it runs, since a scope's task owns its
// own memory and frees it.
struct End {
  jd_task* task;         // null for a scope's
  jd_task_scope* scope;  // null for others
  bool is_root;
};

End end_of(jd_task* task) {
  const bool of_scope = task->run == run_scope_task;
  return {of_scope ? nullptr : task, of_scope ? scope_of(task) : nullptr,
          task->reserved == kIsRoot};
}

void call_task(jd_task* task) {
  if (task->run == run_scope_task) {
    const auto function = reinterpret_cast<void (*)(jd_task*, int)>(task->resume);
    function(task, jd_task_scope_cancelled(scope_of(task)));
  } else {
    task->run(task);
  }
}

// Tells whoever waits. Returns the stack of a forker that is suspended and can go on, or null. What
// was told about may be gone after that: a sleeper's word is only an address then.
Stack* tell(const End& end) {
  delay();
  if (end.is_root) runtime.roots.fetch_sub(1, std::memory_order_release);
  if (end.scope != nullptr) {
    std::atomic<std::uint32_t>* word = outstanding(end.scope);
    const std::uint32_t before = word->fetch_sub(1, std::memory_order_acq_rel);
    if (before == 1) return static_cast<Stack*>(end.scope->waiter);
    if (before == (kOwnerAsleep | 2)) os::futex_wake(word, os::kAllWaiters);
    return nullptr;
  }
  std::atomic<std::uint32_t>* word = join_word(end.task);
  const std::uint32_t before = word->exchange(kEnded, std::memory_order_acq_rel);
  if (before == kSuspended) return static_cast<Stack*>(end.task->waiter);
  if (before == kAsleep) os::futex_wake(word, os::kAllWaiters);
  return nullptr;
}

// Goes on at sp on the stack, until the task there is left; then what follows from that is done.
void enter(Worker* worker, Stack* stack, void* sp) {
  worker->after = After::Nothing;
  world::set_own_stack({stack->low, stack->high});
  worker->stack.store(stack, std::memory_order_release);
  jd_task_switch(&worker->scheduler_sp, sp);
  worker->stack.store(nullptr, std::memory_order_release);
  world::set_own_stack(worker->own_stack);
  delay();
  switch (worker->after) {
    case After::Ended:
      if (worker->spare == nullptr) {
        worker->spare = stack;
      } else {
        give_stack(stack);
      }
      worker->next = tell({worker->after_task, worker->after_scope, worker->after_is_root});
      if (worker->next != nullptr && give_back(worker, worker->next)) {
        add(&worker->counters.given_back);
        worker->next = nullptr;
      }
      break;
    case After::WaitForTask: {
      // Only now, where nobody runs on the stack, may the thief have it; unless it has ended, and
      // has to be remembered as having so.
      std::uint32_t state = kRunning;
      if (!join_word(worker->after_task)
               ->compare_exchange_strong(state, kSuspended, std::memory_order_acq_rel)) {
        worker->next = stack;
      }
      break;
    }
    case After::WaitForScope:
      if (outstanding(worker->after_scope)->fetch_sub(1, std::memory_order_acq_rel) == 1) {
        worker->next = stack;
      }
      break;
    case After::Nothing:
      break;
  }
}

void start_on_stack(Worker* worker, jd_task* task) {
  Stack* stack = worker->spare;
  worker->spare = nullptr;
  stack->first = task;
  stack->running = stack->high;
  enter(worker, stack, jd_task_prepare(stack->high, stack));
}

bool have_spare(Worker* worker) {
  if (worker->spare == nullptr) worker->spare = take_stack();
  return worker->spare != nullptr;
}

void tell_of_lack_of_stacks() {
  static std::atomic<bool> told{false};
  if (told.exchange(true, std::memory_order_relaxed)) return;
  os::warn("the system refuses memory for a task's stack of ", cycle::options.task_stack,
           " bytes; waiting until it gives some. JACKDAW_TASK_STACK sets the size");
}

// Does nobody run a task, or look for one, while there are some? Those on the bench wait for one
// that does.
bool nobody_has_a_stack() {
  return runtime.roots.load(std::memory_order_relaxed) != 0 &&
         runtime.without_stack.load(std::memory_order_relaxed) +
                 runtime.benched.load(std::memory_order_relaxed) >=
             runtime.alive.load(std::memory_order_relaxed);
}

// Waits until there is one, also for one that another task gives back. False if the runtime stops.
bool wait_for_spare(Worker* worker) {
  constexpr std::uint64_t kRetry = 1000000;  // ns
  // What else the program does may give the system memory back in the meantime.
  constexpr int kPatience = 1000;
  runtime.without_stack.fetch_add(1, std::memory_order_relaxed);
  int in_vain = 0;
  bool quits = false;
  while (!have_spare(worker)) {
    quits = runtime.quitting.load(std::memory_order_acquire);
    if (quits) break;
    tell_of_lack_of_stacks();
    in_vain = nobody_has_a_stack() ? in_vain + 1 : 0;
    if (in_vain > kPatience) {
      os::fatal("no task can run: the system refuses memory for a stack of ",
                cycle::options.task_stack, " bytes; JACKDAW_TASK_STACK sets the size");
    }
    os::sleep_ns(kRetry);
  }
  runtime.without_stack.fetch_sub(1, std::memory_order_relaxed);
  return !quits;
}

}  // namespace

void end_child() {
  os::warn(
      "the child of a fork() in a task has nobody to run what comes after that task, or what "
      "was left to others; it should have called exec or _exit. Exiting with status 1");
  os::end_process(1);
}

void run_scope_task(jd_task*) { __builtin_trap(); }  // call_task() does it

// Nobody's stack has to be entered for its end: who waits for it sleeps in the kernel, is below it
// on this very stack, or is in the parent of a fork's child.
void run_here(jd_task* task) {
  const End end = end_of(task);
  call_task(task);
  tell(end);
}

void schedule(Worker* worker) {
  for (;;) {
    if (worker->next != nullptr) {
      Stack* stack = worker->next;
      worker->next = nullptr;
      enter(worker, stack, stack->saved_sp);
      continue;
    }
    if (runtime.alone_in_child) end_child();
    if (with_stacks() && !have_spare(worker) && !wait_for_spare(worker)) return;
    jd_task* task = wait_for_work(worker);
    if (worker->next != nullptr) continue;
    if (task == nullptr) return;
    begin_to_fork(worker);
    if (with_stacks()) {
      start_on_stack(worker, task);
    } else {
      worker->running = worker->own_stack.high;
      run_here(task);
      os::set_floating_control(worker->floating_control);
    }
  }
}

namespace {

jd_task* steal_from(Worker* thief, Worker* victim) {
  const std::uint64_t begin = os::ticks();
  jd_task_time how = JD_TASK_TIME_DEQUE;
  jd_task* task = victim->deque.looks_empty() ? nullptr : victim->deque.steal();
  if (task == nullptr && with_stacks()) {
    task = steal_from_stack(thief, victim, &how);
    if (task != nullptr) add(&thief->counters.stack_steals);
  }
  if (task == nullptr) return nullptr;
  add(&thief->counters.steals);
  const std::uint64_t ticks = os::ticks() - begin;
  add(&thief->counters.thief_ticks, ticks);
  add_time(thief, how, ticks);
  return task;
}

}  // namespace

jd_task* find_task(Worker* worker) {
  const bool own_comes_first = !is_turn_of_queue(worker);
  ++worker->finds;
  if (own_comes_first) {
    if (jd_task* own = worker->deque.pop(); own != nullptr) return own;
  }
  if (jd_task* queued = take_queued(); queued != nullptr) {
    // That nothing could be stolen from what this worker did before says nothing about this.
    worker->empty_answers.store(0, std::memory_order_relaxed);
    worker->ask_again.store(0, std::memory_order_relaxed);
    return queued;
  }
  if (!own_comes_first) {
    if (jd_task* own = worker->deque.pop(); own != nullptr) return own;
  }
  if (jd_task* more = take_spilled(); more != nullptr) return more;
  if (jd_task* left = steal_from_waiting(); left != nullptr) {
    add(&worker->counters.steals);
    add(&worker->counters.stack_steals);
    return left;
  }
  const std::uint32_t count = runtime.count.load(std::memory_order_acquire);
  if (count < 2) return nullptr;
  const auto first = static_cast<std::uint32_t>(base::next_random(&worker->random) % count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Worker* victim = runtime.workers[(first + i) % count].load(std::memory_order_relaxed);
    if (victim == worker) continue;
    if (jd_task* task = steal_from(worker, victim); task != nullptr) return task;
  }
  return nullptr;
}

}  // namespace jd::task

// The first function on a stack. Its task ends here, maybe in another worker than it began in.
extern "C" void jd_task_first(jd::task::Stack* stack) {
  using namespace jd::task;
  const End end = end_of(stack->first);
  call_task(stack->first);
  Worker* worker = current();
  worker->after = After::Ended;
  worker->after_task = end.task;
  worker->after_scope = end.scope;
  worker->after_is_root = end.is_root;
  void* nowhere = nullptr;
  jd_task_switch(&nowhere, worker->scheduler_sp);
  __builtin_unreachable();
}

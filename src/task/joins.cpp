// Forks and joins. In deque mode a join that has to wait runs other tasks on top of itself; with
// stacks it leaves its own, until whoever ends last goes on with it or gives it back
// (task.req.last-continues).
#include "task/joins.hpp"

#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "task/published.hpp"
#include "task/schedule.hpp"
#include "task/stacks.hpp"
#include "task/switch.hpp"
#include "task/workers.hpp"

namespace jd::task {
namespace {

// ---- Joins that run other tasks meanwhile: deque mode ----

// A task that has nothing to do with the caller's: it finds no exception of the caller's that is
// being handled, and rounds as the worker did at its start.
void run_on_top(Worker* worker, jd_task* task) {
  void** const running = running_task(worker);
  void* const callers = *running;
  *running = os::frame_address();
  const os::FloatingControl control = os::floating_control();
  ExceptionState exceptions;
  exceptions.save();
  os::set_floating_control(worker->floating_control);
  run_here(task);
  exceptions.restore();
  os::set_floating_control(control);
  *running = callers;
}

// A sleeper in a join looks for other work that often.
constexpr std::uint64_t kLookAgain = 1000000;  // ns

// Waits until done(); sleep() may wait for that in the kernel, for a moment.
template <class Done, class Sleep>
void help_until(Worker* worker, Done done, Sleep sleep) {
  constexpr int kLooks = 200;
  for (int looks = 0; !done();) {
    // What this process has of others' tasks is its parent's.
    if (runtime.alone_in_child) end_child();
    if (jd_task* task = find_task(worker); task != nullptr) {
      run_on_top(worker, task);
      looks = 0;
    } else if (++looks < kLooks) {
      pause(32);
    } else {
      sleep();
    }
  }
}

void sleep_on_task(std::atomic<std::uint32_t>* word) {
  std::uint32_t state = kRunning;
  word->compare_exchange_strong(state, kAsleep, std::memory_order_acquire);
  if (state != kEnded) os::futex_wait(word, kAsleep, kLookAgain);
}

// Returns what it slept on, or 0 if it need not sleep.
std::uint32_t announce_sleep_on_scope(std::atomic<std::uint32_t>* word) {
  const std::uint32_t count = word->fetch_or(kOwnerAsleep, std::memory_order_acquire);
  return (count & ~kOwnerAsleep) == 1 ? 0 : count | kOwnerAsleep;
}

bool is_of(const jd_task& task, const jd_task_scope* scope) {
  return task.run == run_scope_task && task.waiter == scope;
}

// Leaves the calling task's stack until somebody enters it again: maybe in another worker.
[[gnu::noinline]] void suspend(Worker* worker, Stack* stack) {
  add(&worker->counters.joins_suspended);
  stack->left_by = worker;
  ExceptionState exceptions;
  exceptions.save();
  jd_task_switch(const_cast<void**>(&stack->saved_sp), worker->scheduler_sp);
  stack->saved_sp = nullptr;
  exceptions.restore();
}

// A fork of which somebody wants to hear: a thief that has asked, or a sleeper. Either gets it, as
// it is made by then. The sleeper finds it published, and takes it at once, where a request might
// come before the fork is made, and would have to be answered in any case.
struct HeardCall {
  void (*function)(void*);
  void* argument;
  bool wakes;
};
void answer_and_call(void* data) {
  const HeardCall call = *static_cast<const HeardCall*>(data);
  jd_task_poll();
  if (call.wakes && runtime.sleepers.load(std::memory_order_seq_cst) != 0) {
    // In stop mode the victim is stopped for each steal.
    if (runtime.mode == JD_TASK_BARRIER) {
      publish_own(current(), true);
    } else {
      wake_one(Waker::RunsOn);
    }
  }
  call.function(call.argument);
}

// What was forked into a deque is to be heard of.
void wake_for_pushed(Worker* worker) {
  // Whoever arms this worker later looks into its deque once more.
  if (worker->armed.load(std::memory_order_relaxed) == 0) return;
  disarm(worker);
  wake_one(Waker::RunsOn);
}

// Tasks from the newer end of a worker's deque, put aside for a moment; linked by jd_task::older.
class Aside {
 public:
  void add(jd_task* task) {
    task->older = oldest_;
    oldest_ = task;
    ++count_;
  }
  // In the order that they had; but many are spilled, since each join of a deep recursion
  // would put them aside anew.
  void put_back(Worker* worker) {
    if (oldest_ == nullptr) return;
    jd_task* task = oldest_;
    oldest_ = nullptr;
    if (count_ > kMost) return spill(task);
    while (task != nullptr) {
      jd_task* const newer = task->older;
      JD_CHECK(worker->deque.push(task), "there is room for what was there before");
      task = newer;
    }
    wake_for_pushed(worker);
  }

 private:
  static constexpr unsigned kMost = 64;  // a guess
  jd_task* oldest_ = nullptr;
  unsigned count_ = 0;
};

// Takes this task out of the worker's deque. False if it is not there: somebody else has it.
bool take(Worker* worker, const jd_task* wanted) {
  Aside newer;
  jd_task* task = worker->deque.pop();
  for (; task != nullptr && task != wanted; task = worker->deque.pop()) newer.add(task);
  newer.put_back(worker);
  return task != nullptr;
}

// The newest of the scope's tasks in the worker's deque, or null. Other scopes' tasks lie above it
// where its owner has forked into them, too.
jd_task* take_own(Worker* worker, const jd_task_scope* scope) {
  Aside others;
  jd_task* task = worker->deque.pop();
  for (; task != nullptr && !is_of(*task, scope); task = worker->deque.pop()) others.add(task);
  others.put_back(worker);
  return task;
}

// What the join of a scope runs next on top of its task; null: it is to wait.
jd_task* own_to_run(Worker* worker, const jd_task_scope* scope) {
  if (is_turn_of_queue(worker) && runtime.queued.load(std::memory_order_relaxed) != 0)
    return nullptr;
  ++worker->finds;
  return take_own(worker, scope);
}

// In the child of a task: runs the scope's tasks that are in the deque. Others' are the parent's.
template <class Done>
void run_own_of_child(Worker* worker, const jd_task_scope* scope, Done done) {
  while (!done()) {
    jd_task* task = take_own(worker, scope);
    if (task == nullptr) end_child();
    run_here(task);
  }
}

}  // namespace

void** running_task(Worker* worker) {
  Stack* const stack = worker->stack.load(std::memory_order_relaxed);
  return stack != nullptr ? &stack->running : &worker->running;
}

bool fork_and_call(Worker* worker, jd_task* task, void (*function)(void*), void* argument) {
  join_word(task)->store(kFresh, std::memory_order_relaxed);
  task->reserved = 0;
  if (with_stacks()) {
    const bool wakes = worker->armed.load(std::memory_order_relaxed) != 0;
    if (wakes || __atomic_load_n(worker->wanted, __ATOMIC_RELAXED) != 0) {
      if (wakes) disarm(worker);
      HeardCall call{function, argument, wakes};
      jd_task_call_at_site(task, answer_and_call, &call);
    } else {
      // Of a thief that asked, the poll before this fork saw the first of two stores.
      if (__atomic_load_n(worker->direct, __ATOMIC_RELAXED) == 0) make_direct(worker);
      jd_task_call_at_site(task, function, argument);
    }
    return join_word(task)->load(std::memory_order_acquire) == kEnded;
  }
  if (!worker->deque.push(task)) {
    function(argument);
    return false;
  }
  add(&worker->counters.pushed);
  wake_for_pushed(worker);
  function(argument);
  // Above it may be what the function forked into a scope of somebody else's: that is for later.
  if (take(worker, task)) return false;
  // A join further down has taken it, or a thief.
  std::uint32_t fresh = kFresh;
  std::atomic<std::uint32_t>* word = join_word(task);
  word->compare_exchange_strong(fresh, kRunning, std::memory_order_acquire);
  help_until(
      worker, [word] { return word->load(std::memory_order_acquire) == kEnded; },
      [word] { sleep_on_task(word); });
  return true;
}

void wait_for_task(jd_task* task) {
  if (join_word(task)->load(std::memory_order_acquire) == kEnded) return;
  Worker* worker = current();
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  task->waiter = stack;
  worker->after = After::WaitForTask;
  worker->after_task = task;
  suspend(worker, stack);
}

void push_to_scope(jd_task_scope* scope, jd_task* task) {
  task->run = run_scope_task;
  task->waiter = scope;
  outstanding(scope)->fetch_add(1, std::memory_order_relaxed);
  Worker* worker = current_at_work();
  if (worker == nullptr) {
    task->reserved = 0;
    if (runtime.alone_in_child) return run_here(task);
    ensure_running();
    return inject(task, Waker::RunsOn);
  }
  // Where no worker waits for it, no root that stays until it has ended does.
  const bool is_root = scope->owner == nullptr;
  task->reserved = is_root ? kIsRoot : 0;
  if (is_root) runtime.roots.fetch_add(1, std::memory_order_seq_cst);
  if (!worker->deque.push(task)) {
    // A loop that forks tasks into its task's own scope has given thieves enough, and needs no
    // memory for all of them; they would run on this stack at the join as well. Another's task must
    // not wait for this stack, and might fork the next in turn, and so on.
    if (scope->owner == *running_task(worker)) return run_on_top(worker, task);
    task->older = nullptr;
    return spill(task);
  }
  add(&worker->counters.pushed);
  wake_for_pushed(worker);
}

void join_scope(jd_task_scope* scope) {
  std::atomic<std::uint32_t>* word = outstanding(scope);
  const auto done = [word] { return (word->load(std::memory_order_acquire) & ~kOwnerAsleep) == 1; };
  Worker* worker = current();
  if (worker == nullptr || worker->away.load(std::memory_order_relaxed)) {
    if (worker != nullptr && runtime.alone_in_child) {
      run_own_of_child(worker, scope, done);
    }
    while (!done()) {
      if (const std::uint32_t seen = announce_sleep_on_scope(word)) wait_for_workers(word, seen);
    }
    word->store(1, std::memory_order_relaxed);
    return;
  }
  if (!with_stacks()) {
    while (!done()) {
      jd_task* task = own_to_run(worker, scope);
      if (task == nullptr) break;
      run_on_top(worker, task);
    }
    help_until(worker, done, [word] {
      if (const std::uint32_t seen = announce_sleep_on_scope(word)) {
        os::futex_wait(word, seen, kLookAgain);
      }
    });
    word->store(1, std::memory_order_relaxed);
    return;
  }
  // Others' tasks are not for this stack, which must be free to go on when the scope ends.
  while (!done()) {
    jd_task* task = own_to_run(worker, scope);
    if (task == nullptr) break;
    run_on_top(worker, task);
    worker = current();
  }
  if (done()) return;
  Stack* stack = worker->stack.load(std::memory_order_relaxed);
  // Thieves look for forks in the stacks of running tasks. Those that are left in this one are for
  // them while it waits.
  publish_own(worker, runtime.sleepers.load(std::memory_order_seq_cst) != 0);
  const bool has_forks = stack->oldest.load(std::memory_order_relaxed) != nullptr;
  if (has_forks) begin_to_wait(stack);
  scope->waiter = stack;
  worker->after = After::WaitForScope;
  worker->after_scope = scope;
  suspend(worker, stack);
  if (has_forks) end_waiting(stack);
  word->store(1, std::memory_order_relaxed);
}

}  // namespace jd::task

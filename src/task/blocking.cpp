// Blocking sections: another worker takes the place of one that waits for long. When that comes
// back, there is one too many, which takes the next place, or sits on the bench until it is needed.
#include "task/blocking.hpp"

#include "os/futex.hpp"
#include "os/log.hpp"
#include "task/idle.hpp"
#include "task/published.hpp"
#include "task/stacks.hpp"
#include "task/workers.hpp"

namespace jd::task {
namespace {

// Counts down by one, but not below none.
template <class Count>
bool take_one(std::atomic<Count>* count) {
  Count have = count->load(std::memory_order_relaxed);
  while (have > 0) {
    if (count->compare_exchange_weak(have, have - 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// Too many workers: this one sits on the bench until it is needed. False if the runtime stops.
bool sit_on_bench() {
  // The wake that brought this worker here may have been for work that nobody else knows of; and
  // what it leaves behind, forks below a suspended task, nobody else may be awake to find.
  if (runtime.roots.load(std::memory_order_seq_cst) != 0) wake_one(Waker::Waits);
  runtime.benched.fetch_add(1, std::memory_order_acq_rel);
  for (;;) {
    const std::uint32_t word = runtime.bench_word.load(std::memory_order_acquire);
    if (runtime.quitting.load(std::memory_order_acquire)) return false;
    if (take_one(&runtime.called)) return true;
    os::futex_wait(&runtime.bench_word, word);
  }
}

bool add_worker_for_blocked() {
  os::LockGuard guard(runtime.lock);
  if (add_worker()) return true;
  static bool said = false;
  if (!said) {
    said = true;
    os::warn("no worker takes the place of one in a blocking section: ",
             runtime.count.load(std::memory_order_relaxed), " threads of at most ", kMostWorkers,
             " are up; tasks wait until one comes back");
  }
  return false;
}

// Gives the place of one that goes away to somebody. True if that may be asleep.
bool give_place() {
  // Sections one after the other come faster than the one too many sits down.
  if (take_one(&runtime.surplus)) return true;
  if (take_one(&runtime.benched)) {
    runtime.called.fetch_add(1, std::memory_order_release);
    runtime.bench_word.fetch_add(1, std::memory_order_release);
    os::futex_wake(&runtime.bench_word, 1);
  } else if (!add_worker_for_blocked()) {
    // One is missing, until one comes back.
    runtime.surplus.fetch_sub(1, std::memory_order_acq_rel);
  }
  return false;
}

// Can others take something that this worker has not come to?
bool leaves_work(const Worker* worker) {
  if (!worker->deque.looks_empty()) return true;
  const Stack* stack = worker->stack.load(std::memory_order_relaxed);
  return stack != nullptr && stack->oldest.load(std::memory_order_relaxed) != nullptr;
}

}  // namespace

bool make_room() { return !take_one(&runtime.surplus) || sit_on_bench(); }

void call_blocking(void (*function)(void*), void* argument) {
  Worker* worker = current_at_work();
  if (worker == nullptr) return function(argument);
  const bool may_sleep = give_place();
  if (with_stacks()) publish_own(worker, false);
  worker->away.store(true, std::memory_order_release);
  __atomic_store_n(worker->direct, 0, __ATOMIC_RELAXED);
  // A worker that naps hears of no fork. A new thread, or one from the bench, looks around in any
  // case.
  if (may_sleep && leaves_work(worker)) wake_one(Waker::Waits);
  function(argument);
  // The child of a fork() in it stays away.
  if (runtime.alone_in_child) return;
  worker = current();
  worker->away.store(false, std::memory_order_release);
  begin_to_fork(worker);
  runtime.surplus.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace jd::task

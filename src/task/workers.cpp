// The workers' life: starting and stopping them, and work that comes from other threads.
#include "task/workers.hpp"

#include <pthread.h>
#include <signal.h>

#include <new>

#include "base/random.hpp"
#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/memory.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"
#include "os/thread_locals.hpp"
#include "task/mode.hpp"
#include "task/overflow.hpp"
#include "task/process_fork.hpp"
#include "task/schedule.hpp"
#include "task/stacks.hpp"
#include "task/victim.hpp"
#include "world/fork.hpp"
#include "world/stop.hpp"
#include "world/thread.hpp"

namespace jd::task {

constinit Runtime runtime;

namespace {

using os::LockGuard;

// Of a worker's thread. In deque mode tasks run on it; otherwise what may take most room there is
// mark procedures of the client's, as on a marker's own thread.
std::size_t thread_stack_size() {
  if (!with_stacks()) return cycle::options.task_stack;
  return base::max_of(std::size_t{cycle::options.task_stack}, base::kMiB);
}

// What a sequence of random numbers begins with: never 0, and far from that of the next number.
std::uint64_t first_random(std::uint64_t number) {
  if (cycle::options.task_seed == 0) return os::random_bits() | 1;
  std::uint64_t state = (cycle::options.task_seed * base::kGolden + number) * base::kGolden | 1;
  for (int i = 0; i < 8; ++i) base::next_random(&state);
  return state;
}

// About what a visitor takes, which may wait for a signal's answer.
constexpr std::uint64_t kVisit = 50000;  // ns

void* live(void* argument) {
  auto* worker = static_cast<Worker*>(argument);
  if (world::self() == nullptr) cycle::start();
  world::Thread* thread = world::self();
  worker->thread = thread->id;
  worker->own_stack = thread->stack;
  worker->control_block = static_cast<char*>(os::own_thread_control_block());
  worker->direct = &jd_task_direct;
  worker->wanted = &jd_task_wanted;
  worker->floating_control = os::floating_control();
  // A task gets the signals that its program expects, and so do the threads and processes it makes.
  os::unblock_signals_but(runtime.blocked_signals);
  os::unblock_signal(SIGSEGV);  // stack overflows are told of
  if (with_stacks()) prepare_victim();
  set_current(worker);
  begin_to_watch(worker);
  worker->away.store(false, std::memory_order_release);
  schedule(worker);
  worker->away.store(true, std::memory_order_seq_cst);
  while (runtime.visitors.load(std::memory_order_seq_cst) != 0) os::sleep_ns(kVisit);
  end_watching();
  set_current(nullptr);
  if (worker->spare != nullptr) give_stack(worker->spare);
  worker->spare = nullptr;
  worker->control_block = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  world::unregister_self();
  runtime.alive.fetch_sub(1, std::memory_order_release);
  os::futex_wake(&runtime.alive, os::kAllWaiters);
  return nullptr;
}

}  // namespace

bool add_worker() {
  const std::uint32_t count = runtime.count.load(std::memory_order_relaxed);
  if (count == kMostWorkers) return false;
  Worker* worker = runtime.workers[count].load(std::memory_order_relaxed);
  if (worker == nullptr) {
    void* memory = os::map(base::align_up(sizeof(Worker), os::page_size()));
    if (memory == nullptr) return false;
    // Without braces: they would clear the deque's slots, and so touch 64 KiB.
    worker = new (memory) Worker;
    runtime.workers[count].store(worker, std::memory_order_relaxed);
  } else {
    // One of an earlier start; its thread is gone.
    Unwinder kept = worker->unwinder;
    void* const alternate_stack = worker->alternate_stack;
    worker->~Worker();
    worker = new (static_cast<void*>(worker)) Worker;
    worker->unwinder = kept;
    worker->unwinder.forget();
    worker->alternate_stack = alternate_stack;
  }
  worker->random = first_random(count);
  worker->delays = first_random(count + kMostWorkers);
  worker->away.store(true, std::memory_order_relaxed);
  if (with_stacks() && !worker->unwinder.prepare()) return false;
  prepare_for_overflow(worker);
  runtime.alive.fetch_add(1, std::memory_order_relaxed);
  if (!os::start_thread(live, worker, thread_stack_size(), "jd-worker", &worker->handle,
                        kStackGuard)) {
    runtime.alive.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  runtime.count.store(count + 1, std::memory_order_release);
  return true;
}

bool choose_mode(jd_task_mode mode) {
  if (static_cast<unsigned>(mode) > JD_TASK_BARRIER) return false;
  cycle::start();
  LockGuard guard(runtime.lock);
  if (runtime.running.load(std::memory_order_relaxed)) return mode == runtime.mode;
  if (!mode_is_possible(mode)) return false;
  const bool is_asked_for = base::was_given(&base::Options::task_mode);
  if (is_asked_for && mode != static_cast<jd_task_mode>(cycle::options.task_mode)) return false;
  runtime.chosen_mode.store(mode, std::memory_order_relaxed);
  return true;
}

// Of workers that are to be started. Pre: the options are read.
static jd_task_mode mode_at_start() {
  const int chosen = runtime.chosen_mode.load(std::memory_order_relaxed);
  if (chosen != Runtime::kNoMode) return static_cast<jd_task_mode>(chosen);
  const auto asked = static_cast<jd_task_mode>(cycle::options.task_mode);
  return mode_is_possible(asked) ? asked : JD_TASK_DEQUE;
}

jd_task_mode mode_to_be() {
  // Without the lock: around a fork, a program's own handlers may ask while this thread holds it.
  if (runtime.running.load(std::memory_order_acquire)) return runtime.mode;
  cycle::start();
  return mode_at_start();
}

unsigned workers_to_be() {
  if (runtime.running.load(std::memory_order_acquire)) return runtime.workers_wanted;
  cycle::start();
  return cycle::options.workers != 0 ? static_cast<unsigned>(cycle::options.workers)
                                     : base::min_of(os::cpu_count(), kMostWorkers / 2);
}

// Without the runtime's lock, for which a fork may wait with libc's lock of the handlers held.
static void prepare_for_forks() {
  // The process that prepares, set by the thread that does. A child may have been forked by another
  // thread in the midst of it, and prepares anew.
  static std::atomic<int> preparing{0};
  // Set by that thread (release), and read by all that start workers (acquire): the handlers are
  // there.
  static std::atomic<bool> done{false};
  const int process = os::process_id();
  for (int seen = preparing.load(std::memory_order_relaxed);;) {
    if (done.load(std::memory_order_acquire)) return;
    if (seen == process) {
      os::yield();
    } else if (preparing.compare_exchange_weak(seen, process, std::memory_order_acquire)) {
      break;
    }
  }
  if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
    os::warn("pthread_atfork failed; after fork() the child must not run tasks");
  }
  {
    // libc calls them as well, in whatever order: the heap's lock is to come last.
    LockGuard guard(heap::heap_lock);
    world::set_fork_hooks({before_fork, after_fork_in_parent, after_fork_in_child});
  }
  done.store(true, std::memory_order_release);
}

unsigned start(unsigned workers) {
  if (!runtime.running.load(std::memory_order_acquire)) cycle::start();
  // The calling task's worker is all that there is of them.
  if (runtime.alone_in_child) return workers_to_be();
  if (workers == 0) workers = workers_to_be();
  workers = base::min_of(workers, kMostWorkers / 2);
  prepare_for_forks();
  LockGuard guard(runtime.lock);
  if (runtime.running.load(std::memory_order_relaxed)) return runtime.workers_wanted;
  prepare_markers(workers);
  static bool first = true;
  if (first) {
    first = false;
    warn_of_blind_tools();
    prepare_stacks();
    watch_for_overflows();
  }
  runtime.mode = mode_at_start();
  runtime.blocked_signals = os::blocked_signals();
  if (with_stacks() && !prepare_stealing()) runtime.mode = JD_TASK_DEQUE;
  runtime.quitting.store(false, std::memory_order_relaxed);
  runtime.surplus.store(0, std::memory_order_relaxed);
  runtime.benched.store(0, std::memory_order_relaxed);
  runtime.called.store(0, std::memory_order_relaxed);
  runtime.count.store(0, std::memory_order_relaxed);
  runtime.workers_wanted = workers;
  runtime.crowded = workers > os::cpu_count();
  for (unsigned i = 0; i < workers; ++i) {
    if (add_worker()) continue;
    if (i == 0) {
      os::fatal("the system refuses memory or a thread for the first worker, with a stack of ",
                thread_stack_size(),
                " bytes, in which the program's thread-local data must have room, too "
                "(JACKDAW_TASK_STACK sets the size; see also ulimit -u and -v)");
    }
    os::warn("the system refuses worker ", i + 1, " of ", workers, "; going on with ", i);
    runtime.workers_wanted = i;
    break;
  }
  runtime.running.store(true, std::memory_order_release);
  return runtime.workers_wanted;
}

// A destructor of a thread-local variable of a worker that ends may want to fork: others, which
// start() makes once stop() has let go of the lock.
void ensure_running() {
  const bool ends = runtime.quitting.load(std::memory_order_acquire);
  if (ends || !runtime.running.load(std::memory_order_acquire)) start(0);
}

void wait_for_workers(std::atomic<std::uint32_t>* word, std::uint32_t seen) {
  os::Machine::wait_stoppably(word, seen, os::kForever);
}

// False if there are none. Post: they use nothing of the runtime's any more.
static bool end_workers(pthread_t* threads, std::uint32_t* count) {
  LockGuard guard(runtime.lock);
  if (!runtime.running.load(std::memory_order_relaxed)) return false;
  runtime.quitting.store(true, std::memory_order_release);
  for (std::atomic<std::uint32_t>* word : {&runtime.wake_word, &runtime.bench_word}) {
    word->fetch_add(1, std::memory_order_release);
    os::futex_wake(word, os::kAllWaiters);
  }
  for (;;) {
    const std::uint32_t alive = runtime.alive.load(std::memory_order_acquire);
    if (alive == 0) break;
    wait_for_workers(&runtime.alive, alive);
  }
  runtime.running.store(false, std::memory_order_release);
  *count = runtime.count.load(std::memory_order_relaxed);
  for (std::uint32_t k = 0; k < *count; ++k) {
    threads[k] = runtime.workers[k].load(std::memory_order_relaxed)->handle;
  }
  return true;
}

void stop() {
  pthread_t threads[kMostWorkers];
  std::uint32_t count = 0;
  if (!end_workers(threads, &count)) return;
  // Without the lock, which a destructor of a thread-local variable may want; another may want a
  // collection first.
  const os::SignalOpening opening(world::stop_signal());
  for (std::uint32_t i = 0; i < count; ++i) os::join_thread(threads[i]);
}

// ---- Work from other threads ----

void inject(jd_task* task, Waker waker) {
  task->reserved = kIsRoot;
  task->newer = nullptr;
  runtime.roots.fetch_add(1, std::memory_order_seq_cst);
  {
    LockGuard guard(runtime.queue_lock);
    (runtime.queue_last != nullptr ? runtime.queue_last->newer : runtime.queue_first) = task;
    runtime.queue_last = task;
    runtime.queued.fetch_add(1, std::memory_order_seq_cst);
  }
  wake_one(waker);
}

void spill(jd_task* oldest) {
  {
    LockGuard guard(runtime.queue_lock);
    while (oldest != nullptr) {
      jd_task* const task = oldest;
      oldest = task->older;
      task->older = runtime.spilled;
      runtime.spilled = task;
      runtime.spilled_count.fetch_add(1, std::memory_order_seq_cst);
    }
  }
  wake_one(Waker::RunsOn);
}

void inject_and_wait(jd_task* task) {
  // The results come to its stack: collections must know it, though it may have allocated nothing.
  if (world::self() == nullptr) cycle::start();
  ensure_running();
  std::atomic<std::uint32_t>* const join = join_word(task);
  join->store(kRunning, std::memory_order_relaxed);
  inject(task, Waker::Waits);
  // A worker that is up takes a short task in less time than sleeping takes.
  for (int i = 0; i < 1000; ++i) {
    if (join->load(std::memory_order_acquire) == kEnded) break;
    os::cpu_relax();
  }
  for (;;) {
    std::uint32_t state = kRunning;
    join->compare_exchange_strong(state, kAsleep, std::memory_order_acquire);
    if (state == kEnded) break;
    wait_for_workers(join, kAsleep);
  }
  // Exactly here: the task's results are visible.
  static_cast<void>(join->load(std::memory_order_acquire));
}

jd_task* take_queued() {
  if (runtime.queued.load(std::memory_order_seq_cst) == 0) return nullptr;
  LockGuard guard(runtime.queue_lock);
  jd_task* root = runtime.queue_first;
  if (root == nullptr) return nullptr;
  runtime.queue_first = root->newer;
  if (runtime.queue_first == nullptr) runtime.queue_last = nullptr;
  runtime.queued.fetch_sub(1, std::memory_order_relaxed);
  return root;
}

jd_task* take_spilled() {
  if (runtime.spilled_count.load(std::memory_order_seq_cst) == 0) return nullptr;
  LockGuard guard(runtime.queue_lock);
  jd_task* const newest = runtime.spilled;
  if (newest == nullptr) return nullptr;
  runtime.spilled = newest->older;
  runtime.spilled_count.fetch_sub(1, std::memory_order_relaxed);
  return newest;
}

}  // namespace jd::task

// Workers: the threads that run tasks, and what they know of each other.
//
// Each shared variable says who writes it; the protocol as a whole is in docs/design/task.md.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "jackdaw/task.h"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/lock.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"
#include "os/waking_place.hpp"
#include "task/deque.hpp"
#include "task/times.hpp"
#include "task/unwind.hpp"

namespace jd::task {

struct Stack;

// jd_task::join, from the fork on. A forker that nobody steals from never writes it.
enum Join : std::uint32_t {
  kFresh = 0,      // forked through the library, or published; by whoever did that
  kRunning = 1,    // taken by another, who is to tell of its end; by that one, or (another thread's
                   // work, and in deque mode) by whoever waits for it
  kEnded = 2,      // by the thief, with an exchange that tells it whether anybody waits
  kAsleep = 3,     // the forker sleeps on the word itself; by the forker, from kRunning
  kSuspended = 4,  // the forker's stack waits in jd_task::waiter; by the forker, once off it
};

// A word of a structure that C programs declare, which knows no atomics. Not std::atomic_ref: it is
// also waited on in the kernel (os/futex.hpp).
inline std::atomic<std::uint32_t>* as_atomic(std::uint32_t* word) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  return reinterpret_cast<std::atomic<std::uint32_t>*>(word);
}
inline std::atomic<std::uint32_t>* join_word(jd_task* task) { return as_atomic(&task->join); }

// jd_task::reserved of a task that counts as one of Runtime::roots; otherwise 0. By whoever makes
// the task ready.
inline constexpr std::uint32_t kIsRoot = 1;

// What a thief asks of its victim (Worker::request).
enum Request : std::uint32_t {
  kNone = 0,      // by the thief that asked, when it has read the answer or asks no more
  kClaimed = 1,   // by a thief, from kNone: the handler of an earlier signal must not look yet
  kAsked = 2,     // by the thief, before it sends its signal
  kLooking = 3,   // by the victim, from kAsked; by exchange, since the thief may withdraw
  kAnswered = 4,  // by the victim; the thief makes it kNone when it has read the answer
  kHolding = 5    // the same, and the victim waits as long as it is so
};
enum class Answer : std::uint8_t { Found, Empty, Refused };

// What the scheduler does once it has left a task's stack.
enum class After : std::uint8_t { Nothing, Ended, WaitForTask, WaitForScope };

struct Worker {    // NOLINT(clang-analyzer-optin.performance.Padding): by user
  int thread = 0;  // the kernel's id
  // Its jd_task_direct; others clear it: sleepers (relaxed), thieves (release).
  int* direct = nullptr;
  // Its jd_task_wanted; set by thieves (release), cleared by itself when it polls (relaxed).
  int* wanted = nullptr;
  // Where its choices of victims and its delays (delay.hpp) have got to. By itself.
  std::uint64_t random = 0;
  std::uint64_t delays = 0;

  // The next fork is to wake somebody. Set by a sleeper that wants to be woken, and by this worker
  // when it begins a task while others sleep or nap (seq_cst, as `sleepers`); cleared by this
  // worker (relaxed, as its glances at each fork).
  std::atomic<std::uint32_t> armed{0};
  // In jd_task_blocking, or not yet, or no more, a worker; by itself (release).
  std::atomic<bool> away{false};
  os::WakingPlace waking_place;  // of its sleeps, not its naps

  // The thread's, as long as its memory may be read: by itself; the collector reads it in a stopped
  // world.
  char* control_block = nullptr;
  // The thread's at its start. By itself.
  os::FloatingControl floating_control;

  Deque deque;

  // The rest is for the modes with stacks.

  // The stack that its task runs on; null in the scheduler. By itself (release); thieves read it.
  std::atomic<Stack*> stack{nullptr};
  void* scheduler_sp = nullptr;     // the scheduler's stack pointer while a task runs
  os::Extent own_stack;             // the thread's
  void* running = nullptr;          // in deque mode, as Stack::running
  void* alternate_stack = nullptr;  // memory for signals (overflow.cpp); null: none
  Stack* spare = nullptr;           // an unused stack for the next task
  Stack* next = nullptr;            // a stack to go on with
  After after = After::Nothing;
  jd_task* after_task = nullptr;
  jd_task_scope* after_scope = nullptr;
  bool after_is_root = false;
  // A stack of its own to go on with, or null. By the worker that gives it back, which takes it
  // away again if it stays there, and by itself when it takes it: all by exchanges (acq_rel), so
  // that one of the two goes on. While it looks for work it reads it (relaxed: a glance).
  std::atomic<Stack*> given{nullptr};

  std::atomic<std::uint32_t> request{kNone};
  // The stack that the thief has locked. By the thief, before it asks (kAsked, release); read by
  // the victim once it looks (kLooking, acquire).
  Stack* asked = nullptr;
  // By the victim, before it has answered (kAnswered or kHolding, release); read by the thief from
  // then on (acquire) until it makes the request kNone.
  Answer answer = Answer::Refused;
  Registers walk{};           // where the thief goes on walking
  jd_task* newest = nullptr;  // of the forks that the victim gives away
  // When thieves may stop it again, and how often in a row it had nothing. By thieves, and by
  // itself when it takes a root (relaxed).
  std::atomic<std::uint64_t> ask_again{0};
  std::atomic<unsigned> empty_answers{0};
  // Its code polls, so that a thief need not send a signal at once. By itself, and by a thief that
  // waited in vain (relaxed).
  std::atomic<bool> polls{false};
  // When its handler answered, until a poll has drawn its conclusion from that; or 0. By itself.
  std::uint64_t handled_at = 0;
  // How often it has looked for a task. By itself.
  unsigned finds = 0;
  // As a thief: it is about to sleep, or was woken for work, and asks everybody.
  bool insists = false;

  Unwinder unwinder;
  // By this worker; its handler's share is written by that alone. Read by anybody, inexactly.
  jd_task_counters counters{};
  jd_task_times times[kTimeKinds]{};

  // For whoever stops it; under the runtime's lock. Here, behind what thieves read.
  pthread_t handle{};
};

// Workers at any time; threads in blocking sections count, too.
inline constexpr unsigned kMostWorkers = 256;

// Adds to one of the calling worker's counters; others may read it meanwhile.
inline void add(std::uint64_t* counter, std::uint64_t amount = 1) {
  __atomic_store_n(counter, *counter + amount, __ATOMIC_RELAXED);
}

inline void add_time(Worker* worker, jd_task_time kind, std::uint64_t ticks) {
  add(&worker->times[kind].count[time_class_of(ticks)]);
}

// Everything that the workers share.
struct Runtime {
  // Guards starting, stopping and adding workers.
  os::Lock lock;
  // Set (release) when the workers are there, cleared when they go; read (acquire) everywhere.
  std::atomic<bool> running{false};
  // Workers are to end. Set by whoever ends them (release), cleared by whoever starts others, both
  // under the lock; read by workers, and by whoever may have to start some (acquire).
  std::atomic<bool> quitting{false};
  // Written under the lock before `running` is set, and read after that.
  unsigned workers_wanted = 0;  // that run tasks at the same time
  // There are more than processors, so who waits lets others run. As workers_wanted.
  bool crowded = false;
  jd_task_mode mode = JD_TASK_DEQUE;
  // By choose_mode(), not by the options; or kNoMode. Written under the lock (relaxed: whoever
  // reads it without gets what was last chosen, or what was before).
  static constexpr int kNoMode = -1;
  std::atomic<int> chosen_mode{kNoMode};
  // The child of a fork() that a task called: there will be no workers. Set in the child by its
  // only thread, before it can make others.
  bool alone_in_child = false;

  // A worker stays where it is until the runtime stops. By whoever adds one, under the lock, the
  // entry before the count (release).
  std::atomic<Worker*> workers[kMostWorkers]{};
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint32_t> alive{0};  // workers that have not ended; stop waits on it

  // Work from other threads, first in, first out; linked by jd_task::newer. Under its lock.
  os::Lock queue_lock;
  jd_task* queue_first = nullptr;
  jd_task* queue_last = nullptr;
  // How many there are. Written under that lock; read without it by whoever looks for work. If
  // somebody adds a task and then sees no sleeper, the task is seen by every worker that then
  // counts itself a sleeper and looks (seq_cst, as `sleepers` and `roots` are).
  std::atomic<std::uint32_t> queued{0};
  // What deques have no room for, last in, first out; linked by jd_task::older. Under the queue's
  // lock. Not in the queue, where others' work would wait for all of it. The count as `queued`.
  jd_task* spilled = nullptr;
  std::atomic<std::uint32_t> spilled_count{0};
  // Roots that have not ended: while there are none, nobody looks for work. By whoever adds one
  // and by the worker that ends it.
  std::atomic<std::uint32_t> roots{0};

  // Threads that look into other workers' thread-local words, or signal them: a worker's thread
  // does not end while there are any.
  std::atomic<std::uint32_t> visitors{0};

  // What idle workers wait on: changed by whoever wakes one, or ends them all (release); read
  // before and after a wait (acquire).
  std::atomic<std::uint32_t> wake_word{0};
  // How many do, or look around for the last time before: written by each of them, read by
  // whoever may have to wake one (seq_cst, see `queued`).
  std::atomic<std::uint32_t> sleepers{0};
  // Those of the sleepers that wait in the kernel, and may be called to mark. Written by each
  // around its wait, read by the collector, which calls no more than come (relaxed: a hint).
  std::atomic<std::uint32_t> markers{0};
  // Workers too many, since others came back from blocking: one of them has the place of the next
  // that blocks, or goes to the bench. Below none, so many are missing. Counted up by each
  // that comes back, down by each that blocks and leaves its place to one of them, or to nobody,
  // and by each that goes (acq_rel); cleared under the lock before workers are started.
  std::atomic<std::int32_t> surplus{0};
  // What those on the bench wait on: changed by whoever calls one, or ends them all (release); read
  // by each before it looks whether it was called (acquire).
  std::atomic<std::uint32_t> bench_word{0};
  // How many sit on the bench and have not been called, and how many of the others have not got up:
  // a caller moves one from the first to the second, and one of those that sit takes it from there.
  std::atomic<std::uint32_t> benched{0};
  std::atomic<std::uint32_t> called{0};
  // Workers for whom the system had no memory for a stack, and which try again. Written and read by
  // each of them (relaxed: they look again and again).
  std::atomic<std::uint32_t> without_stack{0};

  // Stacks whose tasks wait for a scope, while below them there are forks that nobody has taken:
  // linked by Stack::next_waiting, under the lock. The count is a hint (relaxed).
  os::Lock waiting_lock;
  Stack* waiting = nullptr;
  std::atomic<std::uint32_t> waiting_count{0};

  // What the thread that started them blocks; workers do, too. Under the lock, before
  // they start; read by each as it begins.
  sigset_t blocked_signals{};
};
extern Runtime runtime;

// The calling thread's worker, or null. Never inlined, never folded with another call: a function
// that has been suspended in between is another worker's.
Worker* current();
void set_current(Worker* worker);
// The same, or null in a blocking section, where it may not fork in its own right.
inline Worker* current_at_work() {
  Worker* worker = current();
  return worker != nullptr && !worker->away.load(std::memory_order_relaxed) ? worker : nullptr;
}

// A moment of a wait for a worker that may have no processor. Not with a lock in hand: where other
// programs compute, a yield takes milliseconds.
inline void pause(int length) {
  if (runtime.crowded) {
    os::yield();
  } else {
    for (int i = 0; i < length; ++i) os::cpu_relax();
  }
}

inline bool with_stacks() { return runtime.mode != JD_TASK_DEQUE; }

// For its lifetime no worker's thread ends.
class Visit {
 public:
  Visit() { runtime.visitors.fetch_add(1, std::memory_order_seq_cst); }
  ~Visit() { runtime.visitors.fetch_sub(1, std::memory_order_release); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
};

}  // namespace jd::task

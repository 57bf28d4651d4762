#include "world/thread.hpp"

#include <algorithm>
#include <new>

#include "heap/arena.hpp"
#include "heap/growable.hpp"
#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/lock.hpp"
#include "os/log.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"
#include "os/thread_locals.hpp"
#include "world/own_ids.hpp"
#include "world/stop.hpp"

namespace jd::world {
namespace {

using heap::heap_lock;
using os::LockGuard;

// Records that no thread uses, and how many are in use. Under the lock (reports read the number
// without it, and may be late).
Thread* free_records = nullptr;
unsigned registered = 0;
// The thread that started the collector. Written at the start.
int first_thread = 0;
// The main thread did not survive a fork: what has its number, the process's, is another. Under the
// lock.
bool main_is_gone = false;

// Made at the start. Its destructor unregisters a thread (world.req.exit). It postpones itself to
// the last round of destructors, so that the client's own thread-local destructors may still
// allocate.
pthread_key_t exit_key;
#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer gives the thread up in the last round, before us, and can't be called after that.
// One round more is for a thread that registers among its destructors: it begins to count then.
constexpr std::uintptr_t kRounds = PTHREAD_DESTRUCTOR_ITERATIONS - 2;
#else
constexpr std::uintptr_t kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif
// The last round in which it was called in this thread. A thread that leaves and registers again
// among its destructors goes on counting there: no round may come after the one it would wait for.
constinit thread_local std::uintptr_t exit_round = 0;

// The record that the calling thread left behind when it unregistered itself, for whoever will join
// it. Perhaps no longer its own.
constinit thread_local Thread* left_record = nullptr;

void on_thread_exit(void* value) {
  const auto round = reinterpret_cast<std::uintptr_t>(value);
  exit_round = round;
  if (round < kRounds) {
    pthread_setspecific(exit_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  if (self() != nullptr) unregister_self();
}

// Where records are found by the kernel's id and by the handle: a chain for each remainder. Most
// programs have fewer threads than there are chains; with 10,000 a chain is 20 long, which is
// nothing beside making a thread. Under the lock.
constexpr std::size_t kChains = 512;
Thread* chains_by_id[kChains];
Thread* chains_by_handle[kChains];

Thread** chain_of(int id) { return &chains_by_id[static_cast<unsigned>(id) % kChains]; }
Thread** chain_of(pthread_t handle) {
  // An address, and stacks of one size lie at like distances: the multiplication mixes its bits.
  const std::uint64_t mixed = static_cast<std::uint64_t>(handle) * base::kGolden;
  return &chains_by_handle[mixed >> 32 & (kChains - 1)];
}

template <Links Thread::*links>
void link(Thread** list, Thread* thread) {
  thread->*links = {*list, list};
  if (*list != nullptr) ((*list)->*links).from = &(thread->*links).next;
  *list = thread;
}

template <Links Thread::*links>
void unlink(Thread* thread) {
  const Links place = thread->*links;
  *place.from = place.next;
  if (place.next != nullptr) (place.next->*links).from = place.from;
}

Thread* take_record() {
  Thread* thread = free_records;
  if (thread != nullptr) {
    free_records = thread->in_list.next;
  } else {
    thread = static_cast<Thread*>(heap::arena_take(sizeof(Thread)));
    if (thread == nullptr) return nullptr;
  }
  return new (thread) Thread;
}

void give_record(Thread* thread) {
  thread->in_list.next = free_records;
  free_records = thread;
}

}  // namespace

constinit thread_local Thread* self_record = nullptr;
Thread* threads = nullptr;
Thread* finished_threads = nullptr;

namespace {

// A thread that comes back gets the record that it left, if that still waits to be joined: whoever
// joins it may have found the record before, and looks for the result there. Null if there is none.
Thread* take_left_record() {
  for (Thread* thread = *chain_of(pthread_self()); thread != nullptr;
       thread = thread->by_handle.next) {
    if (thread != left_record || !thread->finished ||
        pthread_equal(thread->handle, pthread_self()) == 0) {
      continue;
    }
    unlink<&Thread::in_list>(thread);
    unlink<&Thread::by_handle>(thread);
    void* const result = thread->result;
    new (thread) Thread;
    thread->joinable = true;
    thread->result = result;
    return thread;
  }
  return nullptr;
}

// The thread is registered no more: its result is kept as long as it may be joined.
void remove(Thread* thread, bool is_gone) {
  thread_leaves(thread, is_gone);
  unlink<&Thread::in_list>(thread);
  unlink<&Thread::by_id>(thread);
  --registered;
  if (thread->joinable) {
    thread->finished = true;
    link<&Thread::in_list>(&finished_threads, thread);
  } else {
    unlink<&Thread::by_handle>(thread);
    give_record(thread);
  }
}

// Pre: the lock is held.
Thread* add_self(os::Extent stack, bool joinable) {
  Thread* thread = left_record != nullptr ? take_left_record() : nullptr;
  left_record = nullptr;
  if (thread == nullptr) thread = take_record();
  if (thread == nullptr) return nullptr;
  const OwnIds ids = own_ids();
  thread->id = ids.thread;
  // A record with this id is that of a thread which ended without a word.
  for (Thread* t = *chain_of(thread->id); t != nullptr;) {
    Thread* const next = t->by_id.next;
    if (t->id == thread->id) remove(t, true);
    t = next;
  }
  thread->is_main = !main_is_gone && thread->id == ids.process;
  thread->by_itself = thread->id != first_thread;
  if (joinable) thread->joinable = true;
  thread->handle = pthread_self();
  thread->control_block = os::own_thread_control_block();
  thread->stack = stack;
  link<&Thread::in_list>(&threads, thread);
  link<&Thread::by_id>(chain_of(thread->id), thread);
  link<&Thread::by_handle>(chain_of(thread->handle), thread);
  ++registered;
  // From here on this thread can be stopped. The stop signal may come at once; the lock that we
  // hold keeps a collector away until we have let go of it.
  self_record = thread;
  return thread;
}

}  // namespace

char** main_stack_bottom = nullptr;

void initialise_threads() {
  if (pthread_key_create(&exit_key, on_thread_exit) != 0) {
    os::fatal("the process has no thread-specific key left for the collector");
  }
  first_thread = os::thread_id();
  install_stop_handler();
}

bool register_self(os::Extent stack, bool joinable) {
  {
    LockGuard guard(heap_lock);
    if (add_self(stack, joinable) == nullptr) return false;
  }
  // Programs block all signals, start the collector, and make threads that inherit the mask.
  os::unblock_signal(stop_signal());
  // These two may allocate, by a malloc that the client has built on this library. So they come
  // last: until its bounds are known, the stack is scanned up to the end of its mapping.
  if (stack.high == nullptr) set_own_stack(os::own_stack());
  const std::uintptr_t round = base::min_of(exit_round + 1, kRounds);
  pthread_setspecific(exit_key, reinterpret_cast<void*>(round));
  return true;
}

void unregister_self() {
  Thread* thread = self();
  LockGuard guard(heap_lock);
  const bool joinable = thread->joinable;
  remove(thread, false);
  self_record = nullptr;
  if (joinable) left_record = thread;
}

void drop_gone_threads() {
  for (Thread* t = threads; t != nullptr;) {
    Thread* const next = t->in_list.next;
    if (t->gone) remove(t, true);
    t = next;
  }
}

unsigned thread_count() { return registered; }

// Newest first, both: a thread that was not joined by us may have left its record, with the same
// handle.
Thread* find_thread(pthread_t handle) {
  for (Thread* t = *chain_of(handle); t != nullptr; t = t->by_handle.next) {
    if (pthread_equal(t->handle, handle) != 0) return t;
  }
  return nullptr;
}

Thread* find_joinable(pthread_t handle) {
  for (Thread* t = *chain_of(handle); t != nullptr; t = t->by_handle.next) {
    if (t->joinable && pthread_equal(t->handle, handle) != 0) return t;
  }
  return nullptr;
}

void forget_record(Thread* thread) {
  unlink<&Thread::in_list>(thread);
  unlink<&Thread::by_handle>(thread);
  give_record(thread);
}

// In this order no stop ever sees the low end of one stack with the high end of another, which
// would be taken for one range.
static void change_stack(os::Extent* stack, const os::Extent& to) {
  stack->low = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stack->high = to.high;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stack->low = to.low;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void set_own_stack(const os::Extent& stack) { change_stack(&self()->stack, stack); }

void set_stack_high(Thread* thread, char* high) {
  change_stack(&thread->stack, {nullptr, high});
  if (thread->is_main && main_stack_bottom != nullptr) *main_stack_bottom = high;
}

static heap::Growable<os::Extent> gone_stacks;  // under the lock

void add_gone_stack(const os::Extent& stack) {
  // Without memory for the table, this one now.
  if (!gone_stacks.push(stack)) stacks_are_gone(&stack, 1);
}

void forget_gone_stacks() {
  std::sort(gone_stacks.begin(), gone_stacks.end(),
            [](const os::Extent& a, const os::Extent& b) { return a.low < b.low; });
  // One may be the same as another, or a buffer on it.
  std::size_t joined = 0;
  for (const os::Extent& stack : gone_stacks) {
    if (joined != 0 && stack.low < gone_stacks[joined - 1].high) {
      char** const high = &gone_stacks[joined - 1].high;
      *high = base::max_of(*high, stack.high);
    } else {
      gone_stacks[joined++] = stack;
    }
  }
  if (joined != 0) stacks_are_gone(gone_stacks.begin(), joined);
  gone_stacks.clear();
}

// Of a thread that the fork has left in the parent. The main thread's stack nobody else gets; one
// of the program's own reaches nobody knows how far; and the caller's may be a buffer on another's,
// or that of a thread which had ended without a word, where nobody could tell.
static void add_stack_of(const Thread& thread) {
  const os::Extent& stack = thread.stack;
  if (thread.is_main || stack.low == nullptr || stack.contains(os::frame_address())) return;
  const Thread* mine = self();
  if (mine != nullptr && mine->stack.low < stack.high && stack.low < mine->stack.high) return;
  add_gone_stack(stack);
}

void forget_ended_threads() {
  for_each_thread([](Thread* thread) {
    if (thread == self() || thread->is_main) return;
    thread->gone = os::thread_has_ended(thread->id);
  });
  drop_gone_threads();
}

void keep_only_self_in_child(bool is_main) {
  main_is_gone |= !is_main;
  Thread* mine = self();
  for (Thread* t = threads; t != nullptr;) {
    Thread* const next = t->in_list.next;
    if (t != mine) {
      add_stack_of(*t);
      t->joinable = false;
      remove(t, true);
    }
    t = next;
  }
  forget_gone_stacks();
  while (finished_threads != nullptr) forget_record(finished_threads);
  if (mine == nullptr) return;
  mine->in_stop.store(false, std::memory_order_relaxed);
  mine->id = os::thread_id();
  mine->suspensions.store(0, std::memory_order_relaxed);
  mine->parked = false;
}

}  // namespace jd::world

#include "world/fork.hpp"

#include <pthread.h>

#include "heap/space.hpp"
#include "mark/concurrent.hpp"
#include "mark/team.hpp"
#include "os/own_ranges.hpp"
#include "os/thread.hpp"
#include "world/own_ids.hpp"
#include "world/roots.hpp"
#include "world/thread.hpp"

namespace jd::world {
namespace {

// Written before other threads exist.
int own_process = 0;
// Was this fork called by the main thread? Under the heap's lock, and the child's from then on.
bool forked_by_main = true;
// Did the process have other threads, known to the collector or not? As forked_by_main.
bool forked_beside_others = false;

// Are the heap's lock and the own ranges held throughout the fork? As forked_by_main, but that a
// program's only thread reads it without the lock.
bool holds_locks = true;

// Under the heap's lock.
ForkHooks hooks;

// The fork under way was called by a handler that interrupted the holder of the heap's lock; nobody
// else waits for that. Set by the program's only thread, and cleared by it when the fork is done;
// read by threads that fork.
bool in_handler = false;

unsigned own_threads() { return mark::team.helpers() + mark::concurrent.threads(); }

void forget_others_in_child(bool is_main, bool some_were_there) {
  os::reset_own_ranges_in_child();
  if (some_were_there) expect_locked_loader_in_child();
  keep_only_self_in_child(is_main);
  mark::team.forget_helpers_in_child();
  mark::concurrent.forget_in_child();
}

ForkHooks current_hooks() {
  const os::LockGuard guard(heap::heap_lock);
  return hooks;
}

}  // namespace

bool is_borrowed_process() { return is_borrowed_process(os::process_id()); }
bool is_borrowed_process(int process) { return process != own_process; }

// Not if the lock can be had, which a marker beside the program lets go of soon. Otherwise it is
// the caller's if the program has no other thread.
bool interrupts_lock_holder() {
  if (mark::concurrent.try_lock_heap()) {
    heap::heap_lock.release();
    return false;
  }
  // Where they can't be counted, libc knows whether there was ever another.
  const unsigned all = os::count_threads();
  return all != 0 ? all == 1 + own_threads() : os::Machine::is_alone();
}

bool install_fork_handlers() {
  own_process = os::process_id();
  return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

void recognise_children() {
  const os::LockGuard guard(heap::heap_lock);
  recognise_children_by_page();
}

void adopt_process() {
  if (!is_borrowed_process() || !is_in_unnoticed_child()) return;
  const Thread* mine = self();
  // The main thread's id is the process's.
  const bool is_main = mine != nullptr && mine->id == own_process;
  own_process = os::process_id();
  forget_own_ids_in_child();
  forget_others_in_child(is_main, true);
}

void set_fork_hooks(const ForkHooks& wanted) { hooks = wanted; }

void before_fork() {
  // A program with one thread, whose lock is held, forks in a handler that has interrupted the
  // holder: POSIX allowed that until 2017. The child goes on in the midst of it just as the parent,
  // but for a collection that others help to mark, which is abandoned
  // (Team::forget_helpers_in_child).
  if (interrupts_lock_holder()) {
    in_handler = true;
    return;
  }
  for (;;) {
    const ForkHooks called = current_hooks();
    if (called.before != nullptr) called.before();
    heap::heap_lock.acquire();
    // Somebody may have set them meanwhile, once.
    if (called.before == hooks.before) break;
    heap::heap_lock.release();
  }
  forget_ended_threads();
  // Where they can't be counted there may be some.
  forked_beside_others = os::count_threads() != 1 + own_threads();
  // For the child, which may not be able to ask. Without memory it tries all the same.
  if (forked_beside_others) static_cast<void>(update_static_roots());
  forked_by_main = os::thread_id() == os::process_id();
  // The only thread needs no lock for the child to find everything as it is here; and handlers of
  // the program's that come after this one, or before the next, may allocate.
  holds_locks = forked_beside_others || own_threads() != 0;
  if (holds_locks) {
    os::hold_own_ranges();
  } else {
    mark::concurrent.hold_back();
    heap::heap_lock.release();
  }
}

void after_fork_in_parent() {
  if (in_handler) {
    in_handler = false;
    return;
  }
  if (!holds_locks) heap::heap_lock.acquire();
  const ForkHooks called = hooks;
  if (holds_locks) {
    os::let_go_of_own_ranges();
  } else {
    mark::concurrent.let_start();
  }
  heap::heap_lock.release();
  if (called.in_parent != nullptr) called.in_parent();
}

void after_fork_in_child() {
  own_process = os::process_id();
  forget_own_ids_in_child();
  if (in_handler) {
    in_handler = false;
    if (Thread* mine = self()) mine->id = os::thread_id();
    mark::team.forget_helpers_in_child();
    mark::concurrent.forget_in_child();
    return;
  }
  forget_others_in_child(forked_by_main, forked_beside_others);
  heap::heap_lock.reset_in_child();
  heap::heap_readers.reset_in_child();
  if (hooks.in_child != nullptr) hooks.in_child();
}

}  // namespace jd::world

#include "world/results.hpp"

#include <atomic>
#include <cstdint>

#include "heap/space.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"
#include "os/log.hpp"
#include "world/thread.hpp"

namespace jd::world {
namespace {

using heap::heap_lock;
using os::LockGuard;

// On the creator's stack until the new thread has taken it: so the argument stays a root.
struct Start {
  void* (*routine)(void*);
  void* argument;
  bool joinable;
  std::atomic<std::uint32_t> taken;  // written by the new thread (release), awaited by the creator
};

void* run_thread(void* data) {
  auto* start = static_cast<Start*>(data);
  void* (*routine)(void*) = start->routine;
  void* argument = start->argument;
  if (!register_self({}, start->joinable)) {
    os::fatal("no memory for the record of a new thread (see ulimit -d and -v)");
  }
  self()->by_itself = false;
  start->taken.store(1, std::memory_order_release);
  os::futex_wake(&start->taken, 1);
  void* result = routine(argument);
  note_result(result);
  return result;
}

}  // namespace

int create_thread(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                  void* argument) {
  Start record{start, argument, true, {0}};
  int state = PTHREAD_CREATE_JOINABLE;
  if (attributes != nullptr && pthread_attr_getdetachstate(attributes, &state) == 0) {
    record.joinable = state == PTHREAD_CREATE_JOINABLE;
  }
  const int error = pthread_create(handle, attributes, run_thread, &record);
  if (error != 0) return error;
  // The new thread may wait for the lock of a collector that waits for this one, whose signals are
  // blocked maybe.
  while (record.taken.load(std::memory_order_acquire) == 0) {
    os::Machine::wait_stoppably(&record.taken, 0, os::kForever);
  }
  return 0;
}

Thread* find_result(pthread_t handle) {
  LockGuard guard(heap_lock);
  return find_joinable(handle);
}

void forget_result(Thread* thread) {
  if (thread == nullptr) return;
  LockGuard guard(heap_lock);
  if (thread->finished) {
    forget_record(thread);
  } else {
    // Still running: nobody will ask for its result.
    thread->joinable = false;
  }
}

void note_result(void* result) {
  if (Thread* thread = self(); thread != nullptr) thread->result = result;
}

}  // namespace jd::world

#include "world/blocking.hpp"

#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/lock.hpp"
#include "world/stop.hpp"
#include "world/thread.hpp"

namespace jd::world {
namespace {

using heap::heap_lock;
using os::LockGuard;

struct BlockingCall {
  void* (*function)(void*);
  void* argument;
  void* result;
};

// Makes the thread an ordinary one again. Waits for a suspension to end, and, at the lock, for a
// collection.
void leave_blocked(Thread* thread) {
  for (;;) {
    wait_while_suspended(thread);
    LockGuard guard(heap_lock);
    // Not suspended anew between the two.
    if (is_suspended(*thread)) continue;
    thread->blocked = false;
    thread->locals_on_stack_since = 0;
    return;
  }
}

}  // namespace

// The personality routine of run_blocking alone: called by whoever unwinds the stack through it,
// for pthread_exit, a cancellation, or an exception. The frames beyond belong to a thread that
// touches the heap. (A destructor would be the same, but needs the C++ library to run.)
extern "C" [[gnu::visibility("hidden"), gnu::used]] int jackdaw_unwind_blocking(int, int actions,
                                                                                std::uint64_t,
                                                                                void*, void*) {
  // By the Itanium C++ ABI.
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwinding = 8;
  Thread* thread = self();
  if ((actions & kCleanupPhase) != 0 && thread != nullptr && thread->blocked) {
    leave_blocked(thread);
  }
  return kContinueUnwinding;
}

namespace {

[[gnu::noinline]] void run_blocking(void* data, char* stack_top) {
  asm volatile(".cfi_personality 0x1b, jackdaw_unwind_blocking");  // 0x1b: relative, 4 bytes
  auto* call = static_cast<BlockingCall*>(data);
  Thread* thread = self();
  {
    LockGuard guard(heap_lock);
    thread->blocked_at = stack_top;
    thread->blocked = true;
  }
  call->result = call->function(call->argument);
  leave_blocked(thread);
}

}  // namespace

void* call_blocking(void* (*function)(void*), void* argument) {
  Thread* thread = self();
  if (thread == nullptr || thread->blocked) return function(argument);
  BlockingCall call{function, argument, nullptr};
  os::call_with_registers_on_stack(run_blocking, &call);
  return call.result;
}

void end_blocking() { leave_blocked(self()); }

void* call_active(void* (*function)(void*), void* argument) {
  Thread* thread = self();
  if (thread == nullptr || !thread->blocked) return function(argument);
  char* const outer = thread->blocked_at;
  leave_blocked(thread);
  // The scan covers the whole stack, the frames of the blocking function included: more than the
  // ABI promises, never less.
  void* result = function(argument);
  LockGuard guard(heap_lock);
  thread->blocked_at = outer;
  thread->blocked = true;
  return result;
}

}  // namespace jd::world

// Threads: registration, blocking sections, stack ends, the pthread wrappers.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "libgc/support.hpp"
#include "os/context.hpp"
#include "os/log.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"
#include "world/blocking.hpp"
#include "world/fork.hpp"
#include "world/results.hpp"
#include "world/stop.hpp"
#include "world/thread.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

// GC_allow_register_threads was called, or a thread was made through us, which bdwgc takes for the
// same. Set before threads register, by any thread.
std::atomic<bool> registering_allowed{false};

// bdwgc's own variables of signals have this value until one is chosen.
constexpr int kDefaultSignal = -1;

}  // namespace

extern "C" {

GC_API void GC_alloc_lock() { heap_lock.acquire(); }
GC_API void GC_alloc_unlock() { heap_lock.release(); }
void* GC_call_with_alloc_lock(GC_fn_type function, void* argument) {
  LockGuard guard(heap_lock);
  return function(argument);
}
// What a reader writes is always visible to who has the lock next.
void* GC_call_with_reader_lock(GC_fn_type function, void* argument, int /*release*/) {
  heap::heap_readers.enter();
  void* const result = function(argument);
  heap::heap_readers.leave();
  return result;
}

void* GC_do_blocking(GC_fn_type function, void* argument) {
  return world::call_blocking(function, argument);
}
void* GC_call_with_gc_active(GC_fn_type function, void* argument) {
  return world::call_active(function, argument);
}
void* GC_call_with_stack_base(GC_stack_base_func function, void* argument) {
  GC_stack_base base{};
  base.mem_base = os::frame_address();
  void* result = function(&base, argument);
  // Keeps this frame, whose address was given away, until the function is done.
  asm volatile("" : : "r"(&base) : "memory");
  return result;
}

int GC_get_stack_base(GC_stack_base* base) {
  const os::Extent stack = os::own_stack();
  if (stack.high == nullptr) return GC_UNIMPLEMENTED;
  base->mem_base = stack.high;
  return GC_SUCCESS;
}
void* GC_get_my_stackbottom(GC_stack_base* base) {
  cycle::start();
  world::Thread* thread = world::self();
  base->mem_base = thread->is_main ? GC_stackbottom : thread->stack.high;
  return thread;
}
// Called with the lock held, or in the root function of a collection.
void GC_set_stackbottom(void* handle, const GC_stack_base* base) {
  if (!cycle::started()) {
    GC_stackbottom = static_cast<char*>(base->mem_base);
    return;
  }
  auto* thread = static_cast<world::Thread*>(handle);
  if (thread == nullptr) thread = world::self();
  if (thread != nullptr) world::set_stack_high(thread, static_cast<char*>(base->mem_base));
}
// Alternate stacks are recognised when a thread is stopped on one.
void GC_register_altstack(void*, GC_word, void*, GC_word) {}

void GC_allow_register_threads() {
  cycle::start();
  registering_allowed.store(true, std::memory_order_relaxed);
}
int GC_register_my_thread(const GC_stack_base* base) {
  if (!registering_allowed.load(std::memory_order_relaxed)) {
    abort_with("Threads explicit registering is not previously enabled");
  }
  world::Thread* self = world::self();
  if (self != nullptr && !self->by_itself) return GC_DUPLICATE;
  os::Extent stack = os::own_stack();
  // What the caller says about its end counts only if it lies on another stack: a frame's address
  // would hide the frames above it, which cost little to scan.
  auto* high = static_cast<char*>(base->mem_base);
  const bool is_another = high < stack.low || high > stack.high;
  if (is_another) stack = {nullptr, high};
  if (self == nullptr) {
    if (!world::register_self(stack)) return GC_NO_MEMORY;
    self = world::self();
  } else if (is_another) {
    world::set_stack_high(self, high);
  }
  self->by_itself = false;
  return GC_SUCCESS;
}
int GC_unregister_my_thread() {
  if (world::self() != nullptr) world::unregister_self();
  return GC_SUCCESS;
}
int GC_thread_is_registered() { return world::self() != nullptr; }
GC_API void GC_start_mark_threads() {}
void GC_set_markers_count(unsigned count) { cycle::options.markers = count; }
int GC_get_parallel() { return __atomic_load_n(&GC_parallel, __ATOMIC_RELAXED); }

GC_API void GC_suspend_thread(pthread_t handle) {
  {
    LockGuard guard(heap_lock);
    world::Thread* thread = world::find_thread(handle);
    if (thread == nullptr) return;
    world::suspend_thread(thread);
    if (thread != world::self()) return;
  }
  // A thread that suspends itself is held where it leaves a blocking section: here, or at the end
  // of the one that it is in.
  world::call_blocking([](void*) -> void* { return nullptr; }, nullptr);
}
GC_API void GC_resume_thread(pthread_t handle) {
  LockGuard guard(heap_lock);
  if (world::Thread* thread = world::find_thread(handle)) world::resume_thread(thread);
}
GC_API int GC_is_thread_suspended(pthread_t handle) {
  LockGuard guard(heap_lock);
  const world::Thread* thread = world::find_thread(handle);
  return thread != nullptr && world::is_suspended(*thread);
}

int GC_pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                      void* argument) {
  cycle::start();
  registering_allowed.store(true, std::memory_order_relaxed);
  return world::create_thread(handle, attributes, start, argument);
}
int GC_pthread_join(pthread_t handle, void** result) {
  world::Thread* thread = world::find_result(handle);
  int error = 0;
  {
    // The other may end only when a collection has, for which this one is to stop.
    const os::SignalOpening opening(world::stop_signal());
    error = pthread_join(handle, result);
  }
  if (error == 0) world::forget_result(thread);
  return error;
}
int GC_pthread_detach(pthread_t handle) {
  world::Thread* thread = world::find_result(handle);
  const int error = pthread_detach(handle);
  if (error == 0) world::forget_result(thread);
  return error;
}
int GC_pthread_cancel(pthread_t handle) { return pthread_cancel(handle); }
void GC_pthread_exit(void* result) {
  world::note_result(result);
  pthread_exit(result);
}
int GC_pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  if (set == nullptr || (how != SIG_BLOCK && how != SIG_SETMASK)) {
    return pthread_sigmask(how, set, old);
  }
  sigset_t without = *set;
  sigdelset(&without, world::stop_signal());
  return pthread_sigmask(how, &without, old);
}

int GC_get_suspend_signal() { return world::stop_signal(); }
void GC_set_suspend_signal(int signal) {
  world::set_stop_signal(signal == kDefaultSignal ? world::kDefaultStopSignal : signal);
}
int GC_get_thr_restart_signal() { return world::resume_signal(); }
void GC_set_thr_restart_signal(int signal) {
  world::set_resume_signal(signal == kDefaultSignal ? world::kDefaultResumeSignal : signal);
}

// A thread may be stopped in the middle of this: the collector notices (world/roots).
void* GC_dlopen(const char* path, int mode) { return dlopen(path, mode); }

// As with bdwgc, it counts only before the collector starts: then the handlers are installed.
void GC_set_handle_fork(int mode) {
  if (!cycle::started()) cycle::settings.handle_fork = mode;
}
void GC_atfork_prepare() {
  cycle::start();
  if (cycle::settings.handle_fork != 1) world::before_fork();
}
void GC_atfork_parent() {
  if (cycle::settings.handle_fork != 1) world::after_fork_in_parent();
}
void GC_atfork_child() {
  if (cycle::settings.handle_fork != 1) world::after_fork_in_child();
}
}

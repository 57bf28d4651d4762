// The calling thread and its peers as the system sees them: ids, stacks, thread-local storage,
// signals. Architecture-dependent facts stand here and in context.hpp.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "os/extent.hpp"

namespace jd::os {

// The kernel's id of the calling thread. A system call: keep the result.
int thread_id();
int process_id();
// Now, with nothing called on the way.
[[noreturn]] void end_process(int status);
// The process's threads, ended ones that are still waited for among them. 0 if it can't be told.
std::size_t count_threads();

// The calling thread's own stack, as it was created: from the lowest usable address to one past the
// first frame. For the main thread `low` is the lowest
// address that RLIMIT_STACK allows, but 64 MiB below `high` at most, where nothing else can be (a
// larger stack reaches further); it need not be mapped yet.
Extent own_stack();
// The same where libc may hold a lock that own_stack() would wait for: its pthread_getattr_np
// allocates with the thread's lock held. By the mapping in which the thread's control block lies,
// at the end of the stack; that may reach further down. Empty for a main thread, which needs no
// lock, and where the caller runs elsewhere.
Extent own_stack_by_mapping();
// Where the main thread's stack begins (its highest address), wherever the call comes from.
char* main_stack_high();
// The bytes from low to high on a stack; of the main thread's only up to its first frame, which the
// kernel puts anywhere in a page, so that the same program counts the same in every run.
std::size_t stack_bytes(const void* low, const void* high);

// The alternate signal stack on which the caller runs; low null if it runs on none.
// Async-signal-safe.
Extent active_alternate_stack();
// From the third argument of a signal's handler: the stack pointer that the signal interrupted, and
// the thread's alternate stack as it was then, in use or not; low null if there was none.
char* interrupted_stack_pointer(const void* signal_context);
Extent alternate_stack_at(const void* signal_context);

// The calling thread's control block: what thread_local_block() wants.
void* own_thread_control_block();
// The memory of loaded module `module`'s thread-local variables in a thread given by its control
// block, or null if that thread has none yet. The thread must be the caller or be stopped.
// glibc's layout: the control block's second word (x86-64; first on AArch64) is the dynamic
// thread vector, whose entry of 16 bytes begins with the block's address; entry -1 counts them.
void* thread_local_block(void* control_block, std::size_t module);
// The same while that thread runs, when nothing read there can be trusted: never faults, and a
// result must be tried before it is used. A copy, so that the blocks of all modules cost two
// questions to the system as a rule.
class ThreadLocalBlocks {
 public:
  // Of a thread given by its control block, for modules up to this one.
  ThreadLocalBlocks(const void* control_block, std::size_t last_module);
  [[nodiscard]] void* of_module(std::size_t module) const;

  struct Entry {  // as glibc has it
    std::uintptr_t block;
    std::uintptr_t to_free;
  };

 private:
  static constexpr std::size_t kCopied = 32;  // the rest is read one by one; a guess

  bool copy(const void* const* vector_word, std::size_t wanted);

  const Entry* vector_ = nullptr;
  std::size_t count_ = 0;   // of the vector's entries, as it says
  std::size_t copied_ = 0;  // those that are here
  Entry entries_[kCopied];
};

// Where glibc puts a thread's static thread-local storage: that of the libraries loaded at the
// start, and some room for those loaded later that want theirs there (initial-exec, and what
// AArch64's compilers make). The latter have no entry in the vector until somebody asks for one.
// Both null if its size is not known.
Extent static_thread_locals(void* control_block);

// Makes a thread, in which all signals are blocked, with a stack of its own of that size and a name
// (at most 15 characters) for debuggers and `top -H`. It is to be joined by what it is called in
// *to_join, or is detached. `guard`: bytes of the stack, at its low end, that fault; 0: a page.
// False if the system refuses. Allocates, with the C library's allocator.
bool start_thread(void* (*function)(void*), void* argument, std::size_t stack_size,
                  const char* name, pthread_t* to_join = nullptr, std::size_t guard = 0);
void join_thread(pthread_t thread);

// NoRoom: real-time signals are queued, and the user's queue is full (ulimit -i). It may be so for
// ever. Signals below them are sent without a place in it.
enum class Signalled : unsigned char { Sent, ThreadGone, NoRoom, Refused };
// Sends a signal to one thread of this process; signal 0 only asks whether it is there.
Signalled signal_thread(int thread, int signal);
// The same for who signals many, and has asked for process_id() once.
Signalled signal_thread(int process, int thread, int signal);
// True if the thread (of this process) runs no more. Signal 0 alone can't tell that of a main
// thread which has ended before others.
bool thread_has_ended(int thread);
// For a handler of ours: by the ABI it finds the stack aligned, but qemu-user (7.2) enters it as it
// comes.
#if defined(__x86_64__)
#define JD_SIGNAL_HANDLER [[gnu::force_align_arg_pointer]]
#else
#define JD_SIGNAL_HANDLER
#endif
// What a handler of ours calls is async-signal-safe and keeps errno (os.req.handler).
// Installs a handler with SA_SIGINFO and SA_RESTART; every other signal stays as it is. False if
// the system refuses. Meanwhile the thread blocks all signals, or all but SIGSEGV: where that is
// blocked, a fault kills without asking its handler. It runs on the stack that it interrupts, or,
// where the thread has an alternate one, on that: which may have room for little more than the
// signal's frame.
enum class Faults : unsigned char { Blocked, Open };
enum class RunsOn : unsigned char { Interrupted, Alternate };
bool install_handler(int signal, void (*handler)(int, siginfo_t*, void*),
                     Faults faults = Faults::Blocked, RunsOn stack = RunsOn::Interrupted);
// The signals that the calling thread blocks.
sigset_t blocked_signals();
// Lets all come to it that are not among these.
void unblock_signals_but(const sigset_t& kept);
// Lets the signal come to the calling thread. True if it was blocked.
bool unblock_signal(int signal);
// Lets it come for as long as this lives; then the mask is as it was.
class SignalOpening {
 public:
  explicit SignalOpening(int signal) : signal_(signal), was_blocked_(unblock_signal(signal)) {}
  ~SignalOpening();
  SignalOpening(const SignalOpening&) = delete;
  SignalOpening& operator=(const SignalOpening&) = delete;

 private:
  int signal_;
  bool was_blocked_;
};
// What the signal does now: what install_handler had it do, nothing, or something else.
enum class SignalEffect { Handled, Ignored, Another };
SignalEffect effect_of_signal(int signal, void (*handler)(int, siginfo_t*, void*));
// Where a signal is that `thread` (of this process) was sent: held back by the thread's mask, or
// taken, so that its handler has begun and holds others back. NotKnown, too, for want of /proc.
enum class SignalWait { NotKnown, Blocked, Taken };
SignalWait why_signal_waits(int thread, int signal);

// Blocks all signals for its lifetime, so that no handler of the client's runs meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace jd::os

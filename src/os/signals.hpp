// Signals: to single threads, their handlers, what threads block, and the stacks that handlers run
// on.
#pragma once

#include <signal.h>

#include "os/extent.hpp"

namespace jd::os {

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

// The alternate signal stack on which the caller runs; low null if it runs on none.
// Async-signal-safe.
Extent active_alternate_stack();
// From the third argument of a signal's handler: the stack pointer that the signal interrupted, and
// the thread's alternate stack as it was then, in use or not; low null if there was none.
char* interrupted_stack_pointer(const void* signal_context);
Extent alternate_stack_at(const void* signal_context);

}  // namespace jd::os

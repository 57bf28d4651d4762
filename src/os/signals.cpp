#include "os/signals.hpp"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/kept_errno.hpp"
#include "os/libc_signals.hpp"
#include "os/thread.hpp"

namespace jd::os {
namespace {

// Calls visit(text behind the label) for a thread's line of that label in /proc.
template <class Visit>
void read_status(int thread, const char* label, Visit visit) {
  base::Text path;
  path.add("/proc/self/task/", thread).add("/status");
  for_each_line(path.c_str(), [&](const char* line) {
    const char* rest = base::after(line, label);
    if (rest != nullptr) visit(rest);
    return rest == nullptr;
  });
}

}  // namespace

Signalled signal_thread(int thread, int signal) {
  return signal_thread(process_id(), thread, signal);
}

Signalled signal_thread(int process, int thread, int signal) {
  const KeptErrno kept;
  if (syscall(SYS_tgkill, process, thread, signal) == 0) return Signalled::Sent;
  if (errno == ESRCH) return Signalled::ThreadGone;
  return errno == EAGAIN ? Signalled::NoRoom : Signalled::Refused;
}

bool thread_has_ended(int thread) {
  if (signal_thread(thread, 0) == Signalled::ThreadGone) return true;
  // Others than the main thread leave nothing behind that could be signalled.
  if (thread != process_id()) return false;
  bool ended = false;
  read_status(thread, "State:\t",
              [&](const char* state) { ended = *state == 'Z' || *state == 'X'; });
  return ended;
}

bool install_handler(int signal, void (*handler)(int, siginfo_t*, void*), Faults faults,
                     RunsOn stack) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (stack == RunsOn::Alternate) action.sa_flags |= SA_ONSTACK;
  // While a thread is stopped no other handler of the client's may run in it, nor may it end.
  action.sa_mask = all_signals();
  if (faults == Faults::Open) sigdelset(&action.sa_mask, SIGSEGV);
  return change_action(signal, &action, nullptr) == 0;
}

namespace {

// Changes the calling thread's mask by one signal. True if it was blocked.
bool change_mask(int how, int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigset_t before;
  return change_signal_mask(how, &set, &before) == 0 && sigismember(&before, signal) == 1;
}

}  // namespace

sigset_t blocked_signals() {
  sigset_t mask;
  change_signal_mask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

void unblock_signals_but(const sigset_t& kept) {
  sigset_t opened;
  sigemptyset(&opened);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&kept, signal) == 0) sigaddset(&opened, signal);
  }
  change_signal_mask(SIG_UNBLOCK, &opened, nullptr);
}

bool unblock_signal(int signal) { return change_mask(SIG_UNBLOCK, signal); }

SignalOpening::~SignalOpening() {
  if (was_blocked_) change_mask(SIG_BLOCK, signal_);
}

SignalEffect effect_of_signal(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  if (change_action(signal, nullptr, &action) != 0) return SignalEffect::Another;
  if ((action.sa_flags & SA_SIGINFO) == 0) {
    return action.sa_handler == SIG_IGN ? SignalEffect::Ignored : SignalEffect::Another;
  }
  return action.sa_sigaction == handler ? SignalEffect::Handled : SignalEffect::Another;
}

SignalWait why_signal_waits(int thread, int signal) {
  const auto has_signal = [thread, signal](const char* set) {
    base::Word mask = 0;
    read_status(thread, set, [&](const char* digits) { parse_hex(digits, &mask); });
    return ((mask >> (signal - 1)) & 1) != 0;
  };
  if (!has_signal("SigBlk:\t")) return SignalWait::NotKnown;
  return has_signal("SigPnd:\t") ? SignalWait::Blocked : SignalWait::Taken;
}

SignalsBlocked::SignalsBlocked() {
  const sigset_t all = all_signals();
  change_whole_mask(SIG_BLOCK, &all, &saved_);
}

SignalsBlocked::~SignalsBlocked() { change_whole_mask(SIG_SETMASK, &saved_, nullptr); }

Extent active_alternate_stack() {
  Extent bounds;
  stack_t current{};
  const KeptErrno kept;
  if (change_alternate_stack(nullptr, &current) == 0 && (current.ss_flags & SS_ONSTACK) != 0) {
    bounds.low = static_cast<char*>(current.ss_sp);
    bounds.high = bounds.low + current.ss_size;
  }
  return bounds;
}

char* interrupted_stack_pointer(const void* signal_context) {
  const auto& machine = static_cast<const ucontext_t*>(signal_context)->uc_mcontext;
#if defined(__x86_64__)
  return base::as_pointer(static_cast<base::Word>(machine.gregs[REG_RSP]));
#else
  return base::as_pointer(static_cast<base::Word>(machine.sp));
#endif
}

// Not by sigaltstack(): what was set with SS_AUTODISARM is none as long as a handler runs there.
Extent alternate_stack_at(const void* signal_context) {
  const stack_t& stack = static_cast<const ucontext_t*>(signal_context)->uc_stack;
  if ((stack.ss_flags & SS_DISABLE) != 0) return {};
  auto* const low = static_cast<char*>(stack.ss_sp);
  return {low, low + stack.ss_size};
}

}  // namespace jd::os

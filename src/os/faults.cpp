#include "os/faults.hpp"

#include <signal.h>

#include "base/bits.hpp"
#include "os/context.hpp"
#include "os/kept_errno.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"

namespace jd::os {
namespace {

constexpr int kSignal = SIGSEGV;
constexpr int kStackPointer = 7;  // among the interrupted registers

// Written once, before the handler is installed, and then only read, by the handler in any thread:
// no signal finds it before the system call that installs it.
void (*look)(const Fault&) = nullptr;
struct sigaction earlier {};

void restore_default() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(kSignal, &action, nullptr);
}

// As the kernel would have had it without us.
void forward(siginfo_t* info, void* context) {
  const bool was_sent = info->si_code <= 0;  // by kill(), say
  const bool takes_info = (earlier.sa_flags & SA_SIGINFO) != 0;
  if (!takes_info && earlier.sa_handler == SIG_IGN && was_sent) return;
  if (!takes_info && (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN)) {
    restore_default();
    // Otherwise the instruction faults again.
    if (was_sent || info->si_code == SI_KERNEL) signal_thread(thread_id(), kSignal);
    return;
  }
  if ((earlier.sa_flags & SA_RESETHAND) != 0) restore_default();
  if (takes_info) {
    earlier.sa_sigaction(kSignal, info, context);
  } else {
    earlier.sa_handler(kSignal);
  }
}

JD_SIGNAL_HANDLER void on_fault(int, siginfo_t* info, void* context) {
  if (info->si_code > 0) {
    const KeptErrno kept;
    Fault fault{};
    fault.address_is_missing = info->si_code == SI_KERNEL;
    if (!fault.address_is_missing) fault.address = static_cast<const char*>(info->si_addr);
    unsigned long registers[kContextRegisters];
    if (interrupted_registers(context, &registers)) {
      fault.stack_top = static_cast<const char*>(base::as_pointer(registers[kStackPointer]));
    }
    look(fault);
  }
  forward(info, context);
}

}  // namespace

bool watch_faults(void (*function)(const Fault&)) {
  if (sigaction(kSignal, nullptr, &earlier) != 0) return false;
  look = function;
  struct sigaction action {};
  const bool has_handler = (earlier.sa_flags & SA_SIGINFO) != 0 ||
                           (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN);
  if (has_handler) {
    action.sa_mask = earlier.sa_mask;
    action.sa_flags = earlier.sa_flags & ~SA_RESETHAND;
  }
  action.sa_sigaction = on_fault;
  action.sa_flags |= SA_SIGINFO | SA_ONSTACK;
  return sigaction(kSignal, &action, nullptr) == 0;
}

void use_alternate_stack(void* memory, std::size_t size) {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0) return;
  if (memory != nullptr && (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {};
  stack.ss_sp = memory;
  stack.ss_size = size;
  stack.ss_flags = memory == nullptr ? SS_DISABLE : 0;
  sigaltstack(&stack, nullptr);
}

}  // namespace jd::os

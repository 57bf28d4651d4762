// Reach libc's own signal functions even where this library interposes pthread_sigmask, sigaction
// and sigaltstack (src/malloc/interpose.cpp). The interposers pass the program's calls on by these;
// the collector makes its own calls by them. (The handler and the alternate stacks of tasks are set
// as the program's own are, in faults.cpp: beside malloc mode its interposers are to know of them.)
// Errors as of the function that each stands for.
#pragma once

#include <signal.h>

namespace jd::os {

// pthread_sigmask.
int change_signal_mask(int how, const sigset_t* set, sigset_t* old);
// The same, but for what libc keeps out of every mask: its signals may be among these.
int change_whole_mask(int how, const sigset_t* set, sigset_t* old);
// All signals, libc's for cancellation among them: a thread would else be cancelled in the midst of
// a handler that interrupted a call like read(), where libc has it cancellable at any instruction.
// But not libc's for setuid(), for which others wait.
sigset_t all_signals();
// sigaction.
int change_action(int signal, const struct sigaction* action, struct sigaction* old);
// sigaltstack.
int change_alternate_stack(const stack_t* stack, stack_t* old);

}  // namespace jd::os

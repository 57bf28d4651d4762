// libc's functions about signals, for a library that may stand before those of these names: for
// what a program's own calls come to there, and for ours, which must not go through it. As those,
// they set errno or return it.
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

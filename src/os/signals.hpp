// libc's functions about signals, for a library that may stand before those of these names: for
// what a program's own calls come to there, and for ours, which must not go through it. As those,
// they set errno or return it.
#pragma once

#include <signal.h>

namespace jd::os {

// pthread_sigmask.
int change_signal_mask(int how, const sigset_t* set, sigset_t* old);
// sigaction.
int change_action(int signal, const struct sigaction* action, struct sigaction* old);
// sigaltstack.
int change_alternate_stack(const stack_t* stack, stack_t* old);

}  // namespace jd::os

// What this process does about signals, and what the programs that it starts must not see of that.
#pragma once

#include <signal.h>

namespace jackdaw {

// To be called first. A file that is too large (ulimit -f) is an error from then on, not an end by
// SIGXFSZ; and a child can be waited for, though whoever started us ignored SIGCHLD.
void prepare_signals();
// In a child, before it executes a program: both as they were.
void restore_signals();

// SIGINT ignored by nohup, say: it is not meant for us. (Blocked signals come all the same.)
bool is_ignored(int signal);

// Signals that mean something to the program and not to us: all, but those of the terminal that
// stop whoever uses it in the background. SIGSTOP and SIGKILL cannot be had; a fault of our own
// ends this process though its signal is blocked.
sigset_t passed_signals();

// As long as one exists, the passed signals, but for SIGPIPE, wait for the next run() or for its
// end: none ends us with files left that the way out would remove. Nothing in between may wait for
// anything else. They nest.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // The mask for programs: `now`, or what it was before they were held.
  static sigset_t mask_of_programs(const sigset_t& now);

 private:
  sigset_t before_;
  const sigset_t* outer_;
};

// Stops this process as the terminal's key does: not where nobody is there to continue it. Pre:
// SIGTSTP is blocked.
void stop_by_terminal();

}  // namespace jackdaw

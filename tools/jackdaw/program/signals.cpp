#include "program/signals.hpp"

#include <cstdio>
#include <initializer_list>

namespace jackdaw {
namespace {

struct Kept {
  int signal;
  struct sigaction before;
};
Kept kept[] = {{SIGCHLD, {}}, {SIGXFSZ, {}}};

const sigset_t* held = nullptr;  // the mask before the outermost

}  // namespace

void prepare_signals() {
  for (Kept& k : kept) {
    struct sigaction action {};
    action.sa_handler = k.signal == SIGCHLD ? SIG_DFL : SIG_IGN;
    sigaction(k.signal, &action, &k.before);
  }
}

void restore_signals() {
  for (const Kept& k : kept) sigaction(k.signal, &k.before, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t passed_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int s : {SIGKILL, SIGSTOP, SIGTTIN, SIGTTOU}) sigdelset(&set, s);
  return set;
}

HeldSignals::HeldSignals() : outer_(held) {
  sigset_t set = passed_signals();
  sigdelset(&set, SIGPIPE);  // our own: nobody reads what we write
  sigprocmask(SIG_BLOCK, &set, &before_);
  if (held == nullptr) held = &before_;
}

HeldSignals::~HeldSignals() {
  held = outer_;
  // One that waits may end us here.
  std::fflush(nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

sigset_t HeldSignals::mask_of_programs(const sigset_t& now) {
  return held != nullptr ? *held : now;
}

void stop_by_terminal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace jackdaw

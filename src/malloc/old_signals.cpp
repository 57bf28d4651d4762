// malloc.req.signals, for the functions of BSD and System V: libc's own call its inner ones, past
// what interpose.cpp stands before. Here they are made of that.
#include <errno.h>
#include <signal.h>

#define JD_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

// BSD's sets: a bit for each of the first 32 signals.
constexpr int kMaskSignals = 32;

sigset_t set_of(int mask) {
  sigset_t set;
  sigemptyset(&set);
  for (int number = 1; number <= kMaskSignals; ++number) {
    if ((static_cast<unsigned>(mask) >> (number - 1) & 1) != 0) sigaddset(&set, number);
  }
  return set;
}

int mask_of(const sigset_t& set) {
  unsigned mask = 0;
  for (int number = 1; number <= kMaskSignals; ++number) {
    if (sigismember(&set, number) == 1) mask |= 1u << (number - 1);
  }
  return static_cast<int>(mask);
}

// The mask before; -1 if the system refuses.
int change_mask(int how, int mask) {
  const sigset_t set = set_of(mask);
  sigset_t old;
  return sigprocmask(how, &set, &old) == 0 ? mask_of(old) : -1;
}

// Blocks or unblocks one signal. -1 with EINVAL if there is none of this number.
int change_one(int how, int number, sigset_t* old) {
  sigset_t set;
  sigemptyset(&set);
  if (sigaddset(&set, number) != 0) return -1;
  return sigprocmask(how, &set, old);
}

// The handler before.
sighandler_t set_handler(int number, sighandler_t handler, int flags) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

}  // namespace

JD_EXPORT int sigblock(int mask) { return change_mask(SIG_BLOCK, mask); }
JD_EXPORT int sigsetmask(int mask) { return change_mask(SIG_SETMASK, mask); }

JD_EXPORT int sighold(int number) { return change_one(SIG_BLOCK, number, nullptr); }
JD_EXPORT int sigrelse(int number) { return change_one(SIG_UNBLOCK, number, nullptr); }
JD_EXPORT int sigignore(int number) { return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0; }

JD_EXPORT sighandler_t sigset(int number, sighandler_t disposition) {
  sigset_t before;
  if (disposition == SIG_HOLD) {
    if (change_one(SIG_BLOCK, number, &before) != 0) return SIG_ERR;
    if (sigismember(&before, number) == 1) return SIG_HOLD;
    struct sigaction old = {};
    return sigaction(number, nullptr, &old) == 0 ? old.sa_handler : SIG_ERR;
  }
  const sighandler_t old = set_handler(number, disposition, 0);
  if (old == SIG_ERR || change_one(SIG_UNBLOCK, number, &before) != 0) return SIG_ERR;
  return sigismember(&before, number) == 1 ? SIG_HOLD : old;
}

// What `signal` is where a program is compiled for nothing but System V or ISO C.
// NOLINTBEGIN(bugprone-reserved-identifier)
JD_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) {
  constexpr int kInterrupt = 0x20000000;  // SA_INTERRUPT, which the kernel passes over
  return set_handler(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER | kInterrupt);
}
// NOLINTEND(bugprone-reserved-identifier)
JD_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler) {
  return __sysv_signal(number, handler);
}
JD_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) {
  return signal(number, handler);
}
JD_EXPORT sighandler_t ssignal(int number, sighandler_t handler) { return signal(number, handler); }

// One name of the header's for two functions: X/Open's takes a signal, BSD's a mask.
extern "C" [[gnu::visibility("default")]] int jd_bsd_sigpause(int mask) asm("sigpause");
int jd_bsd_sigpause(int mask) {
  const sigset_t set = set_of(mask);
  return sigsuspend(&set);
}
extern "C" [[gnu::visibility("default")]] int jd_xpg_sigpause(int number) asm("__xpg_sigpause");
int jd_xpg_sigpause(int number) {
  sigset_t set;
  if (sigprocmask(SIG_BLOCK, nullptr, &set) != 0 || sigdelset(&set, number) != 0) return -1;
  return sigsuspend(&set);
}

#include "os/libc_signals.hpp"
#include "os/kept_errno.hpp"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

// libc's own name for it, which nobody stands before.
extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);

namespace jd::os {
namespace {

// libc keeps its two signals, for cancellation and setuid(), out of every mask.
constexpr int kFirstOfLibc = 32;
constexpr unsigned long kOfLibc = 3ul << (kFirstOfLibc - 1);
constexpr unsigned long kForSetuid = 2ul << (kFirstOfLibc - 1);

// The kernel's sets are a word long.
constexpr unsigned long kSetBytes = 8;

}  // namespace

#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer wants to know of both; nothing stands before libc's functions there.
int change_signal_mask(int how, const sigset_t* set, sigset_t* old) {
  return pthread_sigmask(how, set, old);
}
int change_whole_mask(int how, const sigset_t* set, sigset_t* old) {
  return pthread_sigmask(how, set, old);
}
int change_action(int signal, const struct sigaction* action, struct sigaction* old) {
  return sigaction(signal, action, old);
}
#else
int change_whole_mask(int how, const sigset_t* set, sigset_t* old) {
  const KeptErrno kept;
  return syscall(SYS_rt_sigprocmask, how, set, old, kSetBytes) == 0 ? 0 : errno;
}
int change_signal_mask(int how, const sigset_t* set, sigset_t* old) {
  if (set == nullptr) return change_whole_mask(how, nullptr, old);
  unsigned long mask = 0;
  __builtin_memcpy(&mask, set, sizeof mask);
  mask &= ~kOfLibc;
  sigset_t programs;
  sigemptyset(&programs);
  __builtin_memcpy(&programs, &mask, sizeof mask);
  return change_whole_mask(how, &programs, old);
}

int change_action(int signal, const struct sigaction* action, struct sigaction* old) {
  return __sigaction(signal, action, old);
}
#endif

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  const unsigned long mask = ~kForSetuid;
  __builtin_memcpy(&all, &mask, sizeof mask);
  return all;
}

int change_alternate_stack(const stack_t* stack, stack_t* old) {
  return static_cast<int>(syscall(SYS_sigaltstack, stack, old));
}

}  // namespace jd::os

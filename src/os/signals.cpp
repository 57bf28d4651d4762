#include "os/signals.hpp"

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

// The kernel's sets are a word long.
constexpr unsigned long kSetBytes = 8;

}  // namespace

#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer wants to know of both; nothing stands before libc's functions there.
int change_signal_mask(int how, const sigset_t* set, sigset_t* old) {
  return pthread_sigmask(how, set, old);
}
int change_action(int signal, const struct sigaction* action, struct sigaction* old) {
  return sigaction(signal, action, old);
}
#else
int change_signal_mask(int how, const sigset_t* set, sigset_t* old) {
  const int saved = errno;
  unsigned long mask = 0;
  if (set != nullptr) {
    __builtin_memcpy(&mask, set, sizeof mask);
    mask &= ~kOfLibc;
  }
  const long result =
      syscall(SYS_rt_sigprocmask, how, set != nullptr ? &mask : nullptr, old, kSetBytes);
  const int error = result == 0 ? 0 : errno;
  errno = saved;
  return error;
}

int change_action(int signal, const struct sigaction* action, struct sigaction* old) {
  return __sigaction(signal, action, old);
}
#endif

int change_alternate_stack(const stack_t* stack, stack_t* old) {
  return static_cast<int>(syscall(SYS_sigaltstack, stack, old));
}

}  // namespace jd::os

#include "os/futex.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace jd::os {

bool futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t expected,
                std::uint64_t nanoseconds) {
  const int saved = errno;
  timespec timeout{};
  timespec* limit = nullptr;
  if (nanoseconds != kForever) {
    timeout.tv_sec = static_cast<time_t>(nanoseconds / 1000000000u);
    timeout.tv_nsec = static_cast<long>(nanoseconds % 1000000000u);
    limit = &timeout;
  }
  const long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, limit, nullptr, 0);
  const bool timed_out = result != 0 && errno == ETIMEDOUT;
  errno = saved;
  return !timed_out;
}

void futex_wake(std::atomic<std::uint32_t>* word, int count) {
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
  errno = saved;
}

}  // namespace jd::os

#include "os/futex.hpp"
#include "os/kept_errno.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace jd::os {
namespace {

#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer keeps a signal back until the thread calls into it, and a bare system call is no
// such call: a thread that waits here would never be stopped. So no wait is longer than this, and
// each ends with an access that ThreadSanitizer sees (this file is instrumented,
// src/CMakeLists.txt).
constexpr std::uint64_t kLongestWait = 1000000;  // 1 ms
#else
constexpr std::uint64_t kLongestWait = kForever;
#endif

}  // namespace

bool futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t expected, std::uint64_t nanoseconds,
                bool* interrupted) {
  const KeptErrno kept;
  timespec timeout{};
  timespec* limit = nullptr;
  const bool cut_short = nanoseconds > kLongestWait;
  if (cut_short) nanoseconds = kLongestWait;
  if (nanoseconds != kForever) {
    timeout.tv_sec = static_cast<time_t>(nanoseconds / 1000000000u);
    timeout.tv_nsec = static_cast<long>(nanoseconds % 1000000000u);
    limit = &timeout;
  }
  const long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, limit, nullptr, 0);
  const bool timed_out = result != 0 && errno == ETIMEDOUT;
  if (interrupted != nullptr) *interrupted = result != 0 && errno == EINTR;
#if defined(JD_SANITIZE_THREAD)
  static_cast<void>(word->load(std::memory_order_relaxed));
#endif
  return cut_short || !timed_out;
}

int futex_wake(std::atomic<std::uint32_t>* word, int count) {
  const KeptErrno kept;
  const long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<int>(woken) : 0;
}

}  // namespace jd::os

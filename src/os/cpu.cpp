#include "os/cpu.hpp"

#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>

#include "base/bits.hpp"
#include "os/futex.hpp"
#include "os/kept_errno.hpp"

namespace jd::os {
namespace {

// 0 until asked. Written by whoever asks first, and by the start of the runtime; read by everybody
// (relaxed: all writers but the start write the same value).
std::atomic<unsigned> known_cpus{0};

unsigned allowed_cpus() {
  // The kernel fills no set that is shorter than its own; cpu_set_t has 1024, which it may pass.
  constexpr std::size_t kMostCpus = 8192;
  constexpr std::size_t kPerWord = 8 * sizeof(unsigned long);
  unsigned long set[kMostCpus / kPerWord] = {};
  const KeptErrno kept;
  unsigned count = 0;
  if (syscall(SYS_sched_getaffinity, 0, sizeof set, set) > 0) {
    for (const unsigned long word : set) count += static_cast<unsigned>(__builtin_popcountl(word));
  }
  return count != 0 ? count : 1;
}

}  // namespace

unsigned cpu_count() {
  unsigned count = known_cpus.load(std::memory_order_relaxed);
  if (count == 0) {
    count = base::min_of(allowed_cpus(), cpu_quota());
    known_cpus.store(count, std::memory_order_relaxed);
  }
  return count;
}

void set_cpu_count(unsigned count) { known_cpus.store(count, std::memory_order_relaxed); }

unsigned cpu_quota(const GroupFiles& files) {
  std::size_t cpus = UINT_MAX;
  for_each_own_group(files, "cpu", [&](const Group& group) {
    std::size_t time[2] = {0, 0};
    if (group.unified) {
      if (group.numbers("cpu.max", time, 2) != 2) return;
    } else {
      // A quota of -1 is none.
      time[0] = group.number("cpu.cfs_quota_us");
      time[1] = group.number("cpu.cfs_period_us");
      if (time[0] == SIZE_MAX || time[1] == SIZE_MAX) return;
    }
    if (time[0] == 0 || time[1] == 0) return;
    cpus = base::min_of(cpus, (time[0] - 1) / time[1] + 1);
  });
  return static_cast<unsigned>(cpus);
}

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

void yield() {
#if defined(JD_SANITIZE_THREAD)
  // Signals wait in ThreadSanitizer for an access that it sees (futex.cpp): a thread that yields
  // until another comes on would never be stopped, while that one stands in the stop already.
  static std::atomic<std::uint32_t> nothing{0};
  futex_wait(&nothing, 0, 1000);
#else
  sched_yield();
#endif
}

void sleep_ns(std::uint64_t nanoseconds) {
  const KeptErrno kept;
  timespec t{};
  t.tv_sec = static_cast<time_t>(nanoseconds / 1000000000u);
  t.tv_nsec = static_cast<long>(nanoseconds % 1000000000u);
  // The bare calls are no cancellation points (files.cpp).
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, nullptr);
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  const KeptErrno kept;
  const long size = syscall(SYS_getrandom, &bits, sizeof bits, GRND_NONBLOCK);
  return size == sizeof bits ? bits : now_ns();
}

bool has_shadow_stack() {
#if defined(__x86_64__)
  // Where there is none this instruction does nothing.
  std::uint64_t pointer = 0;
  asm volatile("rdsspq %0" : "+r"(pointer));
  return pointer != 0;
#else
  return false;
#endif
}

bool under_valgrind() {
#if defined(__x86_64__)
  // Valgrind's client request "running on valgrind": it knows these rotations, which together do
  // nothing, and what follows them.
  constexpr std::uint64_t kRunningOnValgrind = 0x1001;
  const volatile std::uint64_t request[6] = {kRunningOnValgrind, 0, 0, 0, 0, 0};
  std::uint64_t answer = 0;
  asm volatile(
      "rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(answer)
      : "a"(&request[0])
      : "cc", "memory");
  return answer != 0;
#else
  return false;
#endif
}

}  // namespace jd::os

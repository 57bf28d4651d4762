#include "os/cpu.hpp"

#include <errno.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace jd::os {
namespace {

// 0 until asked. Written by whoever asks first; all writers write the same value.
unsigned known_cpus = 0;

}  // namespace

unsigned cpu_count() {
  if (known_cpus == 0) {
    cpu_set_t set;
    const int saved = errno;
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    errno = saved;
    known_cpus = known && CPU_COUNT(&set) > 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
  }
  return known_cpus;
}

void set_cpu_count(unsigned count) { known_cpus = count; }

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

void sleep_ns(std::uint64_t nanoseconds) {
  const int saved = errno;
  timespec t{};
  t.tv_sec = static_cast<time_t>(nanoseconds / 1000000000u);
  t.tv_nsec = static_cast<long>(nanoseconds % 1000000000u);
  // The bare calls are no cancellation points (files.cpp).
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, nullptr);
  errno = saved;
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  const int saved = errno;
  const long size = syscall(SYS_getrandom, &bits, sizeof bits, GRND_NONBLOCK);
  errno = saved;
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

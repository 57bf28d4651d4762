// What locks and exchanges are made of: atomic words, waiting in the kernel, pausing. What is built
// of them is a template over it, so that tests can run it on a scheduler of their own that tries
// every interleaving (tests/support/interleaving.hpp).
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>

#include "base/sharing.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"

#if defined(JD_SANITIZE_THREAD)
// ThreadSanitizer does not see the atomics of files that are compiled without it
// (src/CMakeLists.txt), nor those of a thread that was cancelled in a call of libc's. So the lock
// says which order it makes.
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace jd::os {

// The machine's own.
struct Machine {
  template <class T>
  using Atomic = std::atomic<T>;

  // futex_wait and futex_wake.
  static bool wait(Atomic<std::uint32_t>* word, std::uint32_t expected,
                   std::uint64_t nanoseconds = kForever) {
    return futex_wait(word, expected, nanoseconds);
  }
  // The same for a wait that may be long, for a lock, or for what other threads do: the collector
  // can stop the thread meanwhile, whatever signals it blocks (lock.cpp).
  static bool wait_stoppably(Atomic<std::uint32_t>* word, std::uint32_t expected,
                             std::uint64_t nanoseconds);
  static int wake(Atomic<std::uint32_t>* word, int count) { return futex_wake(word, count); }

  // Is there no other thread, so that a word can be changed in two steps? libc knows of all that
  // can call it. As long as this thread makes none, none comes.
  static bool is_alone() { return __libc_single_threaded != 0; }

  // How often to look before sleeping, where `most` is worth while. A single processor never spins:
  // whoever is waited for can't run meanwhile.
  static unsigned looks(unsigned most) { return cpu_count() > 1 ? most : 0; }
  static void pause() { cpu_relax(); }
  static std::uint64_t now() { return now_ns(); }

#if defined(JD_SANITIZE_THREAD)
  static void tell_acquired(void* lock) { __tsan_acquire(lock); }
  static void tell_released(void* lock) { __tsan_release(lock); }
#else
  static void tell_acquired(void* lock) { base::note_lock(lock); }
  static void tell_released(void*) {}
#endif
  static void tell_waiting(void* lock) { base::note_lock_wait(lock); }
  // Before each atomic read-modify-write of a word that is no lock's.
  static void tell_atomic(const void* word) { base::note_atomic(word); }
};

}  // namespace jd::os

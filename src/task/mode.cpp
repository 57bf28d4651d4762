#include "task/mode.hpp"

#include <atomic>

#include "os/cpu.hpp"
#include "os/log.hpp"
#include "task/machine.hpp"
#include "task/unwind.hpp"
#include "task/victim.hpp"

// Defined where a sanitizer's run-time is loaded. SafeStack's is part of the program, whose linker
// exports what a library names.
extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void __msan_init();
[[gnu::weak]] void __safestack_init();
}

namespace jd::task {
bool is_sanitized() {
  return &__asan_init != nullptr || &__tsan_init != nullptr || &__msan_init != nullptr;
}

void warn_of_blind_tools() {
#if !defined(JD_SANITIZE_THREAD)
  if (&__tsan_init == nullptr) return;
  os::warn(
      "ThreadSanitizer is there, but this library was built without it: it will report races "
      "between tasks that are none. Link with a build of the tsan preset");
#endif
}

// task.req.fall-back: a sanitizer keeps a shadow of each stack, valgrind an idea of where each
// ends, and a processor with shadow stacks the return addresses themselves. Code for clang's
// SafeStack has part of each frame on a second stack of its thread's, where it can't go on in
// another.
bool mode_is_possible(jd_task_mode mode) {
  if (mode == JD_TASK_DEQUE) return true;
  if (!has_signal_to_steal()) return false;
  // By any thread, each of which finds the same (relaxed).
  enum : std::uint8_t { Unknown, Possible, Impossible };
  static std::atomic<std::uint8_t> known{Unknown};
  if (known.load(std::memory_order_relaxed) == Unknown) {
    const bool possible = JD_TASK_STACKS != 0 && !is_sanitized() && &__safestack_init == nullptr &&
                          !os::under_valgrind() && !os::has_shadow_stack() &&
                          unwinding_is_possible();
    known.store(possible ? Possible : Impossible, std::memory_order_relaxed);
  }
  return known.load(std::memory_order_relaxed) == Possible;
}

}  // namespace jd::task

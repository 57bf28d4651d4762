// A function that goes on in another worker finds that one's thread-local words, not those of the
// worker in which it began: where it allocates, and in its forks and polls.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "jackdaw/heap.h"
#include "jackdaw/task.hpp"

namespace {

constexpr std::size_t kBytes = 32;

void spin(int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Each by a function of its own, which looks everything up.
[[gnu::noinline]] char* new_elsewhere(const jd_layout* layout) {
  return static_cast<char*>(jd_new(layout));
}
[[gnu::noinline]] bool is_direct_elsewhere() { return jd_task_is_direct() != 0; }

enum Outcome { kRight, kDidNotMove, kAnothersHole, kAnothersWord };

[[gnu::noinline]] Outcome go_on_elsewhere(const jd_layout* layout, int tries) {
  auto* const first = static_cast<char*>(jd_new(layout));
  const bool direct = jd_task_is_direct() != 0;
  jd_task_poll();
  const pid_t thread = gettid();
  for (int i = 0; i < tries && gettid() == thread; ++i) {
    // The thief comes last, and goes on with the function.
    jd::par([] { spin(1); }, [] { spin(5); });
  }
  if (gettid() == thread) return kDidNotMove;
  Outcome outcome = kRight;
  for (int i = 0; i < 10; ++i) {
    // Several times: between the two a hole may have been used up, or a thief have asked.
    const char* const before = new_elsewhere(layout);
    const char* const here = static_cast<char*>(jd_new(layout));
    const bool is_own_hole = here == before + kBytes;
    const bool is_own_word = (jd_task_is_direct() != 0) == is_direct_elsewhere();
    if (is_own_hole && is_own_word) return kRight;
    outcome = is_own_hole ? kAnothersWord : kAnothersHole;
  }
  // They are still used.
  if (first == nullptr && direct) std::abort();
  return outcome;
}

}  // namespace

int main() {
  jd_layout_info info = {};
  info.name = "moved";
  info.size = kBytes;
  const jd_layout* const layout = jd_layout_define(&info);
  jd_task_start(2);
  // With deques, what forks goes on where it is.
  const bool moves = jd_task_get_mode() != JD_TASK_DEQUE;
  // A loaded machine may let no thief come for long.
  const int tries = moves ? 1000 : 20;
  const Outcome outcome = jd::run([=] { return go_on_elsewhere(layout, tries); });
  const char* const texts[] = {"right", "did not move", "allocates from another thread's hole",
                               "reads another thread's word"};
  if (outcome == (moves ? kRight : kDidNotMove)) return 0;
  std::printf("a function that forks %s\n", texts[outcome]);
  return 1;
}

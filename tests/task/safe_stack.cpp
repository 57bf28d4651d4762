// For clang's -fsanitize=safe-stack (safe_stack_test.sh): forks whose frames lie in part on their
// thread's second stack. With tasks that go on in other threads this crashed, hung, or found
// another frame's contents.
#include <jackdaw/task.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace {

std::atomic<int> wrong{0};

// Elsewhere, so that what it fills must be in memory.
[[gnu::noinline]] void fill(char* bytes, std::size_t count, int with) {
  std::memset(bytes, with, count);
}
[[gnu::noinline]] bool is_filled(const char* bytes, std::size_t count, int with) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] != static_cast<char>(with)) return false;
  }
  return true;
}

long by_pairs(int n, int with) {
  char bytes[200];
  fill(bytes, sizeof bytes, with);
  if (n < 2) return n;
  const auto [x, y] = jd::par([=] { return by_pairs(n - 1, 2 * with + 1); },
                              [=] { return by_pairs(n - 2, 2 * with + 2); });
  if (!is_filled(bytes, sizeof bytes, with)) ++wrong;
  return x + y;
}

long by_scopes(int n, int with) {
  char bytes[200];
  fill(bytes, sizeof bytes, with);
  if (n < 2) return n;
  long x = 0;
  long y = 0;
  jd::scope scope;
  scope.fork([&] { x = by_scopes(n - 1, 2 * with + 1); });
  scope.fork([&] { y = by_scopes(n - 2, 2 * with + 2); });
  scope.join();
  if (!is_filled(bytes, sizeof bytes, with)) ++wrong;
  return x + y;
}

}  // namespace

int main() {
  if (jd_task_set_mode(JD_TASK_BARRIER) != 0 || jd_task_set_mode(JD_TASK_STOP) != 0 ||
      jd_task_get_mode() != JD_TASK_DEQUE) {
    std::printf("mode %d\n", static_cast<int>(jd_task_get_mode()));
    return 1;
  }
  jd_task_start(4);
  for (int i = 0; i < 5; ++i) {
    if (jd::run([] { return by_pairs(18, 1); }) != 2584) ++wrong;
    if (jd::run([] { return by_scopes(15, 1); }) != 610) ++wrong;
  }
  jd_task_stop();
  if (wrong.load() != 0) std::printf("%d frames or results are wrong\n", wrong.load());
  return wrong.load() == 0 ? 0 : 1;
}

// Threads of tests, known to the collector in each of the ways a client has.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace jd::test {

// A stack that is small, in bytes, and has room for what a test's thread does.
#if defined(JD_SANITIZE_THREAD)
inline constexpr std::size_t kSmallStack = 1024 * 1024;  // it wants 0.9 MB of each
#else
inline constexpr std::size_t kSmallStack = 256 * 1024;
#endif

// A thread made by GC_pthread_create. The function, and what it captures, is in malloc'ed memory,
// which the collector does not see: capture no collectable pointers.
class GcThread {
 public:
  explicit GcThread(std::function<void()> body);
  GcThread(GcThread&& other) noexcept;
  GcThread& operator=(GcThread&&) = delete;
  ~GcThread();
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs body(0) ... body(count - 1), each in a thread, and waits for them.
void run_threads(std::size_t count, const std::function<void(std::size_t)>& body);

// Runs the body in a plain pthread that registers itself, and waits for it.
void run_registered_thread(const std::function<void()>& body);

}  // namespace jd::test

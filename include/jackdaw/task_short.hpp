// What a thread that is no worker need not hand over. Included by task.hpp.
//
// Waking a worker, and being woken by it, takes 5 to 50 µs. A call of par() or a loop that took
// less than that each time lately is run by its caller, on probation: once it takes longer, what is
// left of it is handed over, and it must prove short anew.
#pragma once

#include <jackdaw/task.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace jd::detail {

// Nanoseconds.
inline std::int64_t now() {
  using std::chrono::steady_clock;
  return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
}

// How long something took of late.
class Shortness {
 public:
  static constexpr std::int64_t kShort = 20000;  // ns
  static constexpr int kTimes = 4;

  bool is_expected() const { return times_.load(std::memory_order_relaxed) == kTimes; }
  void note(std::int64_t took) {
    const int times = times_.load(std::memory_order_relaxed);
    if (took >= kShort) {
      if (times != 0) times_.store(0, std::memory_order_relaxed);
    } else if (times < kTimes) {
      times_.store(times + 1, std::memory_order_relaxed);
    }
  }

 private:
  // How often in a row it was short. By all threads that run it; of two that write at once, one
  // may be lost.
  std::atomic<int> times_{0};
};

// Of the functions of one type: those of one place in the program, if it is a closure's.
template <class Function>
inline Shortness shortness;

// One try to do it here.
class ShortRun {
 public:
  explicit ShortRun(Shortness& past)
      : past_(past), is_expected_(past.is_expected() && jd_task_may_run_here() != 0) {
    if (is_expected_) began_ = now();
  }
  ~ShortRun() {
    if (is_expected_) past_.note(now() - began_);
  }
  ShortRun(const ShortRun&) = delete;
  ShortRun& operator=(const ShortRun&) = delete;

  bool is_expected() const { return is_expected_; }
  // Has it taken too long already?
  bool is_over() const { return now() - began_ >= Shortness::kShort; }

 private:
  Shortness& past_;
  bool is_expected_;
  std::int64_t began_ = 0;
};

}  // namespace jd::detail

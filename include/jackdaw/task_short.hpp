// What a thread that is no worker need not hand over, and a worker need not cut into many pieces.
// Included by task.hpp.
//
// Waking a worker, and being woken by it, takes 5 to 50 µs. A call of par() or a loop that was
// short each time lately is run by its caller, on probation: once it takes longer, what is left of
// it is handed over, and it must prove short anew. A sort is expected to take the time for its
// length. Such a loop in a worker is few pieces, of which a thief has a part when it asks.
#pragma once

#include <jackdaw/task.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

// What these headers compile is each library's own, and each kind of code's: hidden, as a library
// that brings a C++ run-time of its own catches and throws by that; and by another name where there
// are no exceptions, as the linker keeps one of several functions of a name, and one that was
// compiled without catches nothing.
#if defined(__cpp_exceptions)
#define JD_TASK_CODE with_exceptions
#define JD_TASK_CODE_NAME "with_exceptions"
#else
#define JD_TASK_CODE without_exceptions
#define JD_TASK_CODE_NAME "without_exceptions"
#endif

namespace jd {
inline namespace [[gnu::visibility("hidden")]] JD_TASK_CODE {
namespace task_detail {

// Nanoseconds.
inline std::int64_t now() {
  using std::chrono::steady_clock;
  return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
}

// What takes less than this, in nanoseconds, is short. One worker gains nothing but its hand-over's
// end, two little: both wake-ups, and the time for which the workers look for more.
inline std::int64_t short_limit() {
  switch (jd_task_workers()) {
    case 1:
      return 200000;
    case 2:
      return 100000;
    default:
      return 20000;
  }
}

// How long something took of late. By all threads that run it, without order: of two that write at
// once, one may be lost.
class Shortness {
 public:
  static constexpr int kTimes = 4;
  static constexpr int kMostTimes = 64;

  bool is_expected() const {
    return times_.load(std::memory_order_relaxed) >= needed_.load(std::memory_order_relaxed);
  }
  void note(std::int64_t took) {
    const int times = times_.load(std::memory_order_relaxed);
    if (took < short_limit()) {
      if (times < kMostTimes) times_.store(times + 1, std::memory_order_relaxed);
    } else if (times != 0) {
      const int needed = needed_.load(std::memory_order_relaxed);
      times_.store(is_forgiven(times, needed) ? needed - 1 : 0, std::memory_order_relaxed);
    }
  }
  // Of a caller that ran it itself. What is short in a worker alone, since it forks, say, is tried
  // more and more rarely.
  void note_here(std::int64_t took) {
    const int times = times_.load(std::memory_order_relaxed);
    const int needed = needed_.load(std::memory_order_relaxed);
    note(took);
    int now_needed = needed;
    if (took < short_limit()) {
      now_needed = kTimes;
    } else if (!is_forgiven(times, needed)) {
      now_needed = std::min(2 * needed, kMostTimes);
    }
    if (now_needed != needed) needed_.store(now_needed, std::memory_order_relaxed);
  }

 private:
  // A long one may be short, and the system have taken the processor away meanwhile. If it was
  // short several times more than it had to be, it need be so but once more; and if it is not, it
  // has become long.
  static bool is_forgiven(int times, int needed) { return times >= needed + kForgiven; }

  static constexpr int kForgiven = 4;
  std::atomic<int> times_{0};  // in a row that it was short
  std::atomic<int> needed_{kTimes};
};

// Of the functions of one type: those of one place in the program, if it is a closure's.
template <class Function>
inline Shortness shortness;

// One try to do it here. With one worker nobody steals: the forks within are bare calls meanwhile,
// as they are there.
class ShortRun {
 public:
  explicit ShortRun(Shortness& past)
      : past_(past), is_expected_(past.is_expected() && jd_task_may_run_here() != 0) {
    if (!is_expected_) return;
    began_ = now();
    if (jd_task_is_direct() != 0 || jd_task_workers() != 1) return;
    jd_task_set_direct(1);
    made_direct_ = true;
  }
  ~ShortRun() {
    if (made_direct_) jd_task_set_direct(0);
    if (is_expected_) past_.note_here(now() - began_);
  }
  ShortRun(const ShortRun&) = delete;
  ShortRun& operator=(const ShortRun&) = delete;

  bool is_expected() const { return is_expected_; }
  // Has it taken too long already?
  bool is_over() const { return now() - began_ >= short_limit(); }

 private:
  Shortness& past_;
  bool is_expected_;
  bool made_direct_ = false;
  std::int64_t began_ = 0;
};

// How long a sort of some type took of late, for its length. By all threads, without order, as
// above.
class SortTimes {
 public:
  // Would a sort of so many elements be short? Not before one was seen.
  bool is_expected(std::int64_t count) const {
    const std::int64_t time = time_.load(std::memory_order_relaxed);
    return time != 0 && count <= short_limit() * kElements / time;
  }
  // Twice as slow at most, since the system may have taken the processor away; and half of what is
  // faster.
  void note(std::int64_t count, std::int64_t took) {
    const std::int64_t seen = std::max<std::int64_t>(1, took * kElements / count);
    const std::int64_t time = time_.load(std::memory_order_relaxed);
    const std::int64_t believed = seen < time ? time - (time - seen) / 2 : std::min(seen, 2 * time);
    time_.store(time == 0 ? seen : believed, std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kElements = 1024;
  std::atomic<std::int64_t> time_{0};  // nanoseconds for so many elements
};

template <class Iterator, class Compare>
inline SortTimes sort_times;

}  // namespace task_detail
}  // namespace JD_TASK_CODE
}  // namespace jd

// Runs a small program of several threads in every order in which their accesses to shared words
// can come, one after another. The program is written over Scheduled in place of os::Machine: each
// access of a Scheduled::Atomic, each wait, wake and lock is a step, and between two steps of one
// thread any steps of others may come.
//
//   const Report report = explore({}, [](Program* program) {
//     auto word = std::make_shared<Scheduled::Atomic<int>>(0);
//     program->add_thread([=] { word->fetch_add(1); });
//     program->add_thread([=] { word->fetch_add(1); });
//     program->at_end([=] { check(word->load() == 2, "an addition was lost"); });
//   });
//   EXPECT_TRUE(report.passed()) << report;
//
// Threads are coroutines of one real thread, so a schedule repeats exactly. Orders that differ only
// in the order of independent steps are tried once (Godefroid, "Partial-Order Methods for the
// Verification of Concurrent Systems", 1996: sleep sets). What is not tried: the weaker orders of
// memory that a machine may show (every access is as if sequentially consistent), and wakes that
// come in another order than the waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace jd::test {

struct Limits {
  // The most steps that a thread is made to lose its turn at while it could go on (Musuvathi &
  // Qadeer, "Iterative Context Bounding", 2007); -1: any number, with sleep sets.
  int preemptions = -1;
  std::uint64_t executions = 50000000;
};

struct Report {
  std::uint64_t executions = 0;  // schedules that were run to their end
  std::uint64_t cut = 0;         // that were not: the rest would have been what was run before
  std::uint64_t steps = 0;
  std::uint64_t longest = 0;   // steps of one schedule
  std::uint64_t timeouts = 0;  // waits that ended so, since nobody else could go on
  bool complete = false;       // there are no other schedules within the limits
  std::string failure;         // what went wrong, and the schedule: threads in the order of steps

  [[nodiscard]] bool passed() const { return complete && failure.empty(); }
};
std::ostream& operator<<(std::ostream& stream, const Report& report);

class Program {
 public:
  virtual void add_thread(std::function<void()> body) = 0;
  // One that need not end: the program has ended when it can't go on and the others have.
  virtual void add_server(std::function<void()> body) = 0;
  // Called when the program has ended.
  virtual void at_end(std::function<void()> check) = 0;

 protected:
  ~Program() = default;
};

// Calls make for each execution; what the program's threads share has to be made there.
Report explore(const Limits& limits, const std::function<void(Program*)>& make);

// Within a program: the execution fails unless it is true.
void check(bool condition, const char* what);
// The number of the running thread, in the order of their making.
unsigned running_thread();

enum class Access : std::uint8_t { Local, Read, Write, Acquire, Release };

namespace detail {
// Ends the thread's step; the next one is an access to that place. Returns when it is its turn.
void step(const void* place, Access access);
// Sleeps until somebody wakes the place. False: the time was up.
bool sleep_on(const void* place, bool for_ever);
int wake(const void* place, int count);
}  // namespace detail

// What explore() gives to the code in place of os::Machine.
struct Scheduled {
  template <class T>
  class Atomic {
   public:
    constexpr Atomic(T value = {}) : value_(value) {}
    T load(std::memory_order = std::memory_order_seq_cst) const {
      detail::step(this, Access::Read);
      return value_;
    }
    void store(T value, std::memory_order = std::memory_order_seq_cst) {
      detail::step(this, Access::Write);
      value_ = value;
    }
    T fetch_add(T more, std::memory_order = std::memory_order_seq_cst) {
      detail::step(this, Access::Write);
      const T before = value_;
      value_ = static_cast<T>(value_ + more);
      return before;
    }
    T fetch_sub(T less, std::memory_order = std::memory_order_seq_cst) {
      return fetch_add(static_cast<T>(T{} - less));
    }
    bool compare_exchange_strong(T& expected, T desired,
                                 std::memory_order = std::memory_order_seq_cst,
                                 std::memory_order = std::memory_order_seq_cst) {
      detail::step(this, Access::Write);
      if (value_ != expected) {
        expected = value_;
        return false;
      }
      value_ = desired;
      return true;
    }

   private:
    friend struct Scheduled;
    T value_;
  };

  // A lock of which nothing is to be shown here: taking it is one step, which is possible while it
  // is free.
  class Lock {
   public:
    void acquire() {
      detail::step(this, Access::Acquire);
      held_ = true;
    }
    void release() {
      detail::step(this, Access::Release);
      held_ = false;
    }
    [[nodiscard]] bool held() const { return held_; }

   private:
    bool held_ = false;
  };

  static constexpr std::uint64_t kForever = ~std::uint64_t{0};
  static bool wait(Atomic<std::uint32_t>* word, std::uint32_t expected,
                   std::uint64_t nanoseconds = kForever) {
    detail::step(word, Access::Write);
    if (word->value_ != expected) return true;
    ++waits[running_thread()];
    const bool woken = detail::sleep_on(word, nanoseconds == kForever);
    if (after_wait) after_wait();
    return woken;
  }
  static bool wait_stoppably(Atomic<std::uint32_t>* word, std::uint32_t expected,
                             std::uint64_t nanoseconds) {
    return wait(word, expected, nanoseconds);
  }
  static int wake(Atomic<std::uint32_t>* word, int count) {
    detail::step(word, Access::Write);
    return detail::wake(word, count);
  }

  static bool is_alone() { return false; }
  static unsigned looks(unsigned most) { return most < most_looks ? most : most_looks; }
  static void pause() {}
  // So long passes between two readings of the clock.
  static std::uint64_t now() { return time += time_passes; }
  static void tell_acquired(const void*) {}
  static void tell_released(const void*) {}
  static void tell_waiting(const void*) {}
  static void tell_atomic(const void*) {}

  // To be set by a test before it explores.
  static inline unsigned most_looks = 0;
  static inline std::uint64_t time_passes = 0;
  // Called by a thread that wakes, if set.
  static inline std::function<void()> after_wait;
  // Begin anew with each execution.
  static inline std::uint64_t time = 0;
  static inline std::uint64_t waits[8] = {};
};

}  // namespace jd::test

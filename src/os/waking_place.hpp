// Where a sleeping thread wakes up. The kernel of a virtual machine may take an idle processor for
// one that the host has given to somebody else, and wake the thread on the waker's own, where it
// waits for the end of a slice: 3 ms (docs/design/task-workers.md, "Idle workers"). A waker that
// goes on running takes its own processor from the sleeper's affinity mask for the time of the call
// that wakes it, in which the kernel chooses.
//
// Nobody can change a mask on condition that it is still what it was. So one that the program sets
// in just these microseconds may be lost; whatever it sets before or after stays.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace jd::os {

class WakingPlace {
 public:
  // --- By the thread that sleeps ---
  void begin_sleep(int thread);  // its id with the kernel
  // Waits for a waker who has yet to put the mask back, 10 ms at most: threads and processes that
  // the sleeper makes from here on would keep what the waker has left of it.
  void end_sleep();

  // --- By whoever is about to wake it ---
  // False if it does not sleep, or another waker was first. Otherwise it wakes on another
  // processor, if it may run on any, until put_back(), which is to follow. The thread must not end
  // meanwhile.
  bool leave_this_cpu();
  void put_back();

 private:
  void give_back_mask();

  enum : std::uint32_t {
    kAwake,   // by the thread, from kAsleep; by a waker, from kMoving
    kAsleep,  // by the thread, from kAwake
    kMoving   // by a waker, from kAsleep: the rest is its own; the thread may be awake again
  };

  // What the thread and the wakers wrote before is visible to the next waker (acquire and release).
  std::atomic<std::uint32_t> state_{kAwake};
  int thread_ = 0;  // by the thread, before kAsleep
  bool is_moved_ = false;
  cpu_set_t before_{};
  cpu_set_t since_{};
};

}  // namespace jd::os

// Where a sleeping thread wakes up. The kernel of a virtual machine may take an idle processor for
// one that the host has given to somebody else, and wake the thread on the waker's own, where it
// waits for the end of a slice: 3 ms (docs/design/task-workers.md, "Idle workers"). A waker that
// goes on running takes its own processor from the sleeper's affinity mask first, and the sleeper
// puts it back.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace jd::os {

class WakingPlace {
 public:
  // --- By the thread that sleeps ---
  void begin_sleep(int thread);  // its id with the kernel
  void end_sleep();

  // --- By whoever is about to wake it ---
  // False if it does not sleep, or another waker was first. Else it wakes on another processor, if
  // it may run on any.
  bool leave_this_cpu();

 private:
  enum : std::uint32_t {
    kAwake,   // by the thread
    kAsleep,  // by the thread
    kMoving,  // by a waker, from kAsleep: nobody else touches the rest; the thread waits for it
    kMoved,   // by the waker: the thread's mask is changed
    kLeft     // by the waker: it could not be
  };

  // What the wakers and the thread wrote before is visible to the next one (acquire and release).
  std::atomic<std::uint32_t> state_{kAwake};
  int thread_ = 0;
  cpu_set_t before_{};
  cpu_set_t since_{};
};

}  // namespace jd::os

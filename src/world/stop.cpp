#include "world/stop.hpp"

#include <signal.h>

#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"

namespace jd::world {
namespace {

// Odd while the world is stopped or stopping; a stop's number is its odd value. Written by the
// collector (release: what it did is visible to those it lets go); read by stopped threads
// (acquire), which also wait on it.
std::atomic<std::uint32_t> epoch{0};
// Answers to the present stop. Each thread adds one (release), the collector waits on it
// (acquire).
std::atomic<std::uint32_t> answers{0};

int the_stop_signal = kDefaultStopSignal;
int the_resume_signal = kDefaultResumeSignal;
bool handler_installed = false;
bool retry_signals = true;
std::uint64_t stress_delay = 0;

// A thread that has not answered after this is named on standard error; then again and again.
constexpr std::uint64_t kPatience = 2000000000;  // 2 s

void delay_for_stress() {
  if (stress_delay != 0) os::sleep_ns(os::random_bits() % stress_delay);
}

// Where the thread's words end when it is stopped on a stack that is not its own.
void note_alternate_stack(Thread* thread, const char* sp) {
  thread->alternate = {};
  const char* low = thread->stack.low;
  if (low != nullptr && sp >= low && sp < thread->stack.high) return;
  thread->alternate = os::active_alternate_stack();
}

// The body of a stop: runs in the handler, or at the end of a NoStop section. Async-signal-safe.
void answer_and_wait(void* argument, char* stack_top) {
  auto* thread = static_cast<Thread*>(argument);
  const std::uint32_t stop = epoch.load(std::memory_order_acquire);
  const bool world_stops = stop % 2 == 1 && thread->answered != stop;
  if (!world_stops && thread->suspensions.load(std::memory_order_acquire) == 0) return;
  delay_for_stress();
  thread->stopped_at = stack_top;
  note_alternate_stack(thread, stack_top);
  thread->answered = stop;
  answers.fetch_add(1, std::memory_order_release);
  os::futex_wake(&answers, 1);
  while (epoch.load(std::memory_order_acquire) == stop && stop % 2 == 1) {
    os::futex_wait(&epoch, stop);
  }
  for (;;) {
    const std::uint32_t count = thread->suspensions.load(std::memory_order_acquire);
    if (count == 0) break;
    os::futex_wait(&thread->suspensions, count);
  }
  delay_for_stress();
}

void on_stop_signal(int, siginfo_t*, void*) {
  Thread* thread = self();
  if (thread == nullptr) return;  // it unregistered after the signal was sent
  if (thread->no_stop != 0) {
    thread->stop_pending = true;
    return;
  }
  // The interrupted registers are in the signal frame, above this one.
  answer_and_wait(thread, os::frame_address());
}

void complain_about_silence() {
  for_each_thread([](Thread* thread) {
    if (!thread->expected || thread->answered == epoch.load(std::memory_order_relaxed)) return;
    if (os::thread_blocks_signal(thread->id, the_stop_signal)) {
      os::warn("thread ", thread->id, " blocks signal ", the_stop_signal,
               ", by which the collector stops threads; waiting for it. Use GC_pthread_sigmask, "
               "or leave this signal unblocked");
    } else {
      os::warn("thread ", thread->id, " does not answer signal ", the_stop_signal, "; waiting");
    }
    if (retry_signals) os::signal_thread(thread->id, the_stop_signal);
  });
}

void wait_for_answers(std::uint32_t expected) {
  const std::uint64_t spin_end = os::cpu_count() > 1 ? 200 : 0;
  for (std::uint64_t spin = 0; spin < spin_end; ++spin) {
    if (answers.load(std::memory_order_acquire) >= expected) return;
    os::cpu_relax();
  }
  for (;;) {
    const std::uint32_t seen = answers.load(std::memory_order_acquire);
    if (seen >= expected) return;
    if (!os::futex_wait(&answers, seen, kPatience)) complain_about_silence();
  }
}

}  // namespace

Thread* threads = nullptr;
Thread* finished_threads = nullptr;

int stop_signal() { return the_stop_signal; }
int resume_signal() { return the_resume_signal; }

bool set_stop_signal(int signal) {
  if (handler_installed) return false;
  the_stop_signal = signal;
  return true;
}

bool set_resume_signal(int signal) {
  if (handler_installed) return false;
  the_resume_signal = signal;
  return true;
}

void configure_stop(bool retry, std::uint64_t delay) {
  retry_signals = retry;
  stress_delay = delay;
}

void install_stop_handler() {
  if (!os::install_handler(the_stop_signal, on_stop_signal)) {
    os::fatal("the system refuses a handler for signal ", the_stop_signal,
              "; choose another with GC_set_suspend_signal");
  }
  handler_installed = true;
}

bool world_is_stopped() { return epoch.load(std::memory_order_relaxed) % 2 == 1; }

void stop_world() {
  JD_DCHECK(!world_is_stopped());
  answers.store(0, std::memory_order_relaxed);
  epoch.fetch_add(1, std::memory_order_release);
  std::uint32_t expected = 0;
  for_each_thread([&](Thread* thread) {
    thread->expected = false;
    if (thread == self() || thread->blocked || thread->parked) return;
    // A thread that is gone without a word (a raw exit) has no roots any more.
    if (!os::signal_thread(thread->id, the_stop_signal)) {
      thread->stopped_at = nullptr;
      return;
    }
    thread->expected = true;
    ++expected;
  });
  wait_for_answers(expected);
}

void resume_world() {
  JD_DCHECK(world_is_stopped());
  epoch.fetch_add(1, std::memory_order_release);
  os::futex_wake(&epoch, os::kAllWaiters);
}

void suspend_thread(Thread* thread) {
  if (thread->suspensions.fetch_add(1, std::memory_order_release) != 0) return;
  if (thread == self() || thread->blocked || thread->parked) return;
  answers.store(0, std::memory_order_relaxed);
  thread->expected = true;
  if (!os::signal_thread(thread->id, the_stop_signal)) return;
  wait_for_answers(1);
  thread->expected = false;
  thread->parked = true;
}

void resume_thread(Thread* thread) {
  if (thread->suspensions.load(std::memory_order_relaxed) == 0) return;
  if (thread->suspensions.fetch_sub(1, std::memory_order_release) != 1) return;
  thread->parked = false;
  os::futex_wake(&thread->suspensions, os::kAllWaiters);
}

void NoStop::answer_pending_stop() {
  thread_->stop_pending = false;
  os::call_with_registers_on_stack(answer_and_wait, thread_);
}

}  // namespace jd::world

#include "world/stop.hpp"

#include <signal.h>

#include "base/sharing.hpp"
#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/cpu.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/signals.hpp"
#include "os/thread.hpp"
#include "world/mappings.hpp"

namespace jd::world {
namespace {

// Odd while the world is stopped or stopping; a stop's number is its odd value. Written by the
// collector (release: what it did is visible to those it lets go); read by stopped threads
// (acquire), which also wait on it.
std::atomic<std::uint32_t> epoch{0};
// Answers to the present stop or suspension. Each thread adds one, the collector waits on it: what
// a thread did before is visible then.
std::atomic<std::uint32_t> answers{0};
// How many there will be; the thread that gives the last one wakes the collector, and no other
// does. Written by the collector, once all signals are sent and when a thread turns out to be gone.
// It reads the answers afterwards, and a thread adds its answer before it reads this; so one of the
// two sees the other (sequentially consistent, all four accesses).
std::atomic<std::uint32_t> answers_wanted{0};
constexpr std::uint32_t kNotKnownYet = ~0u;
// How many the last stop waited for. Under the heap's lock.
std::uint32_t signalled_last = 0;
// The kernel's id of the last thread that got a stop signal and has no record. If a record has this
// id, that record's thread has ended, and the kernel has given its id away again.
std::atomic<int> stranger{0};

// All set at the start or before it, and from then on only read.
int the_stop_signal = kDefaultStopSignal;
int the_resume_signal = kDefaultResumeSignal;
bool handler_installed = false;
bool retry_signals = true;
std::uint64_t stress_delay = 0;

// A thread that has not answered after this is named on standard error; then again and again.
constexpr std::uint64_t kPatience = 2000000000;  // 2 s
// Before that, when the collector looks whether it waits for a thread that is gone: after so long,
// and twice as long, and so on, up to the second figure.
constexpr std::uint64_t kFirstGlance = 5000000;   // 5 ms
constexpr std::uint64_t kLastGlance = 100000000;  // 0.1 s

void delay_for_stress() {
  if (stress_delay != 0) os::sleep_ns(os::random_bits() % stress_delay);
}

// Takes the request for an answer. What follows runs in the handler, maybe on an alternate stack
// with a few hundred bytes left, or at the end of a NoStop section. Async-signal-safe.
bool is_asked(Thread* thread) {
  // Nobody waits for the second answer where a signal was sent twice, or by the program.
  // An exchange, since the collector takes back what it could not send.
  base::note_atomic(&thread->awaited);
  if (!thread->awaited.exchange(false, std::memory_order_acquire)) return false;
  delay_for_stress();
  return true;
}

// The body of a stop. Pre: where the thread stands is written.
void answer_and_wait(Thread* thread) {
  // Neither changes before we have answered.
  const std::uint32_t stop = epoch.load(std::memory_order_relaxed);
  const std::uint32_t suspension = thread->suspensions.load(std::memory_order_relaxed);
  thread->in_stop.store(true, std::memory_order_relaxed);
  base::note_atomic(&answers);
  if (answers.fetch_add(1) + 1 == answers_wanted.load()) os::futex_wake(&answers, 1);
  if (stop % 2 == 1) {
    while (epoch.load(std::memory_order_acquire) == stop) os::futex_wait(&epoch, stop);
    // A suspension that follows at once sends its own signal, and waits for its own answer.
  } else {
    while (thread->suspensions.load(std::memory_order_acquire) == suspension) {
      os::futex_wait(&thread->suspensions, suspension);
    }
  }
  delay_for_stress();
  // Whatever it stands on the next time, this may be unmapped then.
  thread->signal_frame = {};
  thread->in_stop.store(false, std::memory_order_relaxed);
}

// Stops on the present stack.
void answer_here(void* argument, char* stack_top) {
  auto* thread = static_cast<Thread*>(argument);
  if (!is_asked(thread)) return;
  thread->stopped_at = stack_top;
  // It may be a part of the thread's own stack, so the stack pointer does not tell.
  thread->alternate = os::active_alternate_stack();
  answer_and_wait(thread);
}

JD_SIGNAL_HANDLER void on_stop_signal(int, siginfo_t*, [[maybe_unused]] void* context) {
  Thread* thread = self();
  if (thread == nullptr) {
    stranger.store(os::thread_id(), std::memory_order_relaxed);
    return;
  }
  if (thread->no_stop != 0) {
    thread->stop_pending = true;
    return;
  }
#if defined(JD_SANITIZE_THREAD)
  // ThreadSanitizer calls this at one of its own calls, some time after the signal came: what the
  // calling convention lets a callee keep may be in this function's registers still.
  os::call_with_registers_on_stack(answer_here, thread);
#else
  if (!is_asked(thread)) return;
  // The interrupted registers are in the signal frame, above this one.
  char* const here = os::frame_address();
  char* const interrupted = os::interrupted_stack_pointer(context);
  const os::Extent alternate = os::alternate_stack_at(context);
  if (!alternate.contains(here)) {
    thread->stopped_at = here;
    thread->alternate = {};
  } else if (alternate.contains(interrupted)) {
    thread->stopped_at = here;
    thread->alternate = alternate;
  } else {
    thread->stopped_at = interrupted;
    thread->alternate = {};
    thread->signal_frame = {here, alternate.high};
  }
  answer_and_wait(thread);
#endif
}

// As os::signal_thread, but waits for room until that time by the clock.
os::Signalled signal_by(int process, const Thread& thread, std::uint64_t give_up_at) {
  constexpr std::uint64_t kPause = 100000;  // 0.1 ms; a guess
  const std::uint64_t begin = os::now_ns();
  for (bool said = false;;) {
    const os::Signalled result = os::signal_thread(process, thread.id, the_stop_signal);
    if (result != os::Signalled::NoRoom) return result;
    const std::uint64_t now = os::now_ns();
    if (now >= give_up_at) return result;
    if (!said && now - begin >= kPatience) {
      said = true;
      os::warn("the system has no room for signal ", the_stop_signal, " to thread ", thread.id,
               " (see ulimit -i); waiting");
    }
    os::sleep_ns(kPause);
  }
}

enum class Asked : unsigned char { Yes, ThreadGone, NoRoom, Refused };

// Asks for the thread's answer. NoRoom and Refused: none will come.
Asked ask_to_stop(int process, Thread* thread, std::uint64_t give_up_at) {
  thread->awaited.store(true, std::memory_order_release);
  const os::Signalled result = signal_by(process, *thread, give_up_at);
  if (result == os::Signalled::Sent) return Asked::Yes;
  if (result == os::Signalled::ThreadGone) {
    thread->awaited.store(false, std::memory_order_relaxed);
    thread->gone = true;
    return Asked::ThreadGone;
  }
  // A signal that the program has sent may have been answered meanwhile.
  base::note_atomic(&thread->awaited);
  if (!thread->awaited.exchange(false, std::memory_order_acquire)) return Asked::Yes;
  return result == os::Signalled::NoRoom ? Asked::NoRoom : Asked::Refused;
}

[[noreturn]] void end_for_refusal() {
  os::fatal("the system refuses to send signal ", the_stop_signal,
            ", by which the collector stops threads");
}

// A thread that registered in the last of its destructors ends without unregistering, and perhaps
// with our signal blocked. Returns how many of those awaited are gone.
std::uint32_t find_gone_threads() {
  std::uint32_t found = 0;
  for_each_thread([&](Thread* thread) {
    if (!thread->awaited.load(std::memory_order_relaxed)) return;
    if (thread->id != stranger.load(std::memory_order_relaxed) &&
        !os::thread_has_ended(thread->id)) {
      return;
    }
    base::note_atomic(&thread->awaited);
    if (!thread->awaited.exchange(false, std::memory_order_acquire)) return;
    thread->gone = true;
    thread->signalled = false;
    ++found;
  });
  return found;
}

// An ordinary program can't choose the signal.
const char* what_helps() {
  return using_mappings() ? "run the program without --malloc"
                          : "choose another with GC_set_suspend_signal";
}

void complain_about_silence() {
  const os::SignalEffect effect = os::effect_of_signal(the_stop_signal, on_stop_signal);
  if (effect == os::SignalEffect::Ignored) {
    os::fatal("the program ignores signal ", the_stop_signal,
              ", by which the collector stops threads; ", what_helps());
  }
  const char* reason = effect == os::SignalEffect::Another
                           ? ", whose handler the program has replaced; waiting"
                           : "; waiting";
  for_each_thread([reason](Thread* thread) {
    if (!thread->awaited.load(std::memory_order_relaxed)) return;
    switch (os::why_signal_waits(thread->id, the_stop_signal)) {
      case os::SignalWait::Blocked:
        os::warn("thread ", thread->id, " blocks signal ", the_stop_signal,
                 ", by which the collector stops threads; waiting for it. ",
                 using_mappings() ? "It did so by a system call of its own, or in a handler's "
                                    "ucontext_t: leave this signal unblocked there"
                                  : "Use GC_pthread_sigmask, or leave this signal unblocked");
        break;
      case os::SignalWait::Taken:
        os::warn(
            "thread ", thread->id, " has signal ", the_stop_signal,
            ", by which the collector stops threads, but gets no processor to answer; waiting");
        break;
      case os::SignalWait::NotKnown:
        os::warn("thread ", thread->id, " does not answer signal ", the_stop_signal, reason);
        break;
    }
    if (retry_signals) os::signal_thread(thread->id, the_stop_signal);
  });
}

// A thread that is signalled again before it has left its last stop enters the next one without an
// instruction of its own in between; and where others collect one after another, so it goes on.
// Not for ever: one may get no processor.
void let_all_leave() {
  constexpr std::uint64_t kGlance = 20000;      // 20 us: about what leaving takes; a guess
  constexpr std::uint64_t kLongest = 20000000;  // 20 ms: some time slices; a guess
  const auto some_are_in_stop = [] {
    bool any = false;
    for_each_thread([&any](Thread* thread) {
      if (thread == self() || thread->parked || thread->blocked) return;
      any |= thread->in_stop.load(std::memory_order_relaxed);
    });
    return any;
  };
  if (!some_are_in_stop()) return;
  const std::uint64_t begin = os::now_ns();
  do {
    os::sleep_ns(kGlance);
  } while (some_are_in_stop() && os::now_ns() - begin < kLongest);
  // The last one has yet to return to where it was.
  os::sleep_ns(kGlance);
}

// The heap's lock is held: nobody else writes it.
void change_epoch() {
  epoch.store(epoch.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Before any signal is sent.
void expect_answers() {
  answers_wanted.store(kNotKnownYet, std::memory_order_relaxed);
  answers.store(0, std::memory_order_relaxed);
  stranger.store(0, std::memory_order_relaxed);
}

// Waits for so many answers, less those of threads that are found to be gone.
void wait_for_answers(std::uint32_t wanted) {
  answers_wanted.store(wanted);
  // Where all of them can run beside this thread. Otherwise one may need the CPU that it spins on.
  const std::uint64_t spin_end = wanted < os::cpu_count() ? 200 : 0;
  for (std::uint64_t spin = 0; spin < spin_end; ++spin) {
    if (answers.load() >= wanted) return;
    os::cpu_relax();
  }
  const std::uint64_t begin = os::now_ns();
  std::uint64_t glance = kFirstGlance;
  std::uint64_t next_glance = begin + glance;
  std::uint64_t next_complaint = begin + kPatience;
  for (;;) {
    const std::uint32_t seen = answers.load();
    if (seen >= wanted) return;
    os::futex_wait(&answers, seen, glance);
    // By the clock, since the program's signals may interrupt every wait.
    const std::uint64_t now = os::now_ns();
    if (now < next_glance) continue;
    glance = base::min_of(2 * glance, kLastGlance);
    next_glance = now + glance;
    wanted -= find_gone_threads();
    answers_wanted.store(wanted);
    if (now < next_complaint) continue;
    next_complaint = now + (now - begin);  // after 2 s, 4, 8, ...
    complain_about_silence();
  }
}

// For stop_by: no such time comes.
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// Yes; or why a signal was not sent, for want of room until that time by the clock: then some
// threads run on.
Asked stop_by(std::uint64_t give_up_at) {
  JD_DCHECK(!world_is_stopped());
  let_all_leave();
  expect_answers();
  change_epoch();
  const int process = os::process_id();
  std::uint32_t wanted = 0;
  Asked all = Asked::Yes;
  for_each_thread([&](Thread* thread) {
    if (all != Asked::Yes || thread == self() || thread->parked) return;
    if (thread->blocked) {
      thread->gone = os::signal_thread(process, thread->id, 0) == os::Signalled::ThreadGone;
      return;
    }
    const Asked asked = ask_to_stop(process, thread, give_up_at);
    thread->signalled = asked == Asked::Yes;
    if (thread->signalled) {
      ++wanted;
    } else if (asked != Asked::ThreadGone) {
      all = asked;
    }
  });
  signalled_last = wanted;
  wait_for_answers(wanted);
  return all;
}

}  // namespace

int stop_signal() { return the_stop_signal; }
int resume_signal() { return the_resume_signal; }

bool comes_to_stop_handler() {
  return os::effect_of_signal(the_stop_signal, on_stop_signal) == os::SignalEffect::Handled;
}

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
  // A goroutine's or a fiber's stack may have no room for the signal's frame.
  if (!os::install_handler(the_stop_signal, on_stop_signal, os::Faults::Blocked,
                           os::RunsOn::Alternate)) {
    os::fatal("the system refuses a handler for signal ", the_stop_signal,
              ", by which the collector stops threads; ", what_helps());
  }
  handler_installed = true;
  os::let_in_while_waiting(the_stop_signal);
}

std::uint32_t signalled_at_last_stop() { return signalled_last; }

bool world_is_stopped() { return epoch.load(std::memory_order_relaxed) % 2 == 1; }

void stop_world() {
  if (stop_by(kNever) != Asked::Yes) end_for_refusal();
}

bool try_to_stop_world() {
  // Other processes of the user's fill the queue, too, so it may have room again soon. Where it had
  // none at the last attempt, that is not waited for: each would take so long.
  constexpr std::uint64_t kRoomPatience = 100000000;  // 0.1 s; a guess
  // Under the heap's lock.
  static Asked last = Asked::Yes;
  static bool said = false;
  last = stop_by(os::now_ns() + (last == Asked::Yes ? kRoomPatience : 0));
  if (last == Asked::Yes) return true;
  if (said) return false;
  said = true;
  if (last == Asked::NoRoom) {
    os::warn("the system has no room for signal ", the_stop_signal,
             ", by which the collector stops threads (see ulimit -i); not collecting until it has");
  } else {
    os::warn("the system refuses to send signal ", the_stop_signal,
             ", by which the collector stops threads (a seccomp filter?); not collecting");
  }
  return false;
}

void resume_world() {
  JD_DCHECK(world_is_stopped());
  bool any_gone = false;
  for_each_thread([&](Thread* thread) {
    thread->signalled = false;
    any_gone |= thread->gone;
  });
  change_epoch();
  os::futex_wake(&epoch, os::kAllWaiters);
  if (any_gone) drop_gone_threads();
}

void suspend_thread(Thread* thread) {
  if (is_suspended(*thread)) return;
  thread->suspensions.fetch_add(1, std::memory_order_release);
  // As with bdwgc, one that has ended is suspended in name.
  if (thread == self() || thread->blocked || thread->finished) return;
  expect_answers();
  const Asked asked = ask_to_stop(os::process_id(), thread, kNever);
  if (asked == Asked::Refused) end_for_refusal();
  if (asked == Asked::Yes) wait_for_answers(1);
  if (thread->gone) return drop_gone_threads();
  thread->parked = true;
  heap::heap_lock.mark_contended();
}

void resume_thread(Thread* thread) {
  if (!is_suspended(*thread)) return;
  thread->parked = false;
  thread->suspensions.fetch_add(1, std::memory_order_release);
  os::futex_wake(&thread->suspensions, os::kAllWaiters);
}

void wait_while_suspended(Thread* thread) {
  for (;;) {
    const std::uint32_t count = thread->suspensions.load(std::memory_order_acquire);
    if (count % 2 == 0) return;
    os::futex_wait(&thread->suspensions, count);
  }
}

void NoStop::answer_pending_stop(Thread* thread) {
  // As in the handler: while a thread is stopped, no handler of the client's runs in it.
  const os::SignalsBlocked blocked;
  thread->stop_pending = false;
  os::call_with_registers_on_stack(answer_here, thread);
}

}  // namespace jd::world

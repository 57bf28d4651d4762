// Stopping and resuming the world. Pre, where nothing else is said: the heap's lock is held.
//
// Requirements (docs/design/world.md): world.req.stopped — then every registered thread's stack
// pointer and registers are known; world.req.quiet — nothing takes a lock that a stopped thread may
// hold.
#pragma once

#include "world/thread.hpp"

namespace jd::world {

inline constexpr int kDefaultStopSignal = 30;    // SIGPWR, as bdwgc's on Linux
inline constexpr int kDefaultResumeSignal = 24;  // SIGXCPU: reported to programs, never sent

// The signals that programs are told about. They may be changed until the handler is installed,
// which happens when the runtime starts. These and configure_stop() need no lock.
int stop_signal();
int resume_signal();
// False if that has happened.
bool set_stop_signal(int signal);
bool set_resume_signal(int signal);
void install_stop_handler();
// Does the stop signal come to the collector's handler?
bool comes_to_stop_handler();

// Whether unanswered signals are sent again (GC_RETRY_SIGNALS), and the longest random delay for
// stress, in nanoseconds.
void configure_stop(bool retry, std::uint64_t delay);

// Post: every registered thread but the caller waits in its handler, is blocked, or is parked. Ends
// the process where the system refuses to send the signal.
void stop_world();
// The same; but false, after a moment, if the system has no room for the signals
// (os::Signalled::NoRoom), and at once if it refuses them: then some threads stand and some run,
// until resume_world(). The first time a line says so.
[[nodiscard]] bool try_to_stop_world();
void resume_world();
bool world_is_stopped();
// How many threads the last stop signalled and waited for; 0 before the first.
std::uint32_t signalled_at_last_stop();

// world.req.held: stops or lets go one thread, for GC_suspend_thread; its stack stays a root. A
// thread in a blocking section is held when it leaves that; so the caller itself, once it enters
// one. Neither nests.
void suspend_thread(Thread* thread);
void resume_thread(Thread* thread);
inline bool is_suspended(const Thread& thread) {
  return thread.suspensions.load(std::memory_order_acquire) % 2 != 0;
}
// Returns once the calling thread is not suspended. Pre: the lock is not held; the thread is in a
// blocking section.
void wait_while_suspended(Thread* thread);

}  // namespace jd::world

// What is said of a thread that does not answer a signal: does it hold the signal back, or has it
// begun to handle it?
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "os/signals.hpp"

namespace {

using jd::os::SignalWait;
using jd::os::why_signal_waits;

constexpr int kSignal = SIGUSR2;

std::atomic<bool> in_handler;
std::atomic<bool> may_leave;

void wait_in_handler(int, siginfo_t*, void*) {
  in_handler = true;
  while (!may_leave) usleep(100);
}

void set_blocked(bool blocked) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kSignal);
  pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

TEST(SignalWaitTest, TellsWhoBlocksASignalFromWhoIsInItsHandler) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer takes every signal itself, and hands it over later";
#endif
  in_handler = may_leave = false;
  ASSERT_TRUE(jd::os::install_handler(kSignal, wait_in_handler));
  std::atomic<int> id = 0;
  std::atomic<bool> may_open = false;
  std::thread thread([&] {
    set_blocked(true);
    id = static_cast<int>(syscall(SYS_gettid));
    while (!may_open) usleep(100);
    set_blocked(false);
    while (!may_leave) usleep(100);
  });
  while (id == 0) usleep(100);
  jd::os::signal_thread(id, kSignal);
  EXPECT_EQ(why_signal_waits(id, kSignal), SignalWait::Blocked);
  may_open = true;
  while (!in_handler) usleep(100);
  EXPECT_EQ(why_signal_waits(id, kSignal), SignalWait::Taken);
  may_leave = true;
  thread.join();
}

TEST(SignalWaitTest, NothingIsKnownOfAThreadThatTakesSignals) {
  EXPECT_EQ(why_signal_waits(static_cast<int>(syscall(SYS_gettid)), kSignal), SignalWait::NotKnown);
}

}  // namespace

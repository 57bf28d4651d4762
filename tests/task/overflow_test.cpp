// A task that uses up its stack: what it says, and who has the fault then (task.req.overflow).
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <cstring>

namespace {

[[gnu::noinline]] long deeper(long n) {
  volatile char frame[512];
  frame[n % 512] = 1;
  if (n < 0) return n;
  return deeper(n + 1) + frame[n % 512];
}

// A frame that steps over a page or two.
[[gnu::noinline]] long deeper_at_once(long n) {
  volatile char frame[50'000];
  frame[n % 50'000] = 1;
  if (n < 0) return n;
  return deeper_at_once(n + 1) + frame[n % 50'000];
}

// Through forks, too.
[[gnu::noinline]] long fork_deeper(long n) {
  volatile char frame[512];
  frame[n % 512] = 1;
  if (n < 0) return n;
  auto [x, y] = jd::par([n] { return fork_deeper(n + 1); }, [n] { return n; });
  return x + y + frame[n % 512];
}

void say(const char* text) { static_cast<void>(!write(2, text, std::strlen(text))); }

void on_signal(int) {
  say("the program's handler\n");
  _exit(3);
}
void on_signal_with_info(int, siginfo_t* info, void*) {
  say(info->si_addr == nullptr ? "null\n" : "not null\n");
  _exit(4);
}

struct sigaction installed_before;
void on_signal_and_chain(int number, siginfo_t* info, void* context) {
  say("later handler\n");
  installed_before.sa_sigaction(number, info, context);
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGSEGV, &action, nullptr);
}

int* volatile nowhere = nullptr;
// Not for UndefinedBehaviorSanitizer, which would say it first.
__attribute__((no_sanitize("undefined"))) void write_nowhere() { *nowhere = 1; }

bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

constexpr const char* kMessage =
    "stack overflow in a task: its stack of [0-9]+ bytes is used up; "
    "JACKDAW_TASK_STACK sets the size";

class Overflow : public testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "sanitizers tell of overflows themselves";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};
using OverflowDeathTest = Overflow;

TEST_F(OverflowDeathTest, IsToldAndKills) {
  EXPECT_EXIT(jd::run([] { return deeper(0); }), testing::KilledBySignal(SIGSEGV), kMessage);
  EXPECT_EXIT(jd::run([] { return fork_deeper(0); }), testing::KilledBySignal(SIGSEGV), kMessage);
  EXPECT_EXIT(jd::run([] { return deeper_at_once(0); }), testing::KilledBySignal(SIGSEGV),
              kMessage);
}

TEST_F(OverflowDeathTest, GoesToTheProgramsHandlerThen) {
  EXPECT_EXIT(
      {
        install(on_signal);
        jd::run([] { return deeper(0); });
      },
      testing::ExitedWithCode(3), std::string(kMessage) + "\nthe program's handler");
}

TEST_F(OverflowDeathTest, AnotherFaultIsTheProgramsAlone) {
  EXPECT_EXIT(jd::run([] { write_nowhere(); }), testing::KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT(
      {
        struct sigaction action {};
        action.sa_sigaction = on_signal_with_info;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, nullptr);
        jd::run([] { write_nowhere(); });
      },
      testing::ExitedWithCode(4), "^null\n$");
  // In a thread that is no worker.
  EXPECT_EXIT(
      {
        jd_task_start(2);
        write_nowhere();
      },
      testing::KilledBySignal(SIGSEGV), "^$");
}

TEST_F(OverflowDeathTest, ALaterHandlerMayChain) {
  EXPECT_EXIT(
      {
        jd_task_start(2);
        struct sigaction action {};
        action.sa_sigaction = on_signal_and_chain;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &installed_before);
        jd::run([] { return deeper(0); });
      },
      testing::KilledBySignal(SIGSEGV), std::string("later handler\n.*") + kMessage);
}

TEST_F(OverflowDeathTest, ASentSignalKills) {
  EXPECT_EXIT(
      {
        jd_task_start(2);
        jd::run([] { kill(getpid(), SIGSEGV); });
        for (;;) pause();
      },
      testing::KilledBySignal(SIGSEGV), "^$");
}

// From the newest byte down, as a deep handler would.
template <std::size_t kBytes>
void on_signal_with_frame(int) {
  volatile char frame[kBytes];
  for (std::size_t i = kBytes; i > 1024; i -= 1024) frame[i - 1] = 1;
  if (frame[kBytes - 1] != 1) _exit(5);
}

template <std::size_t kBytes>
void raise_in_a_task() {
  struct sigaction action {};
  action.sa_handler = on_signal_with_frame<kBytes>;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  jd_task_start(4);
  jd::run([] { raise(SIGUSR1); });
  _exit(0);
}

// Regression: below the stack that workers have for signals lay the scheduler's own memory.
TEST_F(OverflowDeathTest, TheProgramsOtherHandlersHaveRoomAndAGuard) {
  EXPECT_EXIT(raise_in_a_task<200'000>(), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(raise_in_a_task<300'000>(), testing::KilledBySignal(SIGSEGV), "^$");
}

}  // namespace

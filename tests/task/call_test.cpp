// task.req.fork-is-a-call: what is executed for a fork that nobody steals. The parent single-steps
// the worker of a child through two hundred forks, while the other worker is busy; what the
// commonest number of instructions is of is looked at.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>

namespace {

#if defined(__x86_64__) && !defined(JD_SANITIZE_ADDRESS) && !defined(JD_SANITIZE_THREAD) && \
    !defined(JD_SANITIZE_UNDEFINED)

constexpr int kForks = 200;

// The child's, for the parent to read.
volatile int in_fork = 0;
volatile int is_spinning = 0;
volatile int is_done = 0;

[[noreturn]] void fork_many() {
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
  jd_task_start(2);
  jd::run([] {
    jd::scope scope;
    scope.fork([] {
      is_spinning = 1;
      while (is_done == 0) sched_yield();
    });
    while (is_spinning == 0) sched_yield();
    raise(SIGTRAP);  // from here on it is this thread that is stepped
    for (int i = 0; i < kForks; ++i) {
      in_fork = 1;
      const auto [a, b] = jd::par([] { return 1; }, [] { return 2; });
      asm volatile("" : : "r"(a), "r"(b));
      in_fork = 0;
    }
    is_done = 1;
    scope.join();
  });
  _exit(0);
}

struct Fork {
  long instructions = 0;
  long locked = 0;  // atomic read-modify-write instructions
  long fences = 0;
  long system_calls = 0;
};

// Notes what the instruction at this place is.
void look_at(pid_t thread, std::uint64_t place, Fork* fork) {
  std::array<std::uint8_t, 16> code{};
  for (std::size_t i = 0; i < 2; ++i) {
    const long word =
        ptrace(PTRACE_PEEKDATA, thread, reinterpret_cast<void*>(place + 8 * i), nullptr);
    std::memcpy(&code[8 * i], &word, sizeof word);
  }
  constexpr std::string_view kPrefixes = "\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0";
  std::size_t at = 0;
  ++fork->instructions;
  for (; at < 8 && kPrefixes.find(static_cast<char>(code[at])) != kPrefixes.npos; ++at) {
    fork->locked += code[at] == 0xf0;
  }
  if (code[at] >= 0x40 && code[at] < 0x50) ++at;
  const bool of_registers = code[at + 1] >= 0xc0;
  // An exchange with memory is atomic without being told.
  fork->locked += (code[at] == 0x86 || code[at] == 0x87) && !of_registers;
  if (code[at] != 0x0f) return;
  fork->fences += code[at + 1] == 0xae && code[at + 2] >= 0xe8;
  fork->system_calls += code[at + 1] == 0x05;
}

// The worker that is stepped: it has told by the signal. 0: the child ended before.
pid_t wait_for_worker(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  for (;;) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) return 0;
    if (!WIFSTOPPED(status)) {
      if (thread == child) return 0;
      continue;
    }
    const int signal = WSTOPSIG(status);
    if (signal == SIGTRAP && status >> 16 == 0) return thread;
    const bool is_its_own = signal == SIGTRAP || signal == SIGSTOP;
    ptrace(PTRACE_CONT, thread, nullptr, is_its_own ? 0 : signal);
  }
}

// Containers forbid it.
bool may_trace() {
  const pid_t child = fork();
  if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

// By the number of their instructions, with how many there were.
std::map<long, std::pair<int, Fork>> step_forks() {
  std::map<long, std::pair<int, Fork>> forks;
  const pid_t child = fork();
  if (child == 0) fork_many();
  const pid_t thread = wait_for_worker(child);
  long signal = 0;
  bool inside = false;
  Fork one;
  while (thread != 0 && ptrace(PTRACE_SINGLESTEP, thread, nullptr, signal) == 0) {
    int status = 0;
    if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) break;
    signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    const auto read = [&](volatile int* word) {
      return static_cast<int>(ptrace(PTRACE_PEEKDATA, thread, const_cast<int*>(word), nullptr));
    };
    if (read(&is_done) != 0) break;
    if (read(&in_fork) != 0) {
      user_regs_struct registers{};
      ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
      look_at(thread, registers.rip, &one);
      inside = true;
    } else if (inside) {
      auto& [times, fork] = forks[one.instructions];
      ++times;
      fork = one;
      one = Fork();
      inside = false;
    }
  }
  kill(child, SIGKILL);
  int status = 0;
  while (waitpid(-1, &status, __WALL) >= 0 || errno == EINTR) {
  }
  return forks;
}

TEST(Call, AForkThatNobodyStealsIsOne) {
  if (!may_trace()) GTEST_SKIP() << "this system permits no tracing";
  const auto forks = step_forks();
  int most = 0;
  Fork fork;
  for (const auto& [instructions, those] : forks) {
    std::printf("%ld instructions: %d times\n", instructions, those.first);
    if (those.first > most) most = those.first, fork = those.second;
  }
  ASSERT_GT(most, kForks / 2);
  EXPECT_EQ(fork.system_calls, 0);
  EXPECT_EQ(fork.fences, 0);
  if (jd_task_get_mode() == JD_TASK_DEQUE) {
    EXPECT_GT(fork.locked, 0) << "a deque takes an atomic instruction: they are not seen";
  } else {
    EXPECT_EQ(fork.locked, 0);
  }
}

#else

TEST(Call, AForkThatNobodyStealsIsOne) { GTEST_SKIP() << "steps through x86-64's instructions"; }

#endif

}  // namespace

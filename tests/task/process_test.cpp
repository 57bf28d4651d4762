// Tasks in the process around them: its signals, its children, its threads' ends, its limits.
#include <gc.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

long fib(long n) {
  if (n < 2) return n;
  auto [x, y] = jd::par([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
  return x + y;
}

// --- Signals ------------------------------------------------------------------------------------

std::atomic<int> handled{0};
std::atomic<int> handled_in_workers{0};

void count_signal(int) {
  handled.fetch_add(1);
  if (jd_task_in_worker() != 0) handled_in_workers.fetch_add(1);
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(signal, &action, nullptr), 0);
}

TEST(Signals, ComeToTasksAsToTheThreadThatStartedTheWorkers) {
  handle(SIGUSR1);
  handle(SIGUSR2);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  jd_task_start(2);
  jd::run([] {
    raise(SIGUSR1);
    raise(SIGUSR2);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGUSR2), 1);
    EXPECT_EQ(sigismember(&mask, SIGTERM), 0) << "a child of a task's would be deaf to it";
  });
  EXPECT_EQ(handled_in_workers.load(), 1);
}

TEST(Signals, ComeInTheMidstOfSteals) {
  handle(SIGPROF);
  jd_task_start(4);
  const itimerval every = {{0, 1000}, {0, 1000}};
  ASSERT_EQ(setitimer(ITIMER_PROF, &every, nullptr), 0);
  const auto begin = std::chrono::steady_clock::now();
  while (handled_in_workers.load() < 50 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds(30)) {
    ASSERT_EQ(fib(20), 6765);
  }
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  EXPECT_GE(handled_in_workers.load(), 50) << "of " << handled.load();
}

// --- fork() -------------------------------------------------------------------------------------

void* do_nothing(void* argument) { return argument; }

TEST(Fork, LeavesNoRootsInThreadsThatTheChildHasNot) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer can't start threads in such a child";
#endif
  // More than the C library keeps of ended threads' stacks.
  setenv("JACKDAW_TASK_STACK", "64M", 1);
  constexpr int kWorkers = 3;
  jd_task_start(kWorkers);
  std::atomic<int> up{0};
  std::atomic<bool> ends{false};
  std::thread tasks([&] {
    jd::scope scope;
    for (int i = 0; i < kWorkers; ++i) {
      scope.fork([&] {
        up.fetch_add(1);
        while (!ends.load()) usleep(100);
      });
    }
    scope.join();
  });
  while (up.load() < kWorkers) usleep(100);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 3; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, nullptr, do_nothing, nullptr) != 0) _exit(1);
      pthread_join(thread, nullptr);
    }
    GC_gcollect();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ends.store(true);
  tasks.join();
}

// --- The end of the workers ---------------------------------------------------------------------

std::atomic<int> begun{0};
std::atomic<int> ended{0};

struct OfAThread {
  OfAThread() { begun.fetch_add(1); }
  ~OfAThread() {
    usleep(20000);
    ended.fetch_add(1);
  }
};

TEST(Stop, ComesAfterTheDestructorsOfThreadLocalVariables) {
  for (int round = 0; round < 5; ++round) {
    jd_task_start(4);
    jd::parallel_for(0, 64, [](int) {
      thread_local OfAThread it;
      asm volatile("" : : "r"(&it));
      usleep(100);
    });
    jd_task_stop();
    ASSERT_GT(begun.load(), round);
    ASSERT_EQ(ended.load(), begun.load());
  }
}

// --- Limits -------------------------------------------------------------------------------------

struct alignas(JD_TASK_REDUCE_ALIGNMENT) Sum {
  long value;
};

TEST(Reduce, KeepsResultsWhereTheyMayBeAligned) {
  static std::atomic<int> misplaced{0};
  const auto look = [](const void* result) {
    if (reinterpret_cast<std::uintptr_t>(result) % alignof(Sum) != 0) misplaced.fetch_add(1);
  };
  static const auto* const looked = &look;
  Sum sum{};
  jd_task_reduce(
      0, 1000, 1, sizeof sum,
      [](std::size_t begin, std::size_t end, void* result, void*) {
        (*looked)(result);
        static_cast<Sum*>(result)->value = 0;
        for (; begin < end; ++begin) static_cast<Sum*>(result)->value += static_cast<long>(begin);
      },
      [](void* left, const void* right, void*) {
        (*looked)(right);
        static_cast<Sum*>(left)->value += static_cast<const Sum*>(right)->value;
      },
      nullptr, &sum);
  EXPECT_EQ(sum.value, 999 * 1000 / 2);
  EXPECT_EQ(misplaced.load(), 0);
}

void run_where_no_stack_is_to_be_had() {
  // Room for the worker's thread, but not for a task's stack.
  constexpr rlim_t kRoom = rlim_t{1500} << 20;
  const rlimit limit = {kRoom, kRoom};
  setrlimit(RLIMIT_AS, &limit);
  alarm(3);
  jd_task_start(1);
  jd::run([] {});
}

TEST(LimitsDeathTest, ALackOfStacksIsTold) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer needs more address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("JACKDAW_RESERVE", "64M", 1);
  setenv("JACKDAW_TASK_STACK", "1G", 1);
  if (jd_task_get_mode() == JD_TASK_DEQUE) GTEST_SKIP() << "tasks have no stacks of their own";
  EXPECT_EXIT(run_where_no_stack_is_to_be_had(), testing::KilledBySignal(SIGALRM),
              "refuses memory for a task's stack of 1073741824 bytes");
}

}  // namespace

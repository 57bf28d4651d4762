// Tasks in the process around them: its signals, its children, its threads' ends, its limits.
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc.h>
#include <gtest/gtest.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <jackdaw/task.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
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

// A thread that waits for workers lets them collect.
TEST(Signals, AThreadThatBlocksThemMayWaitForTasksThatCollect) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer delivers no signal to a thread that waits";
#endif
  GC_INIT();
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const auto collect = [] {
    for (int i = 0; i < 3; ++i) GC_gcollect();
  };
  jd::run(collect);
  jd::run([] {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    for (const int signal : {SIGTERM, SIGABRT, SIGTRAP, SIGFPE, SIGBUS}) {
      EXPECT_EQ(sigismember(&mask, signal), 1) << "somebody may wait for it by sigwait: " << signal;
    }
    EXPECT_EQ(sigismember(&mask, SIGSEGV), 0) << "a stack overflow would not be told of";
  });
  jd::scope scope;
  for (int i = 0; i < 4; ++i) scope.fork(collect);
  scope.join();
  jd::run([] {
    // Longer than it spins.
    usleep(20000);
    GC_gcollect();
  });
  jd_task_stop();
}

TEST(Signals, WhereTheCollectorHasTheThievesThereIsTheDeque) {
  GC_set_suspend_signal(SIGURG);
  EXPECT_EQ(jd_task_set_mode(JD_TASK_BARRIER), 0);
  jd_task_start(2);
  EXPECT_EQ(jd_task_get_mode(), JD_TASK_DEQUE);
  EXPECT_EQ(fib(18), 2584);
  jd::run([] { GC_gcollect(); });
  GC_gcollect();
}

// --- fork(): task.req.fork
// -------------------------------------------------------------------------------------

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

int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

void keep_busy(std::chrono::milliseconds time) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < time) usleep(100);
}

// The child's task is the last that its scope's owner waits for, on whose stack there is a fork
// that nobody took: of two workers one runs the task, and the other finds work from outside.
TEST(Fork, TheChildOfATaskMayEndAScope) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#endif
  using namespace std::chrono_literals;
  jd_task_start(2);
  const pid_t parent = getpid();
  std::atomic<bool> up{false};
  std::atomic<bool> is_queued{false};
  std::atomic<int> status{-1};
  std::thread outside([&] {
    while (!up.load()) usleep(100);
    jd::scope scope;
    scope.fork([] { keep_busy(100ms); });
    is_queued = true;
    scope.join();
  });
  jd::run([&] {
    jd::par(
        [&] {
          jd::scope scope;
          scope.fork([&] {
            up = true;
            while (!is_queued.load()) usleep(100);
            keep_busy(20ms);
            const pid_t child = fork();
            if (child != 0) status = status_of(child);
          });
          while (!is_queued.load()) usleep(100);
          scope.join();
          if (getpid() != parent) _exit(7);
        },
        [&] {
          if (getpid() != parent) _exit(8);
        });
  });
  outside.join();
  EXPECT_TRUE(WIFEXITED(status.load())) << status.load();
  // In the deque mode the owner's own thread is in the parent.
  const int expected = jd_task_get_mode() == JD_TASK_DEQUE ? 1 : 7;
  EXPECT_EQ(WEXITSTATUS(status.load()), expected);
}

TEST(Fork, TheChildOfATaskThatReturnsEnds) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#endif
  jd_task_start(2);
  std::atomic<int> status{-1};
  jd::run([&] {
    const pid_t child = fork();
    if (child != 0) status = status_of(child);
  });
  EXPECT_TRUE(WIFEXITED(status.load())) << status.load();
  EXPECT_EQ(WEXITSTATUS(status.load()), 1);
}

// It has one worker for good, whose task this is.
TEST(Fork, TheChildOfATaskMayAskForWorkers) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#endif
  jd_task_start(2);
  const int status = jd::run([] {
    const pid_t child = fork();
    if (child != 0) return status_of(child);
    jd_task_start(3);
    keep_busy(std::chrono::milliseconds(20));
    const int sum = jd::parallel_reduce(
        0, 1000, 0, [](int i) { return i; }, std::plus<>());
    _exit(sum == 999 * 500 ? 0 : 7);
  });
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// The workers' locks come before the collector's, also where the program tells of forks itself.
TEST(Fork, ByHandBesideWorkersThatComeAndGo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support such a child";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's allocator may be locked in the child";
#endif
  GC_set_handle_fork(-1);
  GC_INIT();
  GC_allow_register_threads();
  std::atomic<bool> ends{false};
  std::thread starter([&] {
    while (!ends.load()) {
      jd_task_start(3);
      EXPECT_EQ(fib(12), 144);
      jd_task_stop();
    }
  });
  for (int i = 0; i < 50; ++i) {
    GC_atfork_prepare();
    const pid_t child = fork();
    if (child == 0) {
      GC_atfork_child();
      GC_gcollect();
      _exit(fib(10) == 55 ? 0 : 1);
    }
    GC_atfork_parent();
    ASSERT_EQ(status_of(child), 0);
  }
  ends = true;
  starter.join();
}

// The loader's lock is not the child's to wait for. Regression: its thieves waited for ever where a
// thread of the parent's held it.
TEST(Fork, TasksAreStolenInTheChildThoughTheLoaderMayBeLocked) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer can't start threads in such a child";
#endif
  GC_INIT();
  std::atomic<bool> ends{false};
  std::thread iterating([&] {
    const auto pass = [](dl_phdr_info*, std::size_t, void*) { return 0; };
    while (!ends.load()) dl_iterate_phdr(pass, nullptr);
  });
  int status = 0;
  for (int i = 0; i < 40 && status == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      jd_task_start(2);
      std::atomic<bool> is_stolen{false};
      const auto wait = [&] {
        while (!is_stolen.load()) usleep(100);
      };
      jd::run([&] { jd::par(wait, [&] { is_stolen = true; }); });
      jd_task_stop();
      _exit(0);
    }
    status = status_of(child);
  }
  EXPECT_EQ(status, 0);
  ends = true;
  iterating.join();
}

// --- Stacks of the program's own ----------------------------------------------------------------

// A task may wait for its scope there: both stacks stay roots, and tasks go on.
TEST(Fibers, MayWaitForAScope) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer does not know such stacks";
#endif
  constexpr std::size_t kBytes = std::size_t{1} << 18;
  jd_task_start(2);
  jd::run([] {
    static ucontext_t back;
    static ucontext_t fiber;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = std::malloc(kBytes);
    fiber.uc_stack.ss_size = kBytes;
    fiber.uc_link = &back;
    auto* volatile below = static_cast<long*>(GC_malloc_atomic(sizeof(long)));
    *below = 4711;
    makecontext(
        &fiber,
        [] {
          auto* volatile here = static_cast<long*>(GC_malloc_atomic(sizeof(long)));
          *here = 4712;
          std::atomic<bool> up{false};
          jd::scope scope;
          scope.fork([&] {
            up = true;
            for (int i = 0; i < 20; ++i) {
              GC_gcollect();
              for (int k = 0; k < 1000; ++k) {
                *static_cast<long*>(GC_malloc_atomic(sizeof(long))) = 0;
              }
            }
          });
          while (!up.load() && jd_task_get_mode() != JD_TASK_DEQUE) usleep(10);
          scope.join();
          EXPECT_EQ(*here, 4712);
        },
        0);
    swapcontext(&back, &fiber);
    EXPECT_EQ(*below, 4711);
    std::free(fiber.uc_stack.ss_sp);
  });
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

// --- Counters -----------------------------------------------------------------------------------

std::atomic<std::uint64_t> stacks_seen{0};

// Also of a program's callback in a stopped world, where workers may stand anywhere.
TEST(Counters, MayBeReadWithinACollection) {
  jd_task_start(4);
  GC_set_on_collection_event([](GC_EventType event) {
    if (event != GC_EVENT_POST_STOP_WORLD) return;
    jd_task_counters counters;
    jd_task_get_counters(&counters);
    stacks_seen.store(counters.stacks);
  });
  for (int i = 0; i < 100; ++i) {
    jd::scope scope;
    for (int k = 0; k < 8; ++k) {
      scope.fork([] { jd::par([] { usleep(50); }, [] { usleep(100); }); });
    }
    GC_gcollect();
    scope.join();
  }
  GC_set_on_collection_event(nullptr);
  if (jd_task_get_mode() != JD_TASK_DEQUE) {
    EXPECT_GT(stacks_seen.load(), 0u);
  }
}

// --- Children -----------------------------------------------------------------------------------

TEST(Children, OfABlockingSectionMayBlock) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts no threads in the child of a process with several";
#endif
  jd_task_start(2);
  const int status = jd::run([] {
    const pid_t child = jd::blocking([] { return fork(); });
    if (child == 0) {
      alarm(20);
      const int seven = jd::blocking([] { return jd::blocking([] { return 7; }); });
      const auto [a, b] = jd::par([] { return 1; }, [] { return 2; });
      _exit(seven + a + b);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    return ended;
  });
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 10);
}

// --- Ends ---------------------------------------------------------------------------------------

struct ForksAtItsEnd {
  long touched = 0;
  ~ForksAtItsEnd() {
    touched = fib(10) + jd::run([] { return fib(10); });
  }
};
thread_local ForksAtItsEnd forks_at_its_end;

TEST(Ends, DestructorsOfThreadLocalVariablesMayFork) {
  for (int i = 0; i < 5; ++i) {
    jd_task_start(2);
    jd::run([] { forks_at_its_end.touched = 1; });
    jd_task_stop();
  }
  EXPECT_EQ(fib(12), 144);
}

// As JACKDAW_TASK_MODE has them, which ctest sets.
constexpr std::string_view kModes[] = {"deque", "stop", "barrier"};

TEST(Modes, TheEnvironmentHasTheLastWord) {
  const char* asked = std::getenv("JACKDAW_TASK_MODE");
  const jd_task_mode to_be = jd_task_get_mode();
  for (const jd_task_mode mode : {JD_TASK_DEQUE, JD_TASK_STOP, JD_TASK_BARRIER}) {
    if (asked == nullptr) break;
    EXPECT_EQ(jd_task_set_mode(mode), mode == to_be && asked == kModes[mode] ? 1 : 0) << mode;
  }
  jd_task_start(2);
  EXPECT_EQ(jd_task_get_mode(), to_be);
  EXPECT_EQ(jd_task_set_mode(to_be), 1) << "it is theirs";
}
// What was promised holds, whatever the other thread has seen by then.
TEST(Modes, MayBeChosenWhileAnotherThreadStartsTheWorkers) {
  unsetenv("JACKDAW_TASK_MODE");
  if (jd_task_set_mode(JD_TASK_BARRIER) == 0) GTEST_SKIP() << "there is one mode only";
  ASSERT_EQ(jd_task_set_mode(JD_TASK_DEQUE), 1);
  std::atomic<bool> is_known{false};
  std::atomic<bool> may_start{false};
  std::thread starter([&] {
    GC_malloc(1);  // It registers the thread, which takes the lock, too.
    is_known.store(true);
    while (!may_start.load()) std::this_thread::yield();
    jd_task_start(1);
  });
  while (!is_known.load()) std::this_thread::yield();
  GC_call_with_alloc_lock(
      [](void* flag) -> void* {
        static_cast<std::atomic<bool>*>(flag)->store(true);
        // Until it waits for this lock.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_EQ(jd_task_set_mode(JD_TASK_BARRIER), 1);
        return nullptr;
      },
      &may_start);
  starter.join();
  EXPECT_EQ(jd_task_get_mode(), JD_TASK_BARRIER);
}

jd_task_mode mode_before;
jd_task_mode mode_of_parent;
jd_task_mode mode_of_child;

// The program's handlers ask while the runtime's own, which come in between, hold its locks.
void fork_and_ask() {
  const jd_task_mode mode = jd_task_get_mode();
  mode_before = mode_of_parent = mode_of_child = static_cast<jd_task_mode>(-1);
  alarm(20);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(mode_of_child == mode ? 0 : 1);
  }
  alarm(0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(mode_before, mode);
  EXPECT_EQ(mode_of_parent, mode);
}

TEST(Modes, MayBeAskedForInAProgramsForkHandlers) {
  ASSERT_EQ(pthread_atfork([] { mode_before = jd_task_get_mode(); },
                           [] { mode_of_parent = jd_task_get_mode(); },
                           [] { mode_of_child = jd_task_get_mode(); }),
            0);
  jd_task_start(2);
  fork_and_ask();
  // The runtime's handlers stay.
  jd_task_stop();
  fork_and_ask();
}

TEST(Modes, ThereAreThree) {
  EXPECT_EQ(jd_task_set_mode(static_cast<jd_task_mode>(JD_TASK_BARRIER + 1)), 0);
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
  alarm(60);
  jd_task_start(1);
  jd::run([] {});
}

// It waited for ever for a stack that nobody had.
TEST(LimitsDeathTest, ALackOfStacksIsToldAndEndsTheProgram) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer needs more address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("JACKDAW_RESERVE", "64M", 1);
  setenv("JACKDAW_TASK_STACK", "1G", 1);
  if (jd_task_get_mode() == JD_TASK_DEQUE) GTEST_SKIP() << "tasks have no stacks of their own";
  EXPECT_EXIT(run_where_no_stack_is_to_be_had(), testing::KilledBySignal(SIGABRT),
              "refuses memory for a task's stack of 1073741824 bytes(.|\n)*"
              "no task can run: .* of 1073741824 bytes; JACKDAW_TASK_STACK");
}

}  // namespace

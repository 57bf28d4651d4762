// Signals: handlers that interrupt the allocator, and threads that block what
// the collector stops them with.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

std::atomic<long> ticks;

void count_tick(int) { ++ticks; }

class Timer {
 public:
  explicit Timer(void (*handler)(int), int flags) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, &old_);
    const itimerval every = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~Timer() {
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &old_, nullptr);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  struct sigaction old_ = {};
};

TEST(Signals, InterruptAllocationAndCollection) {
  JD_SKIP_UNDER_TSAN(
      "forgets a thread's signal mask when a signal comes while it hands over others");
  ticks = 0;
  void* keep = make_list(5000);
  {
    Timer timer(count_tick, SA_RESTART);
    run_threads(3, [](std::size_t) {
      for (std::size_t i = 0; i < 30; ++i) {
        void* list = make_list(rounds(3000));
        GC_gcollect();
        EXPECT_EQ(list_length(list), rounds(3000));
      }
    });
  }
  EXPECT_EQ(list_length(keep), 5000u);
  EXPECT_GT(ticks.load(), 0);
}

TEST(Signals, StopsDoNotDisturbSystemCalls) {
  JD_SKIP_UNDER_TSAN("does not take read() for a call that blocks, and hands no signal over in it");
  // A thread in sleep or read while others collect sees neither an error nor a short time.
  std::atomic<bool> finish{false};
  std::atomic<int> interrupted{0};
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  GcThread reader([&] {
    char byte;
    while (!finish.load()) {
      const ssize_t n = read(pipe_ends[0], &byte, 1);
      if (n < 0 && errno == EINTR) ++interrupted;
    }
  });
  for (int i = 0; i < 100; ++i) {
    GC_gcollect();
    ASSERT_EQ(write(pipe_ends[1], "x", i % 10 == 0), i % 10 == 0);
  }
  finish = true;
  ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
  reader.join();
  EXPECT_EQ(interrupted.load(), 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

// os.req.handler
TEST(Signals, ErrnoSurvivesAStop) {
  std::atomic<bool> finish{false};
  std::atomic<int> changed{0};
  GcThread thread([&] {
    while (!finish.load()) {
      errno = 4242;
      for (int i = 0; i < 1000; ++i) asm volatile("" : : : "memory");
      if (errno != 4242) ++changed;
    }
  });
  for (int i = 0; i < 200; ++i) GC_gcollect();
  finish = true;
  thread.join();
  EXPECT_EQ(changed.load(), 0);
}

// --- Stopped threads
// ---------------------------------------------------------------------------------

pthread_t stopped_thread;
std::atomic<bool> world_is_stopped;
std::atomic<int> handled;
std::atomic<int> handled_while_stopped;

TEST(Signals, NoHandlerRunsInAStoppedThread) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++(world_is_stopped ? handled_while_stopped : handled); };
  action.sa_flags = SA_RESTART;
  struct sigaction old = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  std::atomic<bool> started{false};
  std::atomic<bool> finish{false};
  GcThread thread([&] {
    stopped_thread = pthread_self();
    started = true;
    // Much of the time is spent clearing, where a thread puts its stop off; nothing is left over,
    // so that this one need not collect.
    while (!finish.load()) {
      void* first = opaque(GC_malloc(8000));
      void* second = opaque(GC_malloc(8000));
      GC_free(first);
      GC_free(second);
    }
  });
  while (!started.load()) sched_yield();
  GC_set_on_collection_event([](GC_EventType event) {
    if (event == GC_EVENT_PRE_START_WORLD) world_is_stopped = false;
    if (event != GC_EVENT_POST_STOP_WORLD) return;
    world_is_stopped = true;
    // It may be this one that collects.
    if (pthread_equal(pthread_self(), stopped_thread) != 0) return;
    pthread_kill(stopped_thread, SIGUSR1);
    usleep(300);
  });
  for (int i = 0; i < 500; ++i) {
    GC_gcollect();
    usleep(100);
  }
  GC_set_on_collection_event(nullptr);
  finish = true;
  thread.join();
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_EQ(handled_while_stopped.load(), 0);
  EXPECT_GT(handled.load(), 0);
}

// --- Blocked signals
// ---------------------------------------------------------------------------------

TEST(Signals, TheSignalsAreKnownAndDistinct) {
  EXPECT_GT(GC_get_suspend_signal(), 0);
  EXPECT_NE(GC_get_suspend_signal(), GC_get_thr_restart_signal());
}

TEST(Signals, GcPthreadSigmaskLeavesTheSuspendSignalOpen) {
  run_threads(1, [](std::size_t) {
    sigset_t all;
    sigfillset(&all);
    sigset_t before;
    EXPECT_EQ(GC_pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    sigset_t now;
    EXPECT_EQ(GC_pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    EXPECT_EQ(sigismember(&now, GC_get_suspend_signal()), 0);
    EXPECT_NE(sigismember(&now, SIGUSR2), 0);
    EXPECT_EQ(GC_pthread_sigmask(SIG_BLOCK, &all, nullptr), 0);
    GC_pthread_sigmask(SIG_SETMASK, nullptr, &now);
    EXPECT_EQ(sigismember(&now, GC_get_suspend_signal()), 0);
    EXPECT_EQ(GC_pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  });
}

std::atomic<bool> masked;
std::atomic<bool> unmask;

void* block_everything(void*) {
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  masked = true;
  while (!unmask.load()) sched_yield();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (true) sched_yield();
}

JD_CHILD(blocked_suspend_signal) {
  GC_INIT();
  pthread_t thread;
  GC_pthread_create(&thread, nullptr, block_everything, nullptr);
  while (!masked.load()) sched_yield();
  GC_gcollect();
  return 0;
}

TEST(Signals, AThreadThatBlocksTheSuspendSignalIsNamed) {
  JD_OURS_ONLY("bdwgc waits without a word");
  // It may wait for ever, but not in silence.
  const ChildResult r = run_hanging_child("blocked_suspend_signal", 8);
  EXPECT_TRUE(r.timed_out || r.signal == SIGABRT) << r;
  EXPECT_GE(lines_with(r.err, "signal"), 1u) << r;
  EXPECT_NE(r.err.find(std::to_string(GC_get_suspend_signal())), std::string::npos) << r;
  // One line says it; it is not poured out.
  EXPECT_LE(count_lines(r.err), 6u) << r;
}

JD_CHILD(default_suspend_signal) {
  const int before = GC_get_suspend_signal();
  const int before_restart = GC_get_thr_restart_signal();
  GC_set_suspend_signal(SIGUSR1);
  GC_set_suspend_signal(-1);
  GC_set_thr_restart_signal(SIGUSR2);
  GC_set_thr_restart_signal(-1);
  GC_INIT();
  GC_gcollect();
  const bool same = GC_get_suspend_signal() == before && before > 0 &&
                    GC_get_thr_restart_signal() == before_restart && before_restart > 0;
  return same ? 0 : 1;
}

// Regression: it ended the program.
TEST(Signals, MinusOneIsTheDefaultOne) {
  const ChildResult r = run_child("default_suspend_signal", {}, 20);
  EXPECT_TRUE(r.ok()) << r;
}

#if defined(__x86_64__)
struct sigaction collectors_action;
std::atomic<int> entered_unaligned;

// As qemu-user enters handlers: with eight bytes too many, or too few, on the stack.
void enter_unaligned(int number, siginfo_t* info, void* context) {
  ++entered_unaligned;
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "and $-16, %%rsp\n\t"
      "sub $264, %%rsp\n\t"  // beyond the red zone
      "call *%[function]\n\t"
      "mov %%rbx, %%rsp"
      : "+D"(number), "+S"(info), "+d"(context)
      : [function] "r"(collectors_action.sa_sigaction)
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
}

JD_CHILD(unaligned_stop_handler) {
  GC_INIT();
  std::atomic<bool> finish{false};
  std::atomic<bool> started{false};
  {
    GcThread thread([&] {
      void* volatile list = make_list(100);
      started = true;
      while (!finish.load()) sched_yield();
      if (list_length(list) != 100) _exit(3);
    });
    while (!started.load()) sched_yield();
    const int number = GC_get_suspend_signal();
    if (sigaction(number, nullptr, &collectors_action) != 0) return 2;
    struct sigaction action = collectors_action;
    action.sa_sigaction = enter_unaligned;
    sigaction(number, &action, nullptr);
    for (int i = 0; i < 5; ++i) GC_gcollect();
    finish = true;
  }
  return entered_unaligned.load() >= 5 ? 0 : 1;
}

// Regression: qemu-user does so, and the handler stored in pairs of words, which want alignment.
TEST(Signals, TheStopHandlerMayBeEnteredWithAnUnalignedStack) {
  JD_SKIP_UNDER_TSAN("has a handler of its own before it");
  JD_OURS_ONLY("bdwgc's handler wants what the ABI says");
  const ChildResult r = run_child("unaligned_stop_handler", {}, 20);
  EXPECT_TRUE(r.ok()) << r;
}
#endif

void* run_for_ever(void*) {
  while (true) sched_yield();
}

// The child replaces the collector's handler after the start.
int collect_with_handler(void (*handler)(int)) {
  GC_INIT();
  pthread_t thread;
  GC_pthread_create(&thread, nullptr, run_for_ever, nullptr);
  ::signal(GC_get_suspend_signal(), handler);
  GC_gcollect();
  return 0;
}

JD_CHILD(ignored_suspend_signal) { return collect_with_handler(SIG_IGN); }
JD_CHILD(replaced_suspend_handler) {
  return collect_with_handler([](int) {});
}

TEST(Signals, AProgramThatIgnoresTheSuspendSignalEndsWithALine) {
  JD_OURS_ONLY("bdwgc says something else");
  const ChildResult r = run_child("ignored_suspend_signal", {}, 20);
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_EQ(lines_with(r.err, "ignores signal " + std::to_string(GC_get_suspend_signal())), 1u)
      << r;
}

TEST(Signals, AReplacedSuspendHandlerIsNamed) {
  JD_OURS_ONLY("bdwgc gives up");
  const ChildResult r = run_hanging_child("replaced_suspend_handler", 4);
  EXPECT_TRUE(r.timed_out) << r;
  EXPECT_GE(lines_with(r.err, "whose handler the program has replaced"), 1u) << r;
}

JD_CHILD(suspend_signal_unblocked_later) {
  GC_INIT();
  pthread_t thread;
  GC_pthread_create(&thread, nullptr, block_everything, nullptr);
  while (!masked.load()) sched_yield();
  pthread_t helper;
  // Not the collector's thread, and so never stopped.
  pthread_create(
      &helper, nullptr,
      [](void*) -> void* {
        sleep(3);
        unmask = true;
        return nullptr;
      },
      nullptr);
  GC_gcollect();
  // So that no thread is left over, which ThreadSanitizer would report.
  pthread_join(helper, nullptr);
  return 0;
}

TEST(Signals, ABlockedThreadIsWaitedFor) {
  const ChildResult r = run_child("suspend_signal_unblocked_later", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

// The collector holds the heap's lock and waits for a thread that blocks its signal, and that waits
// for the lock: to end, to allocate, to collect (os.req.lock-lets-stop).
template <class Then>
void collect_beside_a_thread_that_blocks_signals(Then then) {
  masked = false;
  GcThread thread([then] {
    opaque(make_list(10));
    sigset_t all;
    sigfillset(&all);
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    masked = true;
    // By then the other is likely to collect.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    then();
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    EXPECT_NE(sigismember(&now, GC_get_suspend_signal()), 0) << "the mask was not put back";
  });
  while (!masked.load()) sched_yield();
  GC_gcollect();
}

JD_CHILD(blocked_signal_at_the_end) {
  GC_INIT();
  for (int i = 0; i < 10; ++i) collect_beside_a_thread_that_blocks_signals([] {});
  return testing::Test::HasFailure() ? 1 : 0;
}

JD_CHILD(blocked_signal_in_allocation) {
  GC_INIT();
  for (int i = 0; i < 5; ++i) {
    collect_beside_a_thread_that_blocks_signals([] {
      for (std::size_t k = rounds(100); k != 0; --k) opaque(make_list(1000));
      opaque(GC_malloc(1000000));
    });
    collect_beside_a_thread_that_blocks_signals([] { GC_gcollect(); });
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(Signals, AThreadThatBlocksThemMayEndBesideACollection) {
  JD_OURS_ONLY("bdwgc waits for ever");
  const ChildResult r = run_child("blocked_signal_at_the_end", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Signals, AThreadThatBlocksThemMayAllocateBesideACollection) {
  JD_OURS_ONLY("bdwgc waits for ever");
  const ChildResult r = run_child("blocked_signal_in_allocation", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

// A timer's signal ends each wait early.
JD_CHILD(blocked_signal_beside_a_timer) {
  GC_INIT();
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 3; ++i) {
    collect_beside_a_thread_that_blocks_signals([&alarms] {
      pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
      GC_gcollect();
    });
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
TEST(Signals, AThreadThatBlocksThemMayCollectBesideACollectionWithATimer) {
  JD_OURS_ONLY("bdwgc waits for ever");
  const ChildResult r = run_child("blocked_signal_beside_a_timer", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

// The new thread waits for the lock before its maker goes on.
JD_CHILD(blocked_signal_while_a_thread_is_made) {
  GC_INIT();
  std::atomic<bool> enough{false};
  GcThread collector([&] {
    while (!enough) GC_gcollect();
  });
  for (std::size_t i = rounds(200); i != 0; --i) {
    sigset_t all;
    sigfillset(&all);
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (GC_pthread_create(
            &thread, nullptr, [](void* x) { return x; }, nullptr) != 0)
      return 2;
    // That waits for it, too, where it ends.
    if (i % 2 == 0) GC_pthread_join(thread, nullptr);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, &before, &now);
    EXPECT_NE(sigismember(&now, GC_get_suspend_signal()), 0) << "the mask was not put back";
    if (i % 2 != 0) GC_pthread_join(thread, nullptr);
  }
  enough = true;
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(Signals, AThreadThatBlocksThemMayMakeAThreadBesideACollection) {
  JD_OURS_ONLY("bdwgc waits for ever");
  const ChildResult r = run_child("blocked_signal_while_a_thread_is_made", {}, 60);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(all_blocked_from_the_start) {
  GC_INIT();
  // As ECL does: signals are blocked while a thread is being made, and it inherits the mask.
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  GC_pthread_sigmask(SIG_SETMASK, &all, &before);
  std::vector<GcThread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 20; ++k) {
        opaque(make_list(rounds(1000)));
        GC_gcollect();
      }
    });
  }
  GC_pthread_sigmask(SIG_SETMASK, &before, nullptr);
  threads.clear();
  return 0;
}

TEST(Signals, ThreadsMadeWithAllSignalsBlocked) {
  const ChildResult r = run_child("all_blocked_from_the_start", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

// By a call that the collector knows nothing of.
void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

JD_CHILD(all_blocked_before_the_start) {
  block_all_signals();
  GC_INIT();
  run_threads(4, [](std::size_t) {
    for (int k = 0; k < 20; ++k) {
      opaque(make_list(rounds(1000)));
      GC_gcollect();
    }
  });
  return 0;
}

TEST(Signals, AllBlockedBeforeTheStart) {
  const ChildResult r = run_child("all_blocked_before_the_start", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

JD_CHILD(other_suspend_signal) {
  GC_set_suspend_signal(SIGUSR2);
  GC_set_thr_restart_signal(SIGUSR1);
  GC_INIT();
  if (GC_get_suspend_signal() != SIGUSR2) return 1;
  std::vector<GcThread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 30; ++k) {
        opaque(make_list(100));
        GC_gcollect();
      }
    });
  }
  threads.clear();
  return 0;
}

TEST(Signals, AnotherSuspendSignalCanBeChosen) {
  const ChildResult r = run_child("other_suspend_signal", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test

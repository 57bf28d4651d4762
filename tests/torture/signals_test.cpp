// Signals: handlers that interrupt the allocator, alternate stacks, and threads that block what
// the collector stops them with.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
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

// --- Alternate stacks
// --------------------------------------------------------------------------------

std::atomic<int> in_handler;
std::atomic<bool> leave_handler;
std::atomic<int> bad;

void stay_on_alternate_stack(int) {
  // An object that only this frame, on the alternate stack, holds.
  void* volatile list = make_list(100);
  in_handler.fetch_add(1);
  while (!leave_handler.load()) sched_yield();
  if (list_length(list) != 100) ++bad;
}

TEST(Signals, ACollectionWhileAHandlerRunsOnAnAlternateStack) {
  JD_SKIP_UNDER_TSAN("runs late handlers with all signals blocked, and on the ordinary stack");
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  struct sigaction action = {};
  action.sa_handler = stay_on_alternate_stack;
  action.sa_flags = SA_ONSTACK;
  struct sigaction old = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  constexpr int kThreads = 3;
  in_handler = 0;
  leave_handler = false;
  bad = 0;
  std::atomic<pthread_t> ids[kThreads];
  std::atomic<int> ready{0};
  std::vector<GcThread> threads;
  for (auto& id : ids) {
    threads.emplace_back([&id, &ready] {
      std::vector<char> memory(static_cast<std::size_t>(256) * 1024);
      stack_t stack = {};
      stack.ss_sp = memory.data();
      stack.ss_size = memory.size();
      stack_t before = {};
      sigaltstack(&stack, &before);
      void* volatile list = make_list(50);
      id = pthread_self();
      ++ready;
      while (!leave_handler.load()) sched_yield();
      if (list_length(list) != 50) ++bad;
      sigaltstack(&before, nullptr);
    });
  }
  while (ready.load() < kThreads) sched_yield();
  for (auto& id : ids) pthread_kill(id.load(), SIGUSR1);
  while (in_handler.load() < kThreads) sched_yield();
  for (int i = 0; i < 20; ++i) {
    GC_gcollect();
    opaque(make_list(rounds(5000)));
  }
  leave_handler = true;
  threads.clear();
  EXPECT_EQ(bad.load(), 0);
  sigaction(SIGUSR1, &old, nullptr);
}

std::atomic<int> handler_collections;

void collect_in_handler(int) {
  void* volatile list = make_list(100);
  GC_gcollect();
  opaque(make_list(rounds(1000)));
  GC_gcollect();
  if (list_length(list) != 100) ++bad;
  ++handler_collections;
}

TEST(Signals, AHandlerOnAnAlternateStackMayCollect) {
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  struct sigaction action = {};
  action.sa_handler = collect_in_handler;
  action.sa_flags = SA_ONSTACK;
  struct sigaction old = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  bad = handler_collections = 0;
  std::vector<char> memory(static_cast<std::size_t>(512) * 1024);
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  stack_t before = {};
  ASSERT_EQ(sigaltstack(&stack, &before), 0);
  // Synchronous: not in the middle of the allocator.
  void* volatile mine = make_list(77);
  for (int i = 0; i < 20; ++i) raise(SIGUSR1);
  EXPECT_EQ(handler_collections.load(), 20);
  EXPECT_EQ(list_length(mine), 77u);
  EXPECT_EQ(bad.load(), 0);
  sigaltstack(&before, nullptr);
  sigaction(SIGUSR1, &old, nullptr);
}

// As many frames of some size, with objects in the last that nothing else holds.
[[gnu::noinline]] int lost_at_depth(int frames) {
  volatile char frame[4096];
  frame[0] = 1;
  if (frames > 0) return lost_at_depth(frames - 1) + frame[0] - 1;
  constexpr int kObjects = 64;
  void* volatile objects[kObjects];
  std::uintptr_t hidden[kObjects];
  for (int i = 0; i < kObjects; ++i) {
    objects[i] = GC_malloc(64);
    hidden[i] = ~reinterpret_cast<std::uintptr_t>(objects[i]);
  }
  raise(SIGUSR1);
  int lost = 0;
  for (int i = 0; i < kObjects; ++i) {
    if (GC_base(reinterpret_cast<void*>(~hidden[i])) != objects[i]) ++lost;
  }
  return lost;
}

// The alternate stack is an array in a frame of the thread's own stack: what the signal interrupts
// lies below it, where the stack pointer does not lead.
int lost_below(int collector_of_another) {
  alignas(16) char memory[128 * 1024];
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  stack_t before = {};
  sigaltstack(&stack, &before);
  struct sigaction action = {};
  action.sa_handler =
      collector_of_another != 0 ? stay_on_alternate_stack : [](int) { GC_gcollect(); };
  action.sa_flags = SA_ONSTACK;
  struct sigaction old = {};
  sigaction(SIGUSR1, &action, &old);
  const int lost = lost_at_depth(3);
  sigaction(SIGUSR1, &old, nullptr);
  sigaltstack(&before, nullptr);
  return lost;
}

JD_CHILD(alternate_stack_within_the_stack) {
  GC_INIT();
  GC_allow_register_threads();
  const int in_main = lost_below(0);
  int in_thread = 0;
  {
    GcThread thread([&] { in_thread = lost_below(0); });
  }
  int by_another = 0;
  in_handler = 0;
  leave_handler = false;
  {
    GcThread thread([&] { by_another = lost_below(1); });
    while (in_handler.load() == 0) sched_yield();
    GC_gcollect();
    leave_handler = true;
  }
  std::printf("%d %d %d\n", in_main, in_thread, by_another);
  return 0;
}

TEST(Signals, AnAlternateStackMayLieWithinTheStack) {
  JD_SKIP_UNDER_TSAN("runs late handlers with all signals blocked, and on the ordinary stack");
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  const ChildResult r = run_child("alternate_stack_within_the_stack");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "0 0 0\n");
}

JD_CHILD(alternate_stack_over_a_grown_stack) {
  GC_INIT();
  // Not in static data, which the collector scans while its own frames change there.
  std::vector<char> memory(static_cast<std::size_t>(256) * 1024);
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) { GC_gcollect(); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  // While the main thread's stack is short, then when it has grown.
  raise(SIGUSR1);
  const int lost = lost_at_depth(200);
  if (lost != 0) std::fprintf(stderr, "%d objects are lost\n", lost);
  return lost == 0 ? 0 : 1;
}

TEST(Signals, TheMainStackMayGrowBetweenAlternateStacks) {
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  const ChildResult r = run_child("alternate_stack_over_a_grown_stack", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL, Linux 6.13

// Runs a thread on that stack which collects on an alternate one. Is anything lost?
int lose_on_stack(void* low, std::size_t size) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, low, size);
  struct sigaction action = {};
  action.sa_handler = [](int) { GC_gcollect(); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  const auto body = [](void*) -> void* {
    std::vector<char> memory(static_cast<std::size_t>(256) * 1024);
    stack_t stack = {};
    stack.ss_sp = memory.data();
    stack.ss_size = memory.size();
    sigaltstack(&stack, nullptr);
    const bool lost = lost_at_depth(20) != 0;
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
    return lost ? &bad : nullptr;
  };
  pthread_t thread;
  void* failed = nullptr;
  if (GC_pthread_create(&thread, &attributes, body, nullptr) != 0) return 2;
  if (GC_pthread_join(thread, &failed) != 0) return 2;
  return failed == nullptr ? 0 : 1;
}

char* map_stack(std::size_t bytes) {
  void* const place =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<char*>(place);
}
constexpr std::size_t kStackSize = std::size_t{1} << 20;

// A thread's stack as libc makes them since 2.42: the guard page is in the stack's own mapping.
JD_CHILD(alternate_stack_over_a_guard_page) {
  GC_INIT();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  char* const place = map_stack(page + kStackSize);
  if (place == nullptr || madvise(place, page, kInstallGuard) != 0) return 2;
  return lose_on_stack(place + page, kStackSize);
}

// A stack that the program brought, with its guard pages inside, and a page near its top of which
// the system has made a mapping of its own.
JD_CHILD(alternate_stack_over_the_programs_guard_page) {
  GC_INIT();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  char* const place = map_stack(kStackSize);
  if (place == nullptr || mprotect(place, 4 * page, PROT_NONE) != 0) return 2;
  if (madvise(place + kStackSize - 4 * page, page, MADV_DONTDUMP) != 0) return 2;
  return lose_on_stack(place, kStackSize);
}

TEST(Signals, AThreadsStackMayHaveTheProgramsGuardPages) {
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  const ChildResult r = run_child("alternate_stack_over_the_programs_guard_page", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Signals, AThreadsStackMayHaveItsGuardPageInItsMapping) {
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const place =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  const bool can_guard = madvise(place, page, kInstallGuard) == 0;
  munmap(place, page);
  if (!can_guard) GTEST_SKIP() << "this kernel has no guard pages in the middle of a mapping";
  const ChildResult r = run_child("alternate_stack_over_a_guard_page", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
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
  const ChildResult r = run_child("blocked_suspend_signal", {}, 8);
  EXPECT_TRUE(r.timed_out || r.signal == SIGABRT) << r;
  EXPECT_GE(lines_with(r.err, "signal"), 1u) << r;
  EXPECT_NE(r.err.find(std::to_string(GC_get_suspend_signal())), std::string::npos) << r;
  // One line says it; it is not poured out.
  EXPECT_LE(count_lines(r.err), 6u) << r;
}

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
  const ChildResult r = run_child("replaced_suspend_handler", {}, 4);
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

// fork from programs with threads that allocate and collect: the child has a working collector,
// and so have its children (world.req.fork).
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include "child.hpp"
#include "emulator.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

// The exit status of a child, or 1000 + the signal that ended it, or -1 if it had to be killed.
int wait_for(pid_t pid, int seconds) {
  const std::time_t end = std::time(nullptr) + seconds;
  for (;;) {
    int status = 0;
    const pid_t result = waitpid(pid, &status, WNOHANG);
    if (result == pid) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    if (result < 0 && errno != EINTR) return -2;
    if (std::time(nullptr) > end) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return -1;
    }
    usleep(500);
  }
}

// Children whose marking makes no helper, which ThreadSanitizer has die in one of a process with
// several threads.
Environment without_helpers() {
#if defined(JD_SANITIZE_THREAD)
  return {{"GC_MARKERS", "1"}};
#else
  return {};
#endif
}

// What every child does: its inherited data is whole, and the collector works.
int child_work(const void* inherited, std::size_t length) {
  if (list_length(inherited) != length) return 10;
  void* volatile list = make_list(rounds(2000));
  GC_gcollect();
  opaque(make_list(rounds(20000)));
  GC_gcollect();
  if (list_length(list) != rounds(2000)) return 11;
  if (list_length(inherited) != length) return 12;
  return 0;
}

int child_threads() {
  static std::atomic<int> failures;
  run_threads(2, [](std::size_t) {
    for (int i = 0; i < 5; ++i) {
      void* volatile list = make_list(rounds(500));
      GC_gcollect();
      if (list_length(list) != rounds(500)) ++failures;
    }
  });
  return failures.load() == 0 ? 0 : 13;
}

constexpr std::size_t kLength = 1000;

JD_CHILD(fork_alone) {
  GC_set_handle_fork(1);
  GC_INIT();
  void* volatile list = make_list(kLength);
  for (int i = 0; i < 30; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child_work(list, kLength));
    const int status = wait_for(pid, 20);
    if (status != 0) return status < 0 ? 99 : status % 1000;
  }
  return child_work(list, kLength);
}

int fork_some(void* list) {
  int worst = 0;
  for (int i = 0; i < static_cast<int>(rounds(60)) && worst == 0; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child_work(list, kLength));
    worst = wait_for(pid, 20);
  }
  return worst < 0 ? 99 : worst % 1000;
}

void iterate_until(const std::atomic<bool>* finish) {
  const auto pass = [](dl_phdr_info*, std::size_t, void*) { return 0; };
  while (!finish->load()) dl_iterate_phdr(pass, nullptr);
}

// The loader's lock is not the child's to wait for.
JD_CHILD(fork_while_iterating) {
  GC_set_handle_fork(1);
  GC_INIT();
  std::atomic<bool> finish{false};
  const GcThread iterating([&finish] { iterate_until(&finish); });
  void* volatile list = make_list(kLength);
  const int worst = fork_some(list);
  finish = true;
  return worst;
}

// Neither where the collector does not know the thread.
JD_CHILD(fork_while_a_stranger_iterates) {
  GC_set_handle_fork(1);
  GC_INIT();
  std::atomic<bool> finish{false};
  std::thread iterating([&finish] { iterate_until(&finish); });
  void* volatile list = make_list(kLength);
  const int worst = fork_some(list);
  finish = true;
  iterating.join();
  return worst;
}

// Nor where its list is in the midst of a change that the child does not end.
JD_CHILD(fork_while_loading) {
  GC_set_handle_fork(1);
  GC_INIT();
  std::atomic<bool> finish{false};
  const GcThread loading([&finish] {
    while (!finish.load()) {
      if (void* library = dlopen("libutil.so.1", RTLD_NOW)) dlclose(library);
      if (void* library = dlopen("libanl.so.1", RTLD_NOW)) dlclose(library);
    }
  });
  void* volatile list = make_list(kLength);
  const int worst = fork_some(list);
  finish = true;
  return worst;
}

int fork_busy(int times, bool with_threads, bool nested) {
  GC_set_handle_fork(1);
  GC_INIT();
  std::atomic<bool> finish{false};
  void* volatile list = make_list(kLength);
  int worst = 0;
  {
    std::vector<GcThread> threads;
    threads.reserve(3);
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&finish, t] {
        while (!finish.load()) {
          opaque(make_list(200, 16 + 16 * static_cast<std::size_t>(t)));
          if (t == 0) GC_gcollect();
        }
      });
    }
    for (int i = 0; i < times && worst == 0; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        int status = child_work(list, kLength);
        if (status == 0 && with_threads) status = child_threads();
        if (status == 0 && nested) {
          const pid_t grandchild = fork();
          if (grandchild == 0) _exit(child_work(list, kLength));
          status = wait_for(grandchild, 20);
        }
        _exit(status < 0 ? 98 : status > 255 ? 97 : status);
      }
      const int status = wait_for(pid, 30);
      if (status != 0) {
        std::fprintf(stderr, "fork %d: %d\n", i, status);
        worst = status < 0 ? 99 : 96;
      }
    }
    finish = true;
  }
  return worst != 0 ? worst : child_work(list, kLength);
}

JD_CHILD(fork_while_busy) { return fork_busy(static_cast<int>(rounds(200)), false, false); }
JD_CHILD(fork_then_threads) { return fork_busy(static_cast<int>(rounds(80)), true, false); }
JD_CHILD(fork_nested) { return fork_busy(static_cast<int>(rounds(80)), true, true); }

TEST(Fork, FromAProgramWithOneThread) {
  const ChildResult r = run_child("fork_alone");
  EXPECT_TRUE(r.ok()) << r;
}
// Regression: some children's first collection never ended.
TEST(Fork, WhileAnotherLooksAtTheLoadedLibraries) {
  for (const char* child : {"fork_while_iterating", "fork_while_a_stranger_iterates"}) {
    const ChildResult r = run_child(child, without_helpers(), 120);
    EXPECT_TRUE(r.ok()) << r;
  }
}
// Regression: likewise.
TEST(Fork, WhileAnotherLoadsLibraries) {
  const ChildResult r = run_child("fork_while_loading", without_helpers(), 120);
  EXPECT_TRUE(r.ok()) << r;
}
TEST(Fork, WhileOthersAllocateAndCollect) {
  const ChildResult r = run_child("fork_while_busy", without_helpers(), 120);
  EXPECT_TRUE(r.ok()) << r;
}
TEST(Fork, TheChildMayStartThreads) {
  JD_SKIP_UNDER_TSAN("does not support new threads in the child of a program with several");
  const ChildResult r = run_child("fork_then_threads", {}, 120);
  EXPECT_TRUE(r.ok()) << r;
}
TEST(Fork, ChildrenMayFork) {
  JD_SKIP_UNDER_TSAN("does not support new threads in the child of a program with several");
  const ChildResult r = run_child("fork_nested", {}, 120);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(fork_in_other_thread) {
  GC_set_handle_fork(1);
  GC_INIT();
  static std::atomic<int> status{0};
  void* volatile main_list = make_list(kLength);
  run_threads(3, [](std::size_t) {
    void* volatile list = make_list(kLength);
    for (int i = 0; i < 20; ++i) {
      const pid_t pid = fork();
      if (pid == 0) _exit(child_work(list, kLength));
      const int result = wait_for(pid, 30);
      if (result != 0) status = result;
      opaque(make_list(rounds(1000)));
    }
  });
  if (list_length(main_list) != kLength) return 20;
  return status.load() == 0 ? 0 : 21;
}

TEST(Fork, FromThreadsThatAreNotTheMainOne) {
  const ChildResult r = run_child("fork_in_other_thread", without_helpers(), 120);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(fork_with_markers) {
  GC_INIT();
  Root<void> list(make_list(20000));
  for (int i = 0; i < 1000 && GC_get_parallel() == 0; ++i) GC_gcollect();
  if (GC_get_parallel() != 2) return 2;
  const pid_t child = fork();
  if (child == 0) {
    if (GC_get_parallel() != 0) _exit(3);
    for (int i = 0; i < 1000 && GC_get_parallel() == 0; ++i) GC_gcollect();
    _exit(GC_get_parallel() == 2 && list_length(list.get()) == 20000 ? 0 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

TEST(Fork, TheChildHasMarkersOfItsOwn) {
  JD_OURS_ONLY("bdwgc's child marks alone");
  JD_SKIP_UNDER_TSAN("can't start threads in the child of a program with threads");
  const ChildResult r =
      run_child("fork_with_markers", {{"GC_MARKERS", "3"}, {"JACKDAW_MARK_PATIENCE", "1"}});
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(fork_by_hand) {
  GC_set_handle_fork(-1);
  GC_INIT();
  void* volatile list = make_list(kLength);
  for (int i = 0; i < 20; ++i) {
    GC_atfork_prepare();
    const pid_t pid = fork();
    if (pid == 0) {
      GC_atfork_child();
      _exit(child_work(list, kLength));
    }
    GC_atfork_parent();
    if (wait_for(pid, 20) != 0) return 1;
    opaque(make_list(rounds(1000)));
  }
  return 0;
}

TEST(Fork, ByTheClientsOwnHandlers) {
  const ChildResult r = run_child("fork_by_hand");
  EXPECT_TRUE(r.ok()) << r;
}

// POSIX allowed that until 2017. Its helpers do not make a program one with several threads.
volatile sig_atomic_t children_of_handlers = 0;
volatile sig_atomic_t failures_of_children = 0;
JD_CHILD(fork_in_a_handler) {
  GC_INIT();
  const std::size_t length = rounds(200000);
  void* volatile list = make_list(length);
  for (int i = 0; i < 3; ++i) GC_gcollect();
  std::signal(SIGALRM, [](int) {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    if (wait_for(pid, 20) != 0) failures_of_children = 1;
    children_of_handlers = children_of_handlers + 1;
  });
  itimerval often{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  const int wanted = static_cast<int>(rounds(100));
  while (children_of_handlers < wanted) {
    opaque(make_list(rounds(1000)));
    GC_gcollect();
  }
  often = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  if (list_length(list) != length) return 1;
  return failures_of_children == 0 ? 0 : 2;
}

TEST(Fork, InAHandlerOfTheOnlyThread) {
  JD_SKIP_IN_EMULATOR("has a thread of its own, so that no program has but one");
  JD_OURS_ONLY("bdwgc's threads that mark are the program's, too");
  JD_SKIP_UNDER_TSAN(
      "reports libc's own allocation in a handler that forks, and goes on without end");
  for (const char* markers : {"1", "2"}) {
    const ChildResult r = run_child("fork_in_a_handler", {{"GC_MARKERS", markers}}, 60);
    EXPECT_TRUE(r.ok()) << markers << ": " << r;
  }
}

// A tree of twice so many nodes. Each child goes on within the collection that the handler has
// interrupted, and then fills what that took for free.
struct CheckedNode {
  CheckedNode* left;
  CheckedNode* right;
  std::uint64_t check;
};
constexpr std::uint64_t kCheck = 0x1234568;
CheckedNode* make_checked(int depth) {
  auto* node = static_cast<CheckedNode*>(GC_malloc(sizeof(CheckedNode)));
  node->check = kCheck;
  if (depth == 0) return node;
  node->left = make_checked(depth - 1);
  node->right = make_checked(depth - 1);
  return node;
}
bool is_whole(const CheckedNode* node, int depth) {
  if (node->check != kCheck) return false;
  return depth == 0 || (is_whole(node->left, depth - 1) && is_whole(node->right, depth - 1));
}

volatile sig_atomic_t is_marking = 0;
volatile sig_atomic_t child_of_handler = -1;  // none yet
JD_CHILD(fork_within_marking) {
  constexpr int kDepth = 15;
  constexpr std::size_t kFiller = std::size_t{1} << kDepth;
  GC_INIT();
  CheckedNode* volatile tree = make_checked(kDepth);
  for (int i = 0; i < 3; ++i) GC_gcollect();
  GC_set_on_collection_event([](GC_EventType event) {
    if (event == GC_EVENT_MARK_START) is_marking = 1;
    if (event == GC_EVENT_MARK_END) is_marking = 0;
  });
  std::signal(SIGALRM, [](int) {
    if (is_marking != 0 && child_of_handler == -1) child_of_handler = fork();
  });
  const int wanted = static_cast<int>(rounds(40));
  for (int round = 0, forks = 0; forks < wanted; ++round) {
    child_of_handler = -1;
    const itimerval once{{0, 0}, {0, 1 + round * 37 % 900}};
    setitimer(ITIMER_REAL, &once, nullptr);
    GC_gcollect();
    if (child_of_handler == 0) {
      GC_disable();
      for (std::size_t i = 0; i < kFiller; ++i) opaque(make_checked(0))->check = 1;
      GC_enable();
      GC_gcollect();
      _exit(is_whole(tree, kDepth) ? 0 : 7);
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    if (child_of_handler == -1) continue;
    ++forks;
    const int status = wait_for(child_of_handler, 20);
    if (status != 0) return status;
  }
  return is_whole(tree, kDepth) ? 0 : 8;
}

// What the other markers have, the child has not; what nobody had taken from the leader it lost,
// too.
class ForkWithinMarking : public testing::TestWithParam<const char*> {};

TEST_P(ForkWithinMarking, ThatIsShared) {
  JD_SKIP_IN_EMULATOR("has a thread of its own, so that no program has but one");
  JD_OURS_ONLY("bdwgc's threads that mark are the program's, too");
  JD_SKIP_UNDER_TSAN(
      "reports libc's own allocation in a handler that forks, and goes on without end");
  const ChildResult r = run_child(
      "fork_within_marking", {{"GC_MARKERS", GetParam()}, {"JACKDAW_MARK_PATIENCE", "1"}}, 100);
  EXPECT_TRUE(r.ok()) << r;
}
INSTANTIATE_TEST_SUITE_P(Markers, ForkWithinMarking, testing::Values("1", "2", "4"));

// The number of the child's only thread is the process's, which is what main threads are known by.
JD_CHILD(fork_by_another_thread) {
  GC_INIT();
  GC_allow_register_threads();
  int status = 0;
  GcThread other([&status] {
    GC_stack_base base;
    GC_get_stack_base(&base);
    const pid_t pid = fork();
    if (pid == 0) {
      GC_stack_base mine;
      GC_unregister_my_thread();
      GC_register_my_thread(&base);
      GC_get_my_stackbottom(&mine);
      _exit(mine.mem_base == base.mem_base && child_work(make_list(1000), 1000) == 0 ? 0 : 1);
    }
    status = wait_for(pid, 20);
  });
  other.join();
  return status;
}

TEST(Fork, LeavesAThreadThatIsNotTheMainOne) {
  const ChildResult r = run_child("fork_by_another_thread", without_helpers());
  EXPECT_TRUE(r.ok()) << r;
}

// --- What was ready for a thread that the child has not

// Of a kind that is not cleared: what was never handed out holds its past.
struct Disclaimed {
  enum : std::size_t { kLive = 0x11117777, kGone = 0x2222dddd };
  std::size_t state;
  std::size_t rest[7];
};
std::atomic<int> wrongly_disclaimed{0};

int disclaim(void* object) {
  auto* disclaimed = static_cast<Disclaimed*>(object);
  if (disclaimed->state != Disclaimed::kLive) ++wrongly_disclaimed;
  disclaimed->state = Disclaimed::kGone;
  return 0;
}

Disclaimed* make_disclaimed(int kind) {
  auto* object = static_cast<Disclaimed*>(GC_generic_malloc(sizeof(Disclaimed), kind));
  object->state = Disclaimed::kLive;
  return object;
}

JD_CHILD(fork_beside_ready_slots) {
  GC_set_handle_fork(1);
  GC_INIT();
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), 0, 0, 0));
  GC_register_disclaim_proc(kind, disclaim, 0);
  static std::atomic<int> step;
  static Disclaimed* kept[2];
  step = 0;
  GcThread other([kind] {
    for (int i = 0; i < 20000; ++i) opaque(make_disclaimed(kind));
    step = 1;
    while (step != 2) sched_yield();
    // Two of a new hole's slots; what the second holds leads to nothing else.
    for (Disclaimed*& slot : kept) slot = make_disclaimed(kind);
    step = 3;
    while (step != 4) sched_yield();
  });
  while (step != 1) sched_yield();
  for (int i = 0; i < 3; ++i) GC_gcollect();
  step = 2;
  while (step != 3) sched_yield();
  const pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 3; ++i) GC_gcollect();
    for (const Disclaimed* slot : kept) {
      if (slot->state != Disclaimed::kLive) _exit(1);
    }
    _exit(wrongly_disclaimed == 0 ? 0 : 2);
  }
  const int status = wait_for(pid, 20);
  step = 4;
  other.join();
  return status < 0 ? 99 : status % 1000;
}

TEST(Fork, WhatWasNeverHandedOutIsNotDisclaimed) {
  JD_OURS_ONLY("keeps its free lists in common");
  const ChildResult r = run_child("fork_beside_ready_slots", without_helpers());
  EXPECT_TRUE(r.ok()) << r;
}

// Threads that the child has not may have been claiming free slots, in which objects lie that were
// disclaimed before.
JD_CHILD(fork_beside_claims) {
  GC_set_handle_fork(1);
  GC_INIT();
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), 0, 0, 0));
  static std::atomic<int> disclaimed_twice{0};
  const auto disclaim_once = [](void* object) {
    auto* disclaimed = static_cast<Disclaimed*>(object);
    if (disclaimed->state == Disclaimed::kGone) ++disclaimed_twice;
    if (disclaimed->state == Disclaimed::kLive) disclaimed->state = Disclaimed::kGone;
    return 0;
  };
  GC_register_disclaim_proc(kind, disclaim_once, 0);
  std::atomic<bool> finish{false};
  int status = 0;
  {
    // Live objects of theirs leave free slots scattered.
    const auto allocate = [&finish, kind] {
      Root<void*> root(static_cast<void**>(GC_malloc(1000 * sizeof(void*))));
      for (std::size_t i = 1; !finish.load(); i = i * 5 + 3) {
        root.get()[i / 64 % 1000] = make_disclaimed(kind);
      }
    };
    const GcThread one(allocate);
    const GcThread another(allocate);
    for (std::size_t i = 0; i < rounds(300) && status == 0; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        for (int k = 0; k < 2; ++k) GC_gcollect();
        _exit(disclaimed_twice == 0 ? 0 : 1);
      }
      status = wait_for(pid, 20);
    }
    finish = true;
  }
  return status < 0 ? 99 : status % 1000;
}

TEST(Fork, NothingIsDisclaimedASecondTime) {
  JD_OURS_ONLY("keeps its free lists in common");
  const ChildResult r = run_child("fork_beside_claims", without_helpers(), 100);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(fork_and_exec) {
  GC_INIT();
  std::atomic<bool> finish{false};
  GcThread busy([&] {
    while (!finish.load()) opaque(make_list(100));
  });
  int failures = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(1);
    }
    failures += wait_for(pid, 20) != 0;
  }
  finish = true;
  busy.join();
  return failures;
}

TEST(Fork, AndExec) {
  const ChildResult r = run_child("fork_and_exec");
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test

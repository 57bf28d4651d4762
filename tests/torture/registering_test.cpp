// Threads that register and leave again and again: what they know of themselves from before, and
// when it is not so any more.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kLength = 1000;

GC_stack_base own_base() {
  GC_stack_base base{};
  GC_get_stack_base(&base);
  return base;
}

void register_again(int times) {
  const GC_stack_base base = own_base();
  for (int i = 0; i < times; ++i) {
    GC_unregister_my_thread();
    GC_register_my_thread(&base);
    opaque(GC_malloc(32));
  }
}

// The process ends at the first such call. False if that can't be had.
bool end_at(unsigned call) {
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program = {4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

JD_CHILD(registers_without_asking) {
  GC_INIT();
  GC_allow_register_threads();
  int status = 1;
  GcThread other([&status] {
    register_again(3);
    if (!end_at(SYS_gettid) || !end_at(SYS_getpid)) {
      status = kCannotTry;
      return;
    }
    register_again(100);
    status = 0;
  });
  other.join();
  return status;
}

TEST(Registering, AsksTheSystemForItsNumbersNoMore) {
  JD_OURS_ONLY("how bdwgc knows a thread is its own business");
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer asks";
#endif
  const ChildResult r = run_child("registers_without_asking");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// Registers anew in a child, and leaves what only its stack holds to a collection by another
// thread: that finds a thread whose number is wrong to be gone, and frees it.
int hold_while_another_collects() {
  register_again(3);
  void* volatile list = make_list(kLength);
  run_threads(1, [](std::size_t) {
    for (int i = 0; i < 3; ++i) {
      GC_gcollect();
      opaque(make_list(10 * kLength));
    }
  });
  return list_length(list) == kLength ? 0 : 10;
}

int status_of(pid_t pid) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 20;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 21;
}

template <class Fork>
int register_on_both_sides_of(Fork make_child) {
  GC_INIT();
  GC_allow_register_threads();
  register_again(3);
  const pid_t pid = make_child();
  if (pid == 0) {
    int status = hold_while_another_collects();
    const pid_t grandchild = make_child();
    if (grandchild == 0) _exit(hold_while_another_collects());
    if (status == 0) status = status_of(grandchild);
    _exit(status);
  }
  const int status = status_of(pid);
  return status != 0 ? status : hold_while_another_collects();
}

JD_CHILD(registers_after_fork) { return register_on_both_sides_of(fork); }
// Nothing of libc's or ours is told of it.
JD_CHILD(registers_after_a_fork_unseen) {
  return register_on_both_sides_of(
      [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); });
}

Environment without_helpers() { return {{"GC_MARKERS", "1"}}; }

TEST(Registering, InTheChildOfAForkIsUnderItsOwnNumber) {
  const ChildResult r = run_child("registers_after_fork", without_helpers(), 60);
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Registering, InTheChildOfAForkThatNobodySawIsUnderItsOwnNumber) {
  JD_OURS_ONLY("bdwgc has no word for it");
#if defined(JD_SANITIZE_ADDRESS) || defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "the sanitizer's locks want fork()";
#endif
  const ChildResult r = run_child("registers_after_a_fork_unseen", without_helpers(), 60);
  EXPECT_TRUE(r.ok()) << r;
}

// The signal by which it is stopped: blocked by the program between two registrations.
JD_CHILD(blocks_signals_between_registrations) {
  GC_INIT();
  GC_allow_register_threads();
  std::atomic<bool> ready{false};
  std::atomic<bool> finish{false};
  GcThread other([&] {
    register_again(3);
    GC_unregister_my_thread();
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    const GC_stack_base base = own_base();
    GC_register_my_thread(&base);
    ready = true;
    while (!finish.load()) sched_yield();
  });
  while (!ready.load()) sched_yield();
  GC_gcollect();
  finish = true;
  other.join();
  return 0;
}

TEST(Registering, OpensTheMaskThatTheProgramHasClosedSince) {
  JD_OURS_ONLY("bdwgc waits for ever");
  const ChildResult r = run_child("blocks_signals_between_registrations");
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test

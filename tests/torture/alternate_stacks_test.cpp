// Handlers on alternate signal stacks, while the world stops and while they collect themselves.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
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

TEST(AlternateStacks, ACollectionWhileAHandlerRunsOnAnAlternateStack) {
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

TEST(AlternateStacks, AHandlerOnAnAlternateStackMayCollect) {
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

TEST(AlternateStacks, AnAlternateStackMayLieWithinTheStack) {
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

TEST(AlternateStacks, TheMainStackMayGrowBetweenAlternateStacks) {
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

TEST(AlternateStacks, AThreadsStackMayHaveTheProgramsGuardPages) {
  JD_OURS_ONLY("bdwgc scans from the alternate stack to the thread's bottom");
  const ChildResult r = run_child("alternate_stack_over_the_programs_guard_page", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

TEST(AlternateStacks, AThreadsStackMayHaveItsGuardPageInItsMapping) {
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

}  // namespace
}  // namespace jd::test

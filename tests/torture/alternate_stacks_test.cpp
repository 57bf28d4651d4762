// Handlers on alternate signal stacks, while the world stops and while they collect themselves.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
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
  // What the collector is told of them is of no effect: it asks the system.
  GC_register_altstack(memory.data(), 16, nullptr, 0);
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

// A thread with an alternate stack, which allocates once and goes on on a small stack of its own,
// as goroutines and fibers do. What lies below that stack's frames is somebody else's.
struct SmallStack {
  static constexpr std::size_t kBelow = 64 * 1024;
  static constexpr std::size_t kSize = 16 * 1024;
  static constexpr unsigned char kMark = 0x77;
  char* memory = nullptr;
  ucontext_t there = {};
  ucontext_t back = {};
  std::atomic<char*> frame{nullptr};
  std::atomic<bool> finish{false};
};
SmallStack* small_stack;

void stay_on_small_stack() {
  small_stack->frame = static_cast<char*>(__builtin_frame_address(0));
  while (!small_stack->finish.load()) {
  }
}

// How many bytes below the small stack's only frame were written to by twenty collections.
int written_below_small_stack() {
  SmallStack small;
  small_stack = &small;
  small.memory = map_stack(SmallStack::kBelow + SmallStack::kSize);
  if (small.memory == nullptr) return -1;
  std::memset(small.memory, SmallStack::kMark, SmallStack::kBelow + SmallStack::kSize);
  int written = 0;
  {
    GcThread thread([&small] {
      std::vector<char> memory(static_cast<std::size_t>(64) * 1024);
      stack_t stack = {};
      stack.ss_sp = memory.data();
      stack.ss_size = memory.size();
      stack_t before = {};
      sigaltstack(&stack, &before);
      opaque(GC_malloc(64));
      getcontext(&small.there);
      small.there.uc_stack.ss_sp = small.memory + SmallStack::kBelow;
      small.there.uc_stack.ss_size = SmallStack::kSize;
      small.there.uc_link = &small.back;
      makecontext(&small.there, stay_on_small_stack, 0);
      swapcontext(&small.back, &small.there);
      sigaltstack(&before, nullptr);
    });
    while (small.frame.load() == nullptr) sched_yield();
    // Its own, and those of the functions that it calls.
    constexpr int kFrames = 512;
    const char* const end = small.frame.load() - kFrames;
    for (int i = 0; i < 20; ++i) GC_gcollect();
    for (const char* at = small.memory; at < end; ++at) {
      if (static_cast<unsigned char>(*at) != SmallStack::kMark) ++written;
    }
    small.finish = true;
  }
  munmap(small.memory, SmallStack::kBelow + SmallStack::kSize);
  return written;
}

JD_CHILD(alternate_stack_beside_a_small_stack) {
  GC_INIT();
  std::printf("%d\n", written_below_small_stack());
  return 0;
}

// Regression: the stop signal's frame was written below whatever stack the thread was on, and so
// over what is next to a goroutine's.
TEST(AlternateStacks, AStopWritesNothingBelowASmallStack) {
  JD_SKIP_UNDER_TSAN("has to be told of every stack");
  JD_OURS_ONLY("bdwgc stops threads on whatever stack they are on");
  const ChildResult r = run_child("alternate_stack_beside_a_small_stack", {}, 30);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "0\n");
}

#if defined(__x86_64__)
// world.req.stopped: where the only pointer to an object is while its thread is stopped.
enum class Place : std::uint8_t { Register, BelowStackPointer };

std::atomic<bool> holds_pointer;
std::atomic<int> let_go;  // by the assembly below: not 0

[[gnu::noinline]] std::uintptr_t hidden_object() {
  return ~reinterpret_cast<std::uintptr_t>(GC_malloc_atomic(4000));
}

// No frame but this function's, which calls nothing, may be below.
[[gnu::noinline]] void hold_in_register(std::uintptr_t hidden) {
  asm volatile(
      "not %[pointer]\n\t"
      "movb $1, (%[holds])\n"
      "1: pause\n\t"
      "cmpl $0, (%[leave])\n\t"
      "je 1b\n\t"
      "xor %[pointer], %[pointer]"
      : [pointer] "+r"(hidden)
      : [holds] "r"(&holds_pointer), [leave] "r"(&let_go)
      : "memory", "cc");
}

[[gnu::noinline]] void hold_below_stack_pointer(std::uintptr_t hidden) {
  asm volatile(
      "not %[pointer]\n\t"
      "mov %[pointer], -120(%%rsp)\n\t"
      "xor %[pointer], %[pointer]\n\t"
      "movb $1, (%[holds])\n"
      "1: pause\n\t"
      "cmpl $0, (%[leave])\n\t"
      "je 1b"
      : [pointer] "+r"(hidden)
      : [holds] "r"(&holds_pointer), [leave] "r"(&let_go)
      : "memory", "cc");
}

// Of 20 objects, how many are lost in a collection by another thread.
int lost_while_held(Place place) {
  int lost = 0;
  for (int i = 0; i < 20; ++i) {
    holds_pointer = false;
    let_go = 0;
    std::atomic<std::uintptr_t> hidden{0};
    GcThread thread([&hidden, place] {
      std::vector<char> memory(static_cast<std::size_t>(64) * 1024);
      stack_t stack = {};
      stack.ss_sp = memory.data();
      stack.ss_size = memory.size();
      stack_t before = {};
      sigaltstack(&stack, &before);
      hidden = hidden_object();
      GC_clear_stack(nullptr);
      if (place == Place::Register) {
        hold_in_register(hidden.load());
      } else {
        hold_below_stack_pointer(hidden.load());
      }
      sigaltstack(&before, nullptr);
    });
    while (!holds_pointer.load()) sched_yield();
    GC_gcollect();
    if (GC_base(reinterpret_cast<void*>(~hidden.load())) == nullptr) ++lost;
    let_go = 1;
  }
  return lost;
}

TEST(AlternateStacks, ARegisterHoldsWhatItsThreadIsStoppedWith) {
  JD_SKIP_UNDER_TSAN("runs handlers late, at calls of its own");
  EXPECT_EQ(lost_while_held(Place::Register), 0);
}

TEST(AlternateStacks, TheRedZoneHoldsWhatItsThreadIsStoppedWith) {
  JD_SKIP_UNDER_TSAN("runs handlers late, at calls of its own");
  EXPECT_EQ(lost_while_held(Place::BelowStackPointer), 0);
}
#endif

}  // namespace
}  // namespace jd::test

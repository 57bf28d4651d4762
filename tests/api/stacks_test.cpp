// Stacks that are not where they were: blocked threads, fibers, changed stack bottoms.
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

TEST(Stacks, DoBlockingReturnsItsResult) {
  int token = 0;
  EXPECT_EQ(GC_do_blocking([](void* p) { return p; }, &token), &token);
  EXPECT_EQ(GC_call_with_gc_active([](void* p) { return p; }, &token), &token);
}

// A section that is left by longjmp, which the header forbids: the thread that collects is not
// blocked, wherever its frames are.
std::jmp_buf before_the_section;
[[gnu::noinline]] void enter_and_leave() {
  GC_do_blocking([](void*) -> void* { std::longjmp(before_the_section, 1); }, nullptr);
}
[[gnu::noinline]] void leave_a_section() {
  if (setjmp(before_the_section) == 0) enter_and_leave();
}
// Deeper in the stack than the section was.
[[gnu::noinline]] bool keeps_an_object(int depth) {
  volatile char room[256];
  room[0] = static_cast<char>(depth);
  if (depth != 0) return keeps_an_object(depth - 1) && room[0] == static_cast<char>(depth);
  auto** volatile object = static_cast<std::uintptr_t**>(GC_malloc(4000));
  std::memset(object, 0x2a, 4000);
  GC_gcollect();
  for (int i = 0; i < 200; ++i) std::memset(GC_malloc(4000), 0x55, 4000);
  const auto* bytes = reinterpret_cast<const unsigned char*>(object);
  for (int i = 0; i < 4000; ++i) {
    if (bytes[i] != 0x2a) return false;
  }
  return true;
}
JD_CHILD(section_left_by_longjmp) {
  GC_INIT();
  // Then the next of its size is at hand: a request that is not would end the section.
  opaque(GC_malloc(4000));
  leave_a_section();
  return keeps_an_object(20) ? 0 : 1;
}
TEST(Stacks, ASectionLeftByLongjmpLosesNothingOfTheCollectingThread) {
  const ChildResult r = run_child("section_left_by_longjmp");
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Stacks, ABlockedThreadsStackHolds) {
  std::atomic<bool> blocked{false};
  std::atomic<bool> finish{false};
  Watch watch;
  std::atomic<int> bad{0};
  GcThread thread([&] {
    void* volatile array[100];
    for (int i = 0; i < 100; ++i) {
      array[i] = GC_malloc(64);
      fill_pattern(array[i], 64, 1);
      watch.add(array[i]);
    }
    struct Wait {
      std::atomic<bool>* blocked;
      std::atomic<bool>* finish;
      static void* run(void* self) {
        auto* wait = static_cast<Wait*>(self);
        wait->blocked->store(true);
        while (!wait->finish->load()) {
        }
        return nullptr;
      }
    } wait{&blocked, &finish};
    GC_do_blocking(Wait::run, &wait);
    for (int i = 0; i < 100; ++i) {
      if (!holds_pattern(array[i], 64, 1)) bad.fetch_add(1);
    }
  });
  while (!blocked.load()) {
  }
  for (int i = 0; i < 5; ++i) collect();
  EXPECT_TRUE(all_alive(watch));
  finish = true;
  thread.join();
  EXPECT_EQ(bad.load(), 0);
}

// Blocked and active by turns, with an object in each active frame.
struct Nest {
  int depth;
  Watch* watch;

  static void* blocked(void* self) { return GC_call_with_gc_active(active, self); }
  static void* active(void* self) {
    auto* nest = static_cast<Nest*>(self);
    void* volatile array[10];
    for (int i = 0; i < 10; ++i) {
      array[i] = GC_malloc(48);
      fill_pattern(array[i], 48, 2);
      nest->watch->add(array[i]);
    }
    GC_gcollect();
    if (nest->depth-- > 0) GC_do_blocking(blocked, self);
    GC_gcollect();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(holds_pattern(array[i], 48, 2));
    return nullptr;
  }
};

TEST(Stacks, BlockedAndActiveNest) {
  Watch watch;
  Nest nest{20, &watch};
  Nest::active(&nest);
  EXPECT_GE(watch.count_alive(), 10u);
  run_threads(3, [](std::size_t) {
    Watch own;
    Nest own_nest{10, &own};
    Nest::active(&own_nest);
  });
}

struct BaseCall {
  static void* with_base(GC_stack_base* base, void* argument) {
    return base->mem_base != nullptr ? argument : nullptr;
  }
};

TEST(Stacks, CallWithStackBaseGivesABase) {
  int token = 0;
  EXPECT_EQ(GC_call_with_stack_base(BaseCall::with_base, &token), &token);
  GC_stack_base base;
  EXPECT_EQ(GC_get_stack_base(&base), GC_SUCCESS);
  EXPECT_GT(static_cast<void*>(base.mem_base), static_cast<void*>(&token));
  GC_stack_base mine;
  EXPECT_NE(GC_get_my_stackbottom(&mine), nullptr);
  EXPECT_GT(static_cast<void*>(mine.mem_base), static_cast<void*>(&token));
}

TEST(Stacks, RegisteringIsReported) {
  EXPECT_NE(GC_thread_is_registered(), 0);
  GC_stack_base base;
  GC_get_stack_base(&base);
  EXPECT_EQ(GC_register_my_thread(&base), GC_DUPLICATE);
  static int before;
  static int after;
  before = after = -1;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void*) -> void* {
                  before = GC_thread_is_registered();
                  GC_stack_base own;
                  GC_get_stack_base(&own);
                  GC_register_my_thread(&own);
                  opaque(make_list(100));
                  GC_unregister_my_thread();
                  after = GC_thread_is_registered();
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 0);
}

// Regression: a thread that had allocated was told that it had registered already.
TEST(Stacks, AThreadThatRegisteredItselfMayRegisterOnce) {
  int results[3] = {-1, -1, -1};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto* own = static_cast<int*>(argument);
                  GC_stack_base base;
                  GC_get_stack_base(&base);
                  opaque(GC_malloc_uncollectable(16));
                  own[0] = GC_register_my_thread(&base);
                  own[1] = GC_register_my_thread(&base);
                  GC_unregister_my_thread();
                  own[2] = GC_thread_is_registered();
                  return nullptr;
                },
                results),
            0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(results[0], GC_SUCCESS);
  EXPECT_EQ(results[1], GC_DUPLICATE);
  EXPECT_EQ(results[2], 0);
}

TEST(Stacks, AThreadThatWasMadeByTheCollectorIsRegistered) {
  int result = -1;
  {
    GcThread thread([&result] {
      GC_stack_base base;
      GC_get_stack_base(&base);
      result = GC_register_my_thread(&base);
    });
  }
  EXPECT_EQ(result, GC_DUPLICATE);
}

TEST(Stacks, SuspendedThreadsStandStill) {
  std::atomic<long> counter{0};
  std::atomic<bool> finish{false};
  std::atomic<pthread_t> id{};
  std::atomic<bool> started{false};
  GcThread thread([&] {
    id = pthread_self();
    started = true;
    while (!finish.load()) ++counter;
  });
  while (!started.load()) {
  }
  EXPECT_EQ(GC_is_thread_suspended(id.load()), 0);
  GC_suspend_thread(id.load());
  EXPECT_NE(GC_is_thread_suspended(id.load()), 0);
  const long at = counter.load();
  for (int i = 0; i < 5; ++i) GC_gcollect();
  EXPECT_EQ(counter.load(), at);
  GC_resume_thread(id.load());
  EXPECT_EQ(GC_is_thread_suspended(id.load()), 0);
  while (counter.load() == at) {
  }
  finish = true;
}

TEST(Stacks, TheWorldCanBeStoppedFromOutside) {
  std::atomic<long> counter{0};
  std::atomic<bool> finish{false};
  GcThread thread([&] {
    while (!finish.load()) ++counter;
  });
  while (counter.load() == 0) {
  }
  GC_stop_world_external();
  const long at = counter.load();
  for (int i = 0; i < 1000000; ++i) asm volatile("");
  const long later = counter.load();
  GC_start_world_external();
  EXPECT_EQ(later, at);
  while (counter.load() == at) {
  }
  finish = true;
}

// --- Fibers
// ---------------------------------------------------------------------------------------

// Stacks of the client's own, as Crystal has them: a switch tells the collector the bottom of the
// stack it goes to, and the others are pushed by the hook from their saved stack pointers.
constexpr std::size_t kFiberStack = 256 * 1024;

struct Fiber {
  ucontext_t context;
  char* stack;
  void* saved_sp;  // null while it runs
  bool done;
  int rounds;
  int bad;
};

constexpr int kFibers = 20;
Fiber fibers[kFibers + 1];  // the last one is the main stack
int running;
void* main_bottom;
void* main_handle;
GC_push_other_roots_proc hook_before;

void push_fibers() {
  for (int i = 0; i <= kFibers; ++i) {
    if (i == running || fibers[i].saved_sp == nullptr) continue;
    void* bottom = i == kFibers ? main_bottom : fibers[i].stack + kFiberStack;
    GC_push_all_eager(fibers[i].saved_sp, bottom);
  }
  hook_before();
}

[[gnu::noinline]] void switch_to(int next) {
  const int from = running;
  // swapcontext saves the registers in the context, which is static data; the frames are on the
  // stack from here on.
  fibers[from].saved_sp = __builtin_frame_address(0);
  GC_stack_base base;
  base.mem_base = next == kFibers ? main_bottom : fibers[next].stack + kFiberStack;
  struct Change {
    static void* bottom(void* to) {
      GC_set_stackbottom(nullptr, static_cast<GC_stack_base*>(to));
      return nullptr;
    }
  };
  // No collection between the change of the bottom and the change of the stack: the lock would
  // have to be held over the switch; with one thread, no allocation in between is enough.
  GC_call_with_alloc_lock(Change::bottom, &base);
  running = next;
  swapcontext(&fibers[from].context, &fibers[next].context);
  fibers[from].saved_sp = nullptr;
}

// What a fiber writes into its object number i.
std::uintptr_t mark_of(int fiber, int i) {
  return static_cast<std::uintptr_t>(fiber) * 100 + static_cast<std::uintptr_t>(i);
}

void fiber_body() {
  Fiber& self = fibers[running];
  const int own = running;
  void* volatile held[20];
  for (int i = 0; i < 20; ++i) {
    held[i] = make_list(20);
    static_cast<std::uintptr_t*>(held[i])[1] = mark_of(own, i);
  }
  for (int round = 0; round < self.rounds; ++round) {
    opaque(make_list(500));
    if (round % 5 == own % 5) GC_gcollect();
    switch_to(kFibers);
    for (int i = 0; i < 20; ++i) {
      if (list_length(held[i]) != 20) ++self.bad;
      if (static_cast<std::uintptr_t*>(held[i])[1] != mark_of(own, i)) {
        ++self.bad;
      }
    }
  }
  self.done = true;
  switch_to(kFibers);
}

TEST(Stacks, FibersKeepTheirObjects) {
  GC_stack_base base;
  main_handle = GC_get_my_stackbottom(&base);
  main_bottom = base.mem_base;
  hook_before = GC_get_push_other_roots();
  running = kFibers;
  for (int i = 0; i < kFibers; ++i) {
    Fiber& fiber = fibers[i];
    fiber.stack = static_cast<char*>(
        mmap(nullptr, kFiberStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(fiber.stack, MAP_FAILED);
    ASSERT_EQ(getcontext(&fiber.context), 0);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kFiberStack;
    fiber.context.uc_link = nullptr;
    fiber.done = false;
    fiber.bad = 0;
    fiber.rounds = static_cast<int>(rounds(30));
    fiber.saved_sp = nullptr;
    makecontext(&fiber.context, fiber_body, 0);
  }
  GC_set_push_other_roots(push_fibers);
  Random random(test_seed());
  int left = kFibers;
  while (left > 0) {
    const auto next = static_cast<int>(random.below(kFibers));
    if (fibers[next].done) continue;
    switch_to(next);
    if (random.one_in(10)) collect();
    left -= fibers[next].done;
  }
  GC_set_push_other_roots(hook_before);
  for (int i = 0; i < kFibers; ++i) {
    EXPECT_EQ(fibers[i].bad, 0);
    fibers[i].saved_sp = nullptr;
    munmap(fibers[i].stack, kFiberStack);
  }
}

// A coroutine's stack registered as a root range, as Nix does, with collections while it runs.
ucontext_t coroutine_main;
ucontext_t coroutine;
int coroutine_bad;

void coroutine_body() {
  void* volatile held[50];
  for (int i = 0; i < 50; ++i) held[i] = make_list(10);
  swapcontext(&coroutine, &coroutine_main);
  for (int i = 0; i < 50; ++i) coroutine_bad += list_length(held[i]) != 10;
  swapcontext(&coroutine, &coroutine_main);
}

TEST(Stacks, CoroutineStacksAsRootRanges) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  coroutine_bad = 0;
  auto* stack = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(stack, MAP_FAILED);
  GC_add_roots(stack, stack + kBytes);
  ASSERT_EQ(getcontext(&coroutine), 0);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = kBytes;
  makecontext(&coroutine, coroutine_body, 0);
  // No collection while the stack pointer is in there: the peer could not bear it.
  GC_disable();
  swapcontext(&coroutine_main, &coroutine);
  GC_enable();
  for (int i = 0; i < 5; ++i) {
    collect();
    opaque(make_list(rounds(1000)));
  }
  GC_disable();
  swapcontext(&coroutine_main, &coroutine);
  GC_enable();
  EXPECT_EQ(coroutine_bad, 0);
  GC_remove_roots(stack, stack + kBytes);
  munmap(stack, kBytes);
}

// Runs a coroutine there that collects, and comes back when it has ended.
void enter_collector(void* stack, std::size_t bytes) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = bytes;
  makecontext(
      &coroutine,
      +[] {
        void* volatile held = make_list(10);
        for (int i = 0; i < 3; ++i) {
          GC_gcollect();
          opaque(make_list(rounds(1000)));
        }
        coroutine_bad += list_length(held) != 10;
        setcontext(&coroutine_main);
      },
      0);
  swapcontext(&coroutine_main, &coroutine);
}

JD_CHILD(collect_on_coroutine) {
  GC_INIT();
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  auto* stack = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  // A hole below: whoever walks from one stack to the other falls into it.
  void* volatile on_main_stack = make_list(10);
  GC_add_roots(stack, stack + kBytes);
  enter_collector(stack, kBytes);
  return coroutine_bad + (list_length(on_main_stack) != 10);
}

TEST(Stacks, ACollectionOnAForeignStackIsSurvived) {
  JD_OURS_ONLY("bdwgc walks from the foreign stack to the thread's bottom");
  const ChildResult r = run_child("collect_on_coroutine");
  EXPECT_TRUE(r.ok()) << r;
}

// 100 MiB below the main stack, where the kernel maps nothing by itself.
JD_CHILD(collect_below_main_stack) {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = std::size_t{1} << 30;
  if (setrlimit(RLIMIT_STACK, &limit) != 0) return kCannotTry;
  GC_INIT();
  constexpr std::size_t kBytes = 256 * 1024;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t below = (here - (std::size_t{100} << 20)) & ~std::uintptr_t{4095};
  void* stack = mmap(reinterpret_cast<void*>(below), kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (stack == MAP_FAILED) return kCannotTry;
  void* volatile on_main_stack = make_list(10);
  enter_collector(stack, kBytes);
  return coroutine_bad + (list_length(on_main_stack) != 10);
}

// Regression: with the limit raised, that passed for a part of the main stack.
TEST(Stacks, AStackBelowTheMainOneIsNotPartOfIt) {
  JD_OURS_ONLY("bdwgc walks from the foreign stack to the thread's bottom");
  const ChildResult r = run_child("collect_below_main_stack");
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// More than 64 MiB of stack: further than a main stack is known to reach without a look.
[[gnu::noinline]] std::size_t collect_deep_down(std::size_t levels) {
  volatile char frame[64 * 1024];
  frame[0] = 1;
  const bool holds = levels % 100 == 0;
  void* volatile held = holds ? make_list(10) : nullptr;
  if (levels == 0) {
    GC_gcollect();
    opaque(make_list(rounds(1000)));
  }
  const std::size_t right = levels == 0 ? 0 : collect_deep_down(levels - 1);
  return right + (holds && list_length(held) == 10 ? frame[0] : 0);
}

JD_CHILD(collect_deep_down) {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_max < std::size_t{100} << 20) return kCannotTry;
  limit.rlim_cur = std::size_t{100} << 20;
  if (setrlimit(RLIMIT_STACK, &limit) != 0) return kCannotTry;
  GC_INIT();
  constexpr std::size_t kLevels = 1100;
  return collect_deep_down(kLevels) == kLevels / 100 + 1 ? 0 : 1;
}

TEST(Stacks, ADeepMainStackIsScannedWhole) {
  // Each takes some milliseconds.
  const ChildResult r = run_child("collect_deep_down", {{"JACKDAW_COLLECT_EVERY", kUnset}});
  JD_SKIP_IF_CANNOT_TRY(r);
  EXPECT_TRUE(r.ok()) << r;
}

// Bytes that this thread has read from files, or 0 where the system does not count them.
std::size_t bytes_read() {
  std::ifstream file("/proc/thread-self/io");
  std::string label;
  std::size_t bytes = 0;
  return file >> label >> bytes && label == "rchar:" ? bytes : 0;
}

// On a stack that the collector is told of.
void collect_on(char* stack, std::size_t bytes, GC_stack_base main_base) {
  GC_stack_base base{};
  base.mem_base = stack + bytes;
  GC_disable();
  GC_set_stackbottom(nullptr, &base);
  GC_enable();
  enter_collector(stack, bytes);
  GC_set_stackbottom(nullptr, &main_base);
}

// Stacks of one page and a guard page, so that none is a neighbour's mapping.
constexpr std::size_t kManyStacks = 200;
JD_CHILD(collect_on_told_stacks) {
  GC_INIT();
  if (bytes_read() == 0) {
    std::fputs("the system does not count what is read\n", stderr);
    return kCannotTry;
  }
  constexpr std::size_t kBytes = 64 * 1024;
  std::vector<char*> stacks;
  for (std::size_t i = 0; i < kManyStacks; ++i) {
    stacks.push_back(static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    mprotect(stacks.back(), 4096, PROT_NONE);
  }
  GC_stack_base main_base;
  GC_get_my_stackbottom(&main_base);
  GC_gcollect();
  const std::size_t before = bytes_read();
  for (std::size_t i = 0; i < 20; ++i) collect_on(stacks[i * 7], kBytes, main_base);
  std::printf("%zu bytes\n", bytes_read() - before);
  return coroutine_bad;
}

// Regression: each collection read the list of all mappings.
TEST(Stacks, ACollectionOnAStackThatItWasToldOfReadsNoListOfMappings) {
  JD_OURS_ONLY("it is ours that looks whether the stack pointer is on that stack");
  const ChildResult r = run_child("collect_on_told_stacks");
  JD_SKIP_IF_CANNOT_TRY(r);
  ASSERT_TRUE(r.ok()) << r;
  // A line for each stack and guard page; of 20 collections.
  EXPECT_LT(std::strtoul(r.out.c_str(), nullptr, 10), 20 * kManyStacks * 25) << r;
}

#if defined(__x86_64__)
// Where the marker's copies would stay, and be roots when the thread is stopped.
TEST(Stacks, ACollectionLeavesNothingInVectorRegisters) {
  JD_OURS_ONLY("bdwgc leaves them as they are");
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this processor has no AVX-512";
  const unsigned long before = ~0UL;
  unsigned long after = 0;
  // One that no copy is likely to use.
  asm volatile("vpbroadcastq %0, %%zmm30" : : "r"(before));
  GC_gcollect();
  asm volatile("vmovdqa64 %%zmm30, %%zmm0\n\tvmovq %%xmm0, %0" : "=r"(after) : : "xmm0");
  EXPECT_EQ(after, 0UL);
}
#endif

}  // namespace
}  // namespace jd::test

// What keeps an object alive: stacks, registers, interior pointers, long chains; and what does not.
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

// Makes an object whose only holder is the returned word.
[[gnu::noinline]] char* make_watched(Watch* watch, std::size_t size) {
  auto* p = static_cast<char*>(GC_malloc(size));
  fill_pattern(p, size, 1);
  watch->add(p);
  return p;
}

TEST(Reach, AStackArrayHolds) {
  Watch watch;
  void* array[200];
  for (void*& slot : array) slot = make_watched(&watch, 40);
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  keep_here(array);
  asm volatile("" : : "r"(array) : "memory");
}

TEST(Reach, InteriorPointersOnTheStackHold) {
  for (const std::size_t size : {16, 48, 500, 3000, 20000, 200000}) {
    Watch watch;
    void* volatile array[100];
    for (std::size_t i = 0; i < 100; ++i) {
      array[i] = make_watched(&watch, size) + (i * 997) % size;
    }
    collect();
    collect();
    EXPECT_TRUE(all_alive(watch)) << size;
    asm volatile("" : : "r"(array) : "memory");
  }
}

// The sizes whose objects, all held by their ends alone, did not survive.
std::vector<std::size_t> sizes_lost_past_their_ends() {
  std::vector<std::size_t> lost;
  for (const std::size_t size : {16, 32, 48, 256, 1000, 2048, 4096, 8192, 32768, 200000}) {
    Watch watch;
    void* volatile array[100];
    for (std::size_t i = 0; i < 100; ++i) {
      array[i] = make_watched(&watch, size) + size;
    }
    collect();
    collect();
    bool whole = watch.count_alive() == watch.count();
    for (std::size_t i = 0; i < 100; ++i) {
      whole = whole && holds_pattern(static_cast<char*>(array[i]) - size, size, 1);
    }
    if (!whole) lost.push_back(size);
    asm volatile("" : : "r"(array) : "memory");
  }
  return lost;
}

TEST(Reach, OnePastTheEndOnTheStackHolds) {
  EXPECT_EQ(sizes_lost_past_their_ends(), std::vector<std::size_t>());
}

// Other size classes are used then.
JD_CHILD(ends_that_hold_later) {
  GC_set_all_interior_pointers(0);
  GC_INIT();
  opaque(make_list(1000));
  GC_set_all_interior_pointers(1);
  int lost = static_cast<int>(sizes_lost_past_their_ends().size());
  GC_expand_hp(4U << 20);
  lost += static_cast<int>(sizes_lost_past_their_ends().size());
  return lost;
}

TEST(Reach, OnePastTheEndHoldsAlsoWhereItIsSwitchedOnLater) {
  JD_OURS_ONLY("bdwgc pads objects by what is set when they are made");
  const ChildResult r = run_child("ends_that_hold_later");
  EXPECT_TRUE(r.ok()) << r;
}

TEST(Reach, InteriorPointersInTheHeapHold) {
  for (const std::size_t size : {16, 48, 500, 3000, 20000, 200000}) {
    Watch watch;
    auto** array = static_cast<char**>(GC_malloc(100 * sizeof(char*)));
    for (std::size_t i = 0; i < 100; ++i) {
      array[i] = make_watched(&watch, size) + (i * 997) % size;
    }
    collect();
    collect();
    EXPECT_TRUE(all_alive(watch)) << size;
    keep_here(array);
  }
}

// --- Registers that a call keeps. Each in turn is the only place of a pointer in a call.
// ----------

// An object's address as a word that is no pointer.
[[gnu::noinline]] std::uintptr_t hidden_watched(Watch* watch) {
  return ~reinterpret_cast<std::uintptr_t>(make_watched(watch, 64));
}

// A collection by another thread, while the caller is in a blocking section.
void collect_elsewhere() {
  std::atomic<int> state{0};
  enum { Enters, Waits, Collected };
  GcThread other([&state] {
    while (state != Waits) sched_yield();
    GC_gcollect();
    state = Collected;
  });
  static const auto wait = [](void* argument) -> void* {
    auto* const shared = static_cast<std::atomic<int>*>(argument);
    *shared = Waits;
    while (*shared != Collected) sched_yield();
    return nullptr;
  };
  GC_do_blocking(wait, &state);
  other.join();
}

#if defined(__x86_64__)
// The stack pointer waits in another one.
#define JD_HOLD_IN(reg, other)                                                                 \
  [](std::uintptr_t hidden, void (*function)()) {                                              \
    asm volatile("not %%rax\n\tmov %%rax, %%" reg                                              \
                 "\n\txor %%eax, %%eax\n\t"                                                    \
                 "mov %%rsp, %%" other                                                         \
                 "\n\tsub $128, %%rsp\n\tand $-16, %%rsp\n\t"                                  \
                 "call *%%rdx\n\tmov %%" other ", %%rsp"                                       \
                 : "+a"(hidden), "+d"(function)                                                \
                 :                                                                             \
                 : reg, other, "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc"); \
  }
#elif defined(__aarch64__)
#define JD_HOLD_BY(instruction, reg)                                                              \
  [](std::uintptr_t hidden, void (*function)()) {                                                 \
    register std::uintptr_t word asm("x0") = hidden;                                              \
    register auto target asm("x1") = function;                                                    \
    asm volatile("mvn x0, x0\n\t" instruction " " reg ", x0\n\tmov x0, xzr\n\tblr x1"             \
                 : "+r"(word), "+r"(target)                                                       \
                 :                                                                                \
                 : reg, "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",      \
                   "x13", "x14", "x15", "x16", "x17", "x30", "memory", "cc", "v0", "v1", "v2",    \
                   "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", \
                   "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");                \
  }
#define JD_HOLD_IN(reg) JD_HOLD_BY("mov", reg)
#endif

struct Holder {
  const char* name;
  void (*call)(std::uintptr_t hidden, void (*function)());
};
constexpr Holder kHolders[] = {
#if defined(__x86_64__)
    {"rbx", JD_HOLD_IN("rbx", "r12")}, {"r12", JD_HOLD_IN("r12", "rbx")},
    {"r13", JD_HOLD_IN("r13", "rbx")}, {"r14", JD_HOLD_IN("r14", "rbx")},
    {"r15", JD_HOLD_IN("r15", "rbx")},
#elif defined(__aarch64__)
    {"x19", JD_HOLD_IN("x19")},       {"x20", JD_HOLD_IN("x20")},
    {"x21", JD_HOLD_IN("x21")},       {"x22", JD_HOLD_IN("x22")},
    {"x23", JD_HOLD_IN("x23")},       {"x24", JD_HOLD_IN("x24")},
    {"x25", JD_HOLD_IN("x25")},       {"x26", JD_HOLD_IN("x26")},
    {"x27", JD_HOLD_IN("x27")},       {"x28", JD_HOLD_IN("x28")},
    {"d8", JD_HOLD_BY("fmov", "d8")}, {"d15", JD_HOLD_BY("fmov", "d15")},
#endif
};

class HeldInRegisters : public testing::TestWithParam<Holder> {};
INSTANTIATE_TEST_SUITE_P(Reach, HeldInRegisters, testing::ValuesIn(kHolders),
                         [](const auto& holder) { return std::string(holder.param.name); });

void expect_held_across(const Holder& holder, void (*function)(), std::size_t times) {
  Watch watch;
  for (std::size_t i = 0; i < times; ++i) {
    const std::uintptr_t hidden = hidden_watched(&watch);
    clear_stack();
    holder.call(hidden, function);
    ASSERT_TRUE(watch.alive(i)) << i;
  }
}
TEST_P(HeldInRegisters, AcrossACollection) { expect_held_across(GetParam(), GC_gcollect, 40); }
TEST_P(HeldInRegisters, AcrossABlockingSection) {
  expect_held_across(GetParam(), collect_elsewhere, 10);
}

TEST(Reach, AMillionNodesInAChain) {
  constexpr std::size_t kLength = 1000000;
  Root<void> head(make_list(kLength));
  collect();
  EXPECT_EQ(list_length(head.get()), kLength);
  collect();
  EXPECT_EQ(list_length(head.get()), kLength);
}

TEST(Reach, ADeepAndBushyTree) {
  struct Node {
    Node* left;
    Node* right;
    long value;
  };
  struct Build {
    static Node* tree(int depth, long value) {
      auto* node = GC_NEW(Node);
      node->value = value;
      if (depth > 0) {
        node->left = tree(depth - 1, 2 * value);
        node->right = tree(depth - 1, 2 * value + 1);
      }
      return node;
    }
    static bool check(const Node* node, int depth, long value) {
      if (node->value != value) return false;
      if (depth == 0) return node->left == nullptr && node->right == nullptr;
      return check(node->left, depth - 1, 2 * value) &&
             check(node->right, depth - 1, 2 * value + 1);
    }
  };
  Node* root = Build::tree(17, 1);
  collect();
  for (int i = 0; i < 10; ++i) opaque(Build::tree(14, 1));
  EXPECT_TRUE(Build::check(root, 17, 1));
}

TEST(Reach, AWideArray) {
  constexpr std::size_t kWidth = 400000;
  auto** array = static_cast<void**>(GC_malloc(kWidth * sizeof(void*)));
  for (std::size_t i = 0; i < kWidth; ++i) {
    array[i] = GC_malloc(24);
    static_cast<std::size_t*>(array[i])[1] = i;
  }
  collect();
  for (int i = 0; i < 200000; ++i) opaque(GC_malloc(24));
  for (std::size_t i = 0; i < kWidth; ++i) {
    ASSERT_EQ(static_cast<std::size_t*>(array[i])[1], i);
  }
  keep_here(array);
}

TEST(Reach, CyclesDie) {
  Watch watch;
  far_away([&] {
    for (int i = 0; i < 300; ++i) {
      auto** first = static_cast<void**>(GC_malloc(32));
      auto** p = first;
      watch.add(first);
      for (int k = 0; k < i % 7; ++k) {
        auto** next = static_cast<void**>(GC_malloc(32));
        watch.add(next);
        *p = next;
        next[1] = first;
        p = next;
      }
      *p = first;
    }
  });
  EXPECT_TRUE(most_collected(watch));
}

TEST(Reach, LongDeadChainsDie) {
  Watch watch;
  far_away([&] {
    void* list = make_list(200000);
    int i = 0;
    for (void* p = list; p != nullptr; p = GC_NEXT(p)) {
      if (i++ % 100 == 0) watch.add(p);
    }
    // A stale word may hold one node and all behind it, so cut it up.
    for (void* p = list; p != nullptr;) {
      void* next = GC_NEXT(p);
      GC_NEXT(p) = nullptr;
      p = next;
    }
  });
  EXPECT_TRUE(most_collected(watch));
}

TEST(Reach, HiddenPointersDoNotHold) {
  Watch watch;
  auto* hidden = static_cast<GC_hidden_pointer*>(GC_malloc(1000 * sizeof(GC_hidden_pointer)));
  far_away([&] {
    for (int i = 0; i < 1000; ++i) {
      void* p = GC_malloc(20);
      watch.add(p);
      hidden[i] = GC_HIDE_POINTER(p);
    }
  });
  EXPECT_TRUE(most_collected(watch));
  keep_here(hidden);
}

TEST(Reach, StacksOfOtherThreadsHold) {
  Watch watch;
  std::atomic<int> ready{0};
  std::atomic<bool> finish{false};
  constexpr int kThreads = 4;
  constexpr int kObjects = 50;
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  std::vector<GcThread> threads;
  threads.reserve(kThreads);
  std::atomic<int> bad{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      void* volatile array[kObjects];
      for (int i = 0; i < kObjects; ++i) {
        auto* p = static_cast<char*>(GC_malloc(100));
        fill_pattern(p, 100, 1);
        while (lock.test_and_set()) {
        }
        watch.add(p);
        lock.clear();
        array[i] = p + 50;
      }
      ready.fetch_add(1);
      while (!finish.load()) {
      }
      for (int i = 0; i < kObjects; ++i) {
        if (!holds_pattern(static_cast<char*>(array[i]) - 50, 100, 1)) bad.fetch_add(1);
      }
    });
  }
  while (ready.load() < kThreads) {
  }
  for (int i = 0; i < 5; ++i) collect();
  EXPECT_TRUE(all_alive(watch));
  finish.store(true);
  for (GcThread& thread : threads) thread.join();
  EXPECT_EQ(bad.load(), 0);
  EXPECT_EQ(watch.count(), static_cast<std::size_t>(kThreads * kObjects));
}

TEST(Reach, ObjectsOfAThreadThatEndedDie) {
  Watch watch;
  run_threads(4, [&](std::size_t t) {
    static std::atomic_flag lock = ATOMIC_FLAG_INIT;
    void* volatile array[100];
    for (int i = 0; i < 100; ++i) {
      array[i] = GC_malloc(16 * (t + 1));
      while (lock.test_and_set()) {
      }
      watch.add(array[i]);
      lock.clear();
    }
    opaque(array[99]);
  });
  EXPECT_TRUE(most_collected(watch));
}

TEST(Reach, ARegisteredThreadsStackHolds) {
  run_registered_thread([] {
    Watch watch;
    void* volatile array[100];
    for (int i = 0; i < 100; ++i) array[i] = make_watched(&watch, 48);
    collect();
    run_threads(1, [](std::size_t) { GC_gcollect(); });
    EXPECT_TRUE(all_alive(watch));
    asm volatile("" : : "r"(array) : "memory");
  });
}

TEST(Reach, AThreadsArgumentAndResultLive) {
  struct Body {
    static void* run(void* argument) {
      GC_gcollect();
      auto** result = static_cast<void**>(GC_malloc(16));
      *result = argument;
      return result;
    }
  };
  for (int i = 0; i < 20; ++i) {
    auto* argument = static_cast<long*>(GC_malloc(64));
    *argument = 4711;
    pthread_t thread;
    ASSERT_EQ(GC_pthread_create(&thread, nullptr, Body::run, argument), 0);
    GC_gcollect();
    void* result = nullptr;
    ASSERT_EQ(GC_pthread_join(thread, &result), 0);
    GC_gcollect();
    EXPECT_EQ(*static_cast<long*>(*static_cast<void**>(result)), 4711);
  }
}

}  // namespace
}  // namespace jd::test

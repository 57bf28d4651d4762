// Threads that come, go, allocate and collect at the same time, however they were made.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

// A small program whose data is checked at the end: a list of lists.
bool build_and_check(std::uint64_t seed, std::size_t steps) {
  struct Node {
    Node* next;
    void* list;
    std::size_t length;
  };
  Random random(seed);
  Node* head = nullptr;
  std::size_t nodes = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    Node* node = GC_NEW(Node);
    node->length = random.below(20);
    node->list = make_list(node->length, 16 + 16 * random.below(8));
    node->next = head;
    head = node;
    if (++nodes > 200) {
      for (Node* p = head; p != nullptr; p = p->next) {
        if (list_length(p->list) != p->length) return false;
      }
      head = nullptr;
      nodes = 0;
    }
  }
  for (Node* p = head; p != nullptr; p = p->next) {
    if (list_length(p->list) != p->length) return false;
  }
  return true;
}

// Those that allocate are stopped at any instruction of it (alloc.req.stop).
TEST(Threads, AllocatorsAndCollectors) {
  const std::uint64_t seed = test_seed();
  std::atomic<int> bad{0};
  std::atomic<bool> finish{false};
  GcThread collector([&] {
    while (!finish.load()) {
      GC_gcollect();
      usleep(1000);
    }
  });
  run_threads(6, [&](std::size_t t) {
    if (!build_and_check(seed + t, rounds(20000))) ++bad;
  });
  finish = true;
  collector.join();
  EXPECT_EQ(bad.load(), 0);
}

TEST(Threads, ManyShortThreads) {
  const std::uint64_t seed = test_seed();
  std::atomic<int> bad{0};
  const std::size_t count = rounds(3000);
  std::size_t started = 0;
  while (started < count) {
    run_threads(8, [&](std::size_t t) {
      if (!build_and_check(seed + t, 20)) ++bad;
    });
    started += 8;
    if (started % 64 == 0) GC_gcollect();
  }
  EXPECT_EQ(bad.load(), 0);
}

TEST(Threads, DetachedThreadsEndDuringCollections) {
  static std::atomic<int> running;
  static std::atomic<int> bad;
  running = bad = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const std::size_t count = rounds(2000);
  for (std::size_t i = 0; i < count; ++i) {
    running.fetch_add(1);
    pthread_t thread;
    const int error = GC_pthread_create(
        &thread, &attributes,
        [](void* list) -> void* {
          if (list_length(list) != 30) ++bad;
          opaque(make_list(30));
          running.fetch_sub(1);
          return nullptr;
        },
        make_list(30));
    ASSERT_EQ(error, 0);
    if (i % 10 == 0) GC_gcollect();
    while (running.load() > 30) sched_yield();
  }
  while (running.load() > 0) sched_yield();
  GC_gcollect();
  EXPECT_EQ(bad.load(), 0);
  pthread_attr_destroy(&attributes);
}

TEST(Threads, ExplicitlyRegisteredOnesComeAndGo) {
  const std::uint64_t seed = test_seed();
  static std::atomic<int> bad;
  bad = 0;
  std::atomic<bool> finish{false};
  GcThread collector([&] {
    // With a rest in between: nothing says that the lock is fair.
    while (!finish.load()) {
      GC_gcollect();
      usleep(500);
    }
  });
  const std::size_t count = rounds(400);
  for (std::size_t i = 0; i < count; ++i) {
    pthread_t threads[4];
    for (pthread_t& thread : threads) {
      ASSERT_EQ(pthread_create(
                    &thread, nullptr,
                    [](void* own_seed) -> void* {
                      for (int k = 0; k < 3; ++k) {
                        GC_stack_base base;
                        GC_get_stack_base(&base);
                        if (GC_register_my_thread(&base) != GC_SUCCESS) ++bad;
                        if (!build_and_check(reinterpret_cast<std::uintptr_t>(own_seed), 30)) ++bad;
                        if (GC_unregister_my_thread() != GC_SUCCESS) ++bad;
                      }
                      return nullptr;
                    },
                    reinterpret_cast<void*>(seed + i)),
                0);
    }
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  }
  finish = true;
  collector.join();
  EXPECT_EQ(bad.load(), 0);
}

TEST(Threads, CallWithStackBaseAndRegistration) {
  static std::atomic<int> bad;
  bad = 0;
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    return GC_call_with_stack_base(
                        [](GC_stack_base* base, void*) -> void* {
                          GC_register_my_thread(base);
                          void* volatile list = make_list(100);
                          GC_gcollect();
                          if (list_length(list) != 100) ++bad;
                          GC_unregister_my_thread();
                          return nullptr;
                        },
                        nullptr);
                  },
                  nullptr),
              0);
    pthread_join(thread, nullptr);
  }
  EXPECT_EQ(bad.load(), 0);
}

// --- Destructors of thread-specific data --------------------------------------------------------

std::atomic<int> destructor_calls;
std::atomic<int> destructor_failures;
pthread_key_t allocating_key;

void allocate_in_destructor(void* value) {
  ++destructor_calls;
  void* list = make_list(200);
  GC_gcollect();
  if (list_length(list) != 200) ++destructor_failures;
  // And once more in the next round of destructors.
  const auto left = reinterpret_cast<std::uintptr_t>(value);
  if (left > 1) pthread_setspecific(allocating_key, reinterpret_cast<void*>(left - 1));
}

TEST(Threads, DestructorsMayAllocate) {
  destructor_calls = destructor_failures = 0;
  ASSERT_EQ(pthread_key_create(&allocating_key, allocate_in_destructor), 0);
  // The peer has forgotten the thread after its start function, so ask it for one round only.
  const std::uintptr_t destructor_rounds = 2;
  JD_OURS_ONLY("bdwgc unregisters a thread before its destructors run");
  for (int i = 0; i < 100; ++i) {
    run_threads(4, [](std::size_t) {
      pthread_setspecific(allocating_key, reinterpret_cast<void*>(destructor_rounds));
      opaque(make_list(10));
    });
  }
  EXPECT_EQ(destructor_calls.load(), 800);
  EXPECT_EQ(destructor_failures.load(), 0);
  pthread_key_delete(allocating_key);
}

pthread_key_t unregistering_key;
std::atomic<int> unregistered;

TEST(Threads, UnregistrationInADestructor) {
  // As Guile does: the thread registers itself and leaves in the destructor of a key of its own,
  // before or after the collector's own.
  unregistered = 0;
  ASSERT_EQ(pthread_key_create(&unregistering_key,
                               [](void*) {
                                 opaque(make_list(10));
                                 GC_unregister_my_thread();
                                 ++unregistered;
                               }),
            0);
  for (int i = 0; i < 200; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    GC_stack_base base;
                    GC_get_stack_base(&base);
                    GC_register_my_thread(&base);
                    pthread_setspecific(unregistering_key, &unregistered);
                    opaque(make_list(50));
                    return nullptr;
                  },
                  nullptr),
              0);
    if (i % 5 == 0) GC_gcollect();
    pthread_join(thread, nullptr);
  }
  EXPECT_EQ(unregistered.load(), 200);
  GC_gcollect();
  pthread_key_delete(unregistering_key);
}

TEST(Threads, AThreadThatForgetsToUnregister) {
  JD_OURS_ONLY("bdwgc would signal a thread that is gone");
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    GC_stack_base base;
                    GC_get_stack_base(&base);
                    GC_register_my_thread(&base);
                    opaque(make_list(50));
                    return nullptr;
                  },
                  nullptr),
              0);
    pthread_join(thread, nullptr);
    GC_gcollect();
  }
}

// --- Cancellation
// -----------------------------------------------------------------------------------

TEST(Threads, CancelledThreads) {
#if defined(JD_SANITIZE_ADDRESS)
  GTEST_SKIP() << "AddressSanitizer reports its own clean-up of a cancelled thread";
#endif
  static std::atomic<bool> started;
  for (int i = 0; i < 100; ++i) {
    started = false;
    pthread_t thread;
    ASSERT_EQ(GC_pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    void* volatile list = make_list(50);
                    started = true;
                    for (;;) {
                      opaque(make_list(5));
                      pthread_testcancel();
                    }
                    keep_here(list);
                    return nullptr;
                  },
                  nullptr),
              0);
    while (!started.load()) sched_yield();
    if (i % 3 == 0) GC_gcollect();
    ASSERT_EQ(GC_pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(GC_pthread_join(thread, &result), 0);
    ASSERT_EQ(result, PTHREAD_CANCELED);
  }
  // Collections go on afterwards.
  const GC_word before = GC_get_gc_no();
  GC_gcollect();
  EXPECT_EQ(GC_get_gc_no(), before + 1);
}

TEST(Threads, CancelledWhileBlocked) {
  for (int i = 0; i < 50; ++i) {
    static sem_t never;
    static std::atomic<bool> blocked;
    sem_init(&never, 0, 0);
    blocked = false;
    pthread_t thread;
    ASSERT_EQ(GC_pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    blocked = true;
                    sem_wait(&never);
                    return nullptr;
                  },
                  nullptr),
              0);
    while (!blocked.load()) sched_yield();
    GC_gcollect();
    ASSERT_EQ(GC_pthread_cancel(thread), 0);
    ASSERT_EQ(GC_pthread_join(thread, nullptr), 0);
  }
  GC_gcollect();
}

TEST(Threads, ExitFromTheMiddle) {
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    ASSERT_EQ(GC_pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    opaque(make_list(20));
                    GC_pthread_exit(GC_malloc(16));
                    return nullptr;
                  },
                  nullptr),
              0);
    void* result = nullptr;
    ASSERT_EQ(GC_pthread_join(thread, &result), 0);
    EXPECT_EQ(GC_base(result), result);
    GC_gcollect();
  }
}

TEST(Threads, ReturnValuesLiveUntilJoined) {
  constexpr int kThreads = 20;
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) {
    ASSERT_EQ(GC_pthread_create(
                  &thread, nullptr, [](void*) -> void* { return make_list(300); }, nullptr),
              0);
  }
  usleep(50000);
  for (int i = 0; i < 5; ++i) {
    collect();
    opaque(make_list(10000));
  }
  for (const pthread_t thread : threads) {
    void* list = nullptr;
    ASSERT_EQ(GC_pthread_join(thread, &list), 0);
    EXPECT_EQ(list_length(list), 300u);
  }
}

// By allocating again, a thread that unregistered itself is back.
// More than the registry's tables have chains, so that each record has others before and behind it
// in a chain; joined in neither order, some while they run and some when they have ended, with new
// ones in between.
TEST(Threads, ThoseOfACrowdGiveTheirResultsInAnyOrder) {
  constexpr std::size_t kThreads = 700;
  constexpr std::size_t kStep = 271;  // has no divisor in common with the number of threads
  std::atomic<bool> finish{false};
  const auto body = [](void* data) -> void* {
    const auto* wait = static_cast<std::atomic<bool>*>(data);
    auto** result = static_cast<void**>(GC_malloc(16));
    result[0] = reinterpret_cast<void*>(pthread_self());
    while (wait != nullptr && !wait->load()) usleep(1000);
    return result;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{128} * 1024);
  std::vector<pthread_t> threads(kThreads);
  const auto start = [&](std::size_t i, bool waits) {
    ASSERT_EQ(GC_pthread_create(&threads[i], &attributes, body, waits ? &finish : nullptr), 0);
  };
  std::size_t wrong = 0;
  const auto join = [&](std::size_t i) {
    void* result = nullptr;
    if (GC_pthread_join(threads[i], &result) != 0 || result == nullptr ||
        *static_cast<void**>(result) != reinterpret_cast<void*>(threads[i])) {
      ++wrong;
    }
  };
  for (std::size_t i = 0; i < kThreads; ++i) start(i, i % 2 == 0);
  collect();
  // The odd ones first, and others in their place.
  for (std::size_t n = 0; n < kThreads; ++n) {
    const std::size_t i = n * kStep % kThreads;
    if (i % 2 == 0) continue;
    join(i);
    start(i, i % 3 == 0);
  }
  collect();
  EXPECT_EQ(GC_is_thread_suspended(threads[0]), 0);
  GC_suspend_thread(threads[0]);
  EXPECT_NE(GC_is_thread_suspended(threads[0]), 0);
  GC_resume_thread(threads[0]);
  finish = true;
  for (std::size_t n = 0; n < kThreads; ++n) join(n * kStep % kThreads);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(wrong, 0u);
}

TEST(Threads, ReturnValuesOfThreadsThatCameBackLiveUntilJoined) {
  JD_OURS_ONLY("bdwgc's threads don't register by themselves");
  constexpr int kThreads = 20;
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) {
    ASSERT_EQ(GC_pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                    opaque(make_list(10));
                    GC_unregister_my_thread();
                    return make_list(300);
                  },
                  nullptr),
              0);
  }
  usleep(50000);
  for (int i = 0; i < 5; ++i) {
    collect();
    opaque(make_list(10000));
  }
  for (const pthread_t thread : threads) {
    void* list = nullptr;
    ASSERT_EQ(GC_pthread_join(thread, &list), 0);
    EXPECT_EQ(list_length(list), 300u);
  }
}

TEST(Threads, SmallStacks) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Room for a signal frame with all vector registers, and for the collector on top.
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 * 1024), 0);
  static std::atomic<int> bad;
  bad = 0;
  for (int i = 0; i < 20; ++i) {
    pthread_t threads[5];
    for (pthread_t& thread : threads) {
      ASSERT_EQ(GC_pthread_create(
                    &thread, &attributes,
                    [](void*) -> void* {
                      if (!build_and_check(1, 200)) ++bad;
                      GC_gcollect();
                      return nullptr;
                    },
                    nullptr),
                0);
    }
    for (const pthread_t thread : threads) GC_pthread_join(thread, nullptr);
  }
  EXPECT_EQ(bad.load(), 0);
  pthread_attr_destroy(&attributes);
}

TEST(Threads, AUsersOwnStackMemory) {
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<char> memory(kBytes + 4096);
  char* stack = memory.data() + (4096 - reinterpret_cast<std::uintptr_t>(memory.data()) % 4096);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, stack, kBytes), 0);
  static std::atomic<int> bad;
  bad = 0;
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    ASSERT_EQ(GC_pthread_create(
                  &thread, &attributes,
                  [](void*) -> void* {
                    void* volatile list = make_list(100);
                    GC_gcollect();
                    if (list_length(list) != 100) ++bad;
                    return nullptr;
                  },
                  nullptr),
              0);
    GC_gcollect();
    GC_pthread_join(thread, nullptr);
  }
  EXPECT_EQ(bad.load(), 0);
  pthread_attr_destroy(&attributes);
}

TEST(Threads, PassObjectsAround) {
  // A ring of threads, each handing lists on to the next through static slots.
  constexpr std::size_t kThreads = 4;
  static std::atomic<void*> slots[kThreads];
  static std::atomic<int> bad;
  bad = 0;
  const std::size_t passes = rounds(20000);
  run_threads(kThreads, [&](std::size_t t) {
    for (std::size_t i = 0; i < passes; ++i) {
      void* list = slots[t].exchange(nullptr);
      if (list != nullptr && list_length(list) != 7) ++bad;
      if (list == nullptr) list = make_list(7, 32);
      slots[(t + 1) % kThreads].exchange(list);
      if (i % 2000 == t * 100) GC_gcollect();
    }
  });
  for (auto& slot : slots) slot = nullptr;
  EXPECT_EQ(bad.load(), 0);
}

}  // namespace
}  // namespace jd::test

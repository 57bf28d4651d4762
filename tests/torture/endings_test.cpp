// Threads that end in unusual ways: known to the collector until the very end (world.req.exit),
// cancelled out of a blocking section, cancelled in the middle of a collection. In children, since
// what goes wrong ends the program or never ends.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

void expect_ok(const char* child, const Environment& environment = {}) {
  const ChildResult r = run_child(child, environment, 30);
  EXPECT_TRUE(r.ok()) << r;
}

// --- Registered in a destructor
// ----------------------------------------------------------------------

pthread_key_t key;
std::atomic<int> calls;
std::atomic<bool> inside;

// Threads that end, the last with their stacks unmapped, because glibc keeps 40 MiB of stacks only.
template <int kThreads = 40>
int end_threads(void* (*body)(void*)) {
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) {
    if (pthread_create(&thread, nullptr, body, nullptr) != 0) return 9;
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  for (int i = 0; i < 3; ++i) {
    GC_gcollect();
    opaque(make_list(1000));
  }
  return 0;
}

JD_CHILD(first_allocation_in_a_destructor) {
  GC_INIT();
  pthread_key_create(&key, [](void*) { opaque(make_list(100)); });
  static pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, 40);
  return end_threads([](void*) -> void* {
    pthread_setspecific(key, &calls);
    pthread_barrier_wait(&all);
    return nullptr;
  });
}

TEST(Endings, ADestructorMayMakeTheFirstAllocation) {
  JD_OURS_ONLY("bdwgc wants threads to be registered");
  expect_ok("first_allocation_in_a_destructor");
}

JD_CHILD(registered_again_in_a_destructor) {
  GC_INIT();
  GC_allow_register_threads();
  pthread_key_create(&key, [](void*) {
    ++calls;
    opaque(make_list(100));
    if (GC_thread_is_registered() == 0) _exit(8);
  });
  const int status = end_threads([](void*) -> void* {
    GC_stack_base base;
    GC_get_stack_base(&base);
    GC_register_my_thread(&base);
    pthread_setspecific(key, &calls);
    GC_unregister_my_thread();
    return nullptr;
  });
  return status != 0 ? status : calls == 40 ? 0 : 7;
}

TEST(Endings, ADestructorMayAllocateAfterUnregistering) {
  JD_OURS_ONLY("bdwgc wants threads to be registered");
  expect_ok("registered_again_in_a_destructor");
}

JD_CHILD(allocation_in_every_round) {
  GC_INIT();
  // The collector's own key comes before this one: in the last round, too.
  pthread_key_create(&key, [](void* value) {
    ++calls;
    opaque(make_list(100));
    pthread_setspecific(key, value);
  });
  const int status = end_threads([](void*) -> void* {
    pthread_setspecific(key, &calls);
    opaque(make_list(10));
    return nullptr;
  });
  return status != 0 ? status : calls == 40 * PTHREAD_DESTRUCTOR_ITERATIONS ? 0 : 7;
}

TEST(Endings, DestructorsMayAllocateInEveryRound) {
  JD_OURS_ONLY("bdwgc wants threads to be registered");
  JD_SKIP_UNDER_TSAN(
      "gives a thread up in the last round of its destructors: nothing can run then");
  expect_ok("allocation_in_every_round");
}

JD_CHILD(ends_without_a_word) {
  GC_INIT();
  // A thread that no destructor tells of, while it is an ordinary one and in a blocking section.
  // Detached: nobody could join it.
  static std::atomic<int> ended;
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void* number) -> void* {
          opaque(make_list(100));
          const auto leave = [](void*) -> void* {
            ++ended;
            syscall(SYS_exit, 0);
            return nullptr;
          };
          return number == nullptr ? leave(nullptr) : GC_do_blocking(leave, nullptr);
        },
        i % 2 == 0 ? nullptr : &ended);
    pthread_detach(thread);
    while (ended.load() <= i) sched_yield();
    GC_gcollect();
  }
  return 0;
}

// In the last round nobody hears of the thread's end any more.
std::atomic<long> round_to_allocate;
pthread_key_t round_key;
void allocate_in_round(void* argument) {
  const auto round = reinterpret_cast<std::intptr_t>(argument);
  if (round == round_to_allocate.load()) {
    for (int i = 0; i < 10; ++i) opaque(GC_MALLOC(32));
  }
  if (round < 4) pthread_setspecific(round_key, reinterpret_cast<void*>(round + 1));
}
void* return_an_object(void* argument) {
  pthread_setspecific(round_key, reinterpret_cast<void*>(1));
  auto* result = static_cast<void**>(GC_MALLOC(64));
  result[0] = argument;
  result[1] = &round_key;
  return result;
}
JD_CHILD(results_after_late_allocations) {
  GC_INIT();
  if (pthread_key_create(&round_key, allocate_in_round) != 0) return 9;
  for (long round = 1; round <= 4; ++round) {
    round_to_allocate.store(round);
    pthread_t threads[8];
    for (pthread_t& thread : threads) {
      if (GC_pthread_create(&thread, nullptr, return_an_object, &thread) != 0) return 9;
    }
    usleep(20000);
    for (int i = 0; i < 3; ++i) GC_gcollect();
    for (int i = 0; i < 20000; ++i) static_cast<void**>(GC_MALLOC(64))[0] = &round_key;
    for (pthread_t& thread : threads) {
      void* result = nullptr;
      if (GC_pthread_join(thread, &result) != 0) return 9;
      const auto* words = static_cast<void**>(result);
      if (words[0] != &thread || words[1] != &round_key) return static_cast<int>(round);
    }
  }
  return 0;
}
TEST(Endings, ResultsLastWhereDestructorsAllocateInAnyRound) {
  JD_OURS_ONLY("bdwgc's threads do not survive it");
  JD_SKIP_UNDER_TSAN(
      "gives a thread up in the last round of its destructors: nothing can run then");
  expect_ok("results_after_late_allocations");
}

TEST(Endings, AThreadMayLeaveByASystemCall) {
  JD_OURS_ONLY("bdwgc keeps the thread");
  expect_ok("ends_without_a_word");
}

JD_CHILD(main_thread_registers_last) {
  GC_INIT();
  pthread_key_create(&key, [](void* value) {
    opaque(make_list(10));
    pthread_setspecific(key, value);
  });
  pthread_setspecific(key, &calls);
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        usleep(50000);
        for (int i = 0; i < 5; ++i) {
          opaque(make_list(1000));
          GC_gcollect();
        }
        _exit(0);
      },
      nullptr);
  // What is left of a main thread that ends first can still be signalled.
  pthread_exit(nullptr);
}

TEST(Endings, TheMainThreadMayAllocateLast) {
  JD_OURS_ONLY("bdwgc signals the main thread for ever");
  JD_SKIP_UNDER_TSAN(
      "gives a thread up in the last round of its destructors: nothing can run then");
  expect_ok("main_thread_registers_last");
}

// --- Cancelled in a collection
// -----------------------------------------------------------------------

int collect_with_cancellation_pending(int (*how)()) {
  GC_INIT();
  static int (*collect_somehow)();
  collect_somehow = how;
  pthread_t thread;
  GC_pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        pthread_cancel(pthread_self());
        const int status = collect_somehow();
        pthread_testcancel();
        return reinterpret_cast<void*>(static_cast<std::intptr_t>(status + 1));
      },
      nullptr);
  void* result = nullptr;
  GC_pthread_join(thread, &result);
  GC_gcollect();
  return result == PTHREAD_CANCELED ? 0 : 1;
}

JD_CHILD(cancelled_while_logging) {
  return collect_with_cancellation_pending([] {
    for (int i = 0; i < 3; ++i) GC_gcollect();
    return 0;
  });
}

// os.req.no-cancellation
TEST(Endings, NoCancellationWhileACollectionLogs) {
  // The log is written while the lock is held.
  const ChildResult r = run_child("cancelled_while_logging", {{"GC_PRINT_STATS", "1"}}, 30);
  EXPECT_TRUE(r.ok()) << r;
}

JD_CHILD(cancelled_while_stopping) {
  return collect_with_cancellation_pending([] {
    // A stop that takes long: the thread reads /proc and sleeps.
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          sigset_t all;
          sigfillset(&all);
          sigset_t before;
          opaque(make_list(10));
          pthread_sigmask(SIG_SETMASK, &all, &before);
          inside = true;
          usleep(50000);
          pthread_sigmask(SIG_SETMASK, &before, nullptr);
          return nullptr;
        },
        nullptr);
    pthread_detach(thread);
    while (!inside.load()) sched_yield();
    GC_gcollect();
    return 0;
  });
}

TEST(Endings, NoCancellationWhileTheWorldIsBeingStopped) { expect_ok("cancelled_while_stopping"); }

// --- Out of a blocking section
// -----------------------------------------------------------------------

std::atomic<bool> done;

// Allocates and checks, while the main thread collects.
void allocate_and_check() {
  constexpr int kObjects = 64;
  for (int round = 0; round < 3000; ++round) {
    long* volatile objects[kObjects];
    for (int i = 0; i < kObjects; ++i) {
      objects[i] = static_cast<long*>(GC_malloc(24));
      objects[i][0] = round * kObjects + i;
    }
    for (int i = 0; i < kObjects; ++i) {
      if (GC_base(objects[i]) != objects[i] || objects[i][0] != round * kObjects + i) {
        std::fprintf(stderr, "an object of a thread that left a blocking section is gone\n");
        _exit(1);
      }
    }
  }
  done = true;
}

void* pause_for_ever(void*) {
  inside = true;
  for (;;) pause();
}

int collect_until_done(void* (*body)(void*), bool cancel) {
  GC_INIT();
  pthread_t thread;
  GC_pthread_create(&thread, nullptr, body, nullptr);
  while (!inside.load()) sched_yield();
  if (cancel) pthread_cancel(thread);
  while (!done.load()) GC_gcollect();
  GC_pthread_join(thread, nullptr);
  GC_gcollect();
  return 0;
}

JD_CHILD(cancelled_out_of_blocking) {
  pthread_key_create(&key, [](void*) { allocate_and_check(); });
  return collect_until_done(
      [](void*) -> void* {
        pthread_setspecific(key, &calls);
        GC_do_blocking(pause_for_ever, nullptr);
        return nullptr;
      },
      true);
}

JD_CHILD(cleanup_after_blocking) {
  return collect_until_done(
      [](void*) -> void* {
        pthread_cleanup_push([](void*) { allocate_and_check(); }, nullptr);
        GC_do_blocking(pause_for_ever, nullptr);
        pthread_cleanup_pop(0);
        return nullptr;
      },
      true);
}

JD_CHILD(exit_out_of_blocking) {
  pthread_key_create(&key, [](void*) { allocate_and_check(); });
  return collect_until_done(
      [](void*) -> void* {
        pthread_setspecific(key, &calls);
        GC_do_blocking(
            [](void*) -> void* {
              inside = true;
              pthread_exit(nullptr);
            },
            nullptr);
        return nullptr;
      },
      false);
}

JD_CHILD(exception_out_of_blocking) {
  return collect_until_done(
      [](void*) -> void* {
        try {
          GC_do_blocking(
              [](void*) -> void* {
                inside = true;
                throw std::runtime_error("out");
              },
              nullptr);
        } catch (const std::runtime_error&) {
          allocate_and_check();
        }
        return nullptr;
      },
      false);
}

class LeftBlocking : public testing::TestWithParam<const char*> {};

TEST_P(LeftBlocking, IsAnOrdinaryThreadAgain) {
  JD_OURS_ONLY("bdwgc goes on believing that the thread is blocked");
  const std::string child = GetParam();
  if (child == "cancelled_out_of_blocking" || child == "cleanup_after_blocking") {
    JD_SKIP_UNDER_TSAN("takes a thread that was cancelled in a call for being in that call still");
  }
  expect_ok(GetParam());
}

INSTANTIATE_TEST_SUITE_P(By, LeftBlocking,
                         testing::Values("cancelled_out_of_blocking", "cleanup_after_blocking",
                                         "exit_out_of_blocking", "exception_out_of_blocking"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jd::test

// GC_suspend_thread together with collections, blocking sections and itself (world.req.held). Each
// case runs in a child: what goes wrong here ends in a program that waits for ever.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

std::atomic<bool> go;
std::atomic<bool> inside;
std::atomic<bool> after;

pthread_t start(void* (*body)(void*)) {
  pthread_t thread;
  if (GC_pthread_create(&thread, nullptr, body, nullptr) != 0) _exit(9);
  return thread;
}

// True if nothing happens for a while that would have happened by then.
bool stays_false(const std::atomic<bool>& flag) {
  for (int i = 0; i < 50 && !flag.load(); ++i) usleep(1000);
  return !flag.load();
}

int fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

void expect_ok(const char* child) {
  const ChildResult r = run_child(child, {}, 20);
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.err, "") << r;
}

JD_CHILD(suspend_after_collections) {
  GC_INIT();
  constexpr int kThreads = 3;
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) {
    thread = start([](void*) -> void* {
      for (;;) {
        for (int i = 0; i < 1000; ++i) asm volatile("" : : : "memory");
      }
    });
  }
  // The threads are still on their way out of the stop, or of the suspension before.
  for (int i = 0; i < 100; ++i) {
    GC_gcollect();
    for (const pthread_t thread : threads) GC_suspend_thread(thread);
    if (i % 3 == 0) GC_gcollect();
    for (const pthread_t thread : threads) GC_resume_thread(thread);
    for (const pthread_t thread : threads) {
      GC_suspend_thread(thread);
      GC_resume_thread(thread);
    }
  }
  _exit(0);
}

// bdwgc's own tests suspend a thread that may have ended.
JD_CHILD(suspend_the_ended) {
  GC_INIT();
  for (int i = 0; i < 50; ++i) {
    after = false;
    const pthread_t thread = start([](void*) -> void* {
      after = true;
      return &after;
    });
    if (i % 2 == 0) {
      while (!after) sched_yield();
      usleep(1000);
    }
    GC_suspend_thread(thread);
    if (GC_is_thread_suspended(thread) == 0) return fail("it is not suspended");
    GC_gcollect();
    GC_resume_thread(thread);
    if (GC_is_thread_suspended(thread) != 0) return fail("it is suspended still");
    void* result = nullptr;
    if (GC_pthread_join(thread, &result) != 0 || result != &after)
      return fail("its result is lost");
  }
  return 0;
}
TEST(Suspension, OfAThreadThatMayHaveEnded) { expect_ok("suspend_the_ended"); }

TEST(Suspension, RightAfterACollection) {
  JD_SKIP_UNDER_TSAN("hands signals over at calls that it knows, and these threads make none");
  expect_ok("suspend_after_collections");
}

JD_CHILD(suspends_itself) {
  GC_INIT();
  const pthread_t thread = start([](void*) -> void* {
    void* volatile list = make_list(100);
    GC_suspend_thread(pthread_self());
    if (list_length(list) != 100) _exit(8);
    after = true;
    return nullptr;
  });
  while (GC_is_thread_suspended(thread) == 0) sched_yield();
  if (!stays_false(after)) return fail("it ran on");
  for (int i = 0; i < 3; ++i) GC_gcollect();
  opaque(make_list(rounds(10000)));
  GC_resume_thread(thread);
  if (GC_is_thread_suspended(thread) != 0) return fail("still suspended");
  GC_pthread_join(thread, nullptr);
  return after ? 0 : fail("it never ran on");
}

TEST(Suspension, OfItself) { expect_ok("suspends_itself"); }

JD_CHILD(suspends_itself_while_blocked) {
  GC_INIT();
  const pthread_t thread = start([](void*) -> void* {
    GC_do_blocking(
        [](void*) -> void* {
          GC_suspend_thread(pthread_self());
          inside = true;
          return nullptr;
        },
        nullptr);
    after = true;
    return nullptr;
  });
  while (!inside.load()) sched_yield();
  if (!stays_false(after)) return fail("it left the section");
  for (int i = 0; i < 3; ++i) GC_gcollect();
  GC_resume_thread(thread);
  GC_pthread_join(thread, nullptr);
  return after ? 0 : fail("it never left the section");
}

TEST(Suspension, OfItselfInABlockingSection) { expect_ok("suspends_itself_while_blocked"); }

void* wait_inside(void*) {
  inside = true;
  while (!go.load()) sched_yield();
  return nullptr;
}

int suspended_where_it_leaves(void* (*body)(void*)) {
  GC_INIT();
  const pthread_t thread = start(body);
  while (!inside.load()) sched_yield();
  GC_suspend_thread(thread);
  go = true;
  if (!stays_false(after)) return fail("it left while suspended");
  for (int i = 0; i < 3; ++i) GC_gcollect();
  if (after) return fail("it left during a collection");
  GC_resume_thread(thread);
  GC_pthread_join(thread, nullptr);
  GC_gcollect();
  return after ? 0 : fail("it never left");
}

JD_CHILD(suspended_leaves_blocking_section) {
  return suspended_where_it_leaves([](void*) -> void* {
    GC_do_blocking(wait_inside, nullptr);
    after = true;
    return nullptr;
  });
}

JD_CHILD(suspended_becomes_active) {
  return suspended_where_it_leaves([](void*) -> void* {
    GC_do_blocking(
        [](void*) -> void* {
          wait_inside(nullptr);
          return GC_call_with_gc_active(
              [](void*) -> void* {
                after = true;
                opaque(make_list(100));
                return nullptr;
              },
              nullptr);
        },
        nullptr);
    return nullptr;
  });
}

// libc makes a thread cancellable at any instruction while it is in read(): also in a handler that
// interrupts it there.
int pipe_ends[2];

JD_CHILD(suspended_is_cancelled) {
  GC_INIT();
  if (pipe(pipe_ends) != 0) return fail("no pipe");
  const pthread_t thread = start([](void*) -> void* {
    const auto note = [](void* list) {
      after = true;
      if (list_length(list) != 300) _exit(fail("its list is damaged"));
    };
    void* volatile list = make_list(300);
    pthread_cleanup_push(note, list);
    inside = true;
    for (char byte = 0;;) {
      if (read(pipe_ends[0], &byte, 1) < 0) break;
    }
    pthread_cleanup_pop(0);
    keep_here(list);
    return nullptr;
  });
  while (!inside.load()) sched_yield();
  usleep(2000);
  GC_suspend_thread(thread);
  pthread_cancel(thread);
  if (!stays_false(after)) return fail("it was cancelled while it was suspended");
  for (int i = 0; i < 3; ++i) GC_gcollect();
  for (std::size_t i = rounds(10); i != 0; --i) opaque(make_list(10000));
  GC_resume_thread(thread);
  GC_pthread_join(thread, nullptr);
  return after ? 0 : fail("it was never cancelled");
}

TEST(Suspension, OutlastsCancellation) {
#if defined(JD_SANITIZE_ADDRESS)
  GTEST_SKIP() << "AddressSanitizer reports its own clean-up of a cancelled thread";
#elif defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer hands no signal to a thread in read()";
#endif
  expect_ok("suspended_is_cancelled");
}
TEST(Suspension, HoldsWhoLeavesABlockingSection) { expect_ok("suspended_leaves_blocking_section"); }
TEST(Suspension, HoldsWhoBecomesActive) { expect_ok("suspended_becomes_active"); }

}  // namespace
}  // namespace jd::test

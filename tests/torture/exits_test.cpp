// Programs that end while others of their threads are at work. (exec from such a program is not
// safe with any library that stops threads by signals: one that is pending goes to the new
// program.)
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "child.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

std::atomic<int> started;

void start_busy_threads(int count) {
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    GC_pthread_create(
        &thread, nullptr,
        [](void* number) -> void* {
          ++started;
          for (;;) {
            opaque(make_list(100));
            if (number == nullptr) GC_gcollect();
          }
        },
        i == 0 ? nullptr : &started);
  }
  while (started.load() < count) {
  }
  usleep(2000);
}

JD_CHILD(exit_while_busy) {
  GC_INIT();
  start_busy_threads(4);
  std::exit(3);
}

JD_CHILD(return_while_busy) {
  GC_INIT();
  start_busy_threads(4);
  return 4;
}

JD_CHILD(quick_exit_while_busy) {
  GC_INIT();
  start_busy_threads(4);
  std::quick_exit(5);
}

JD_CHILD(exit_in_other_thread) {
  GC_INIT();
  start_busy_threads(3);
  pthread_t thread;
  GC_pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        opaque(make_list(100));
        std::exit(6);
      },
      nullptr);
  for (;;) opaque(make_list(100));
}

JD_CHILD(main_thread_exits_first) {
  GC_INIT();
  pthread_t thread;
  GC_pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        usleep(50000);
        for (int i = 0; i < 20; ++i) {
          opaque(make_list(10000));
          GC_gcollect();
        }
        std::exit(7);
      },
      nullptr);
  // The bare one: the collector is not told.
  pthread_exit(nullptr);
}

JD_CHILD(allocate_in_atexit) {
  GC_INIT();
  std::atexit([] {
    opaque(make_list(10000));
    GC_gcollect();
    if (list_length(make_list(100)) != 100) _exit(1);
  });
  start_busy_threads(2);
  std::exit(8);
}

class Exits : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Exits, EndWithTheirStatus) {
  for (int i = 0; i < 10; ++i) {
    const ChildResult r = run_child(GetParam().first, {}, 30);
    ASSERT_EQ(r.status, GetParam().second) << "run " << i << ": " << r;
    ASSERT_EQ(r.err, "") << r;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Exits,
                         testing::Values(std::pair{"exit_while_busy", 3},
                                         std::pair{"return_while_busy", 4},
                                         std::pair{"quick_exit_while_busy", 5},
                                         std::pair{"exit_in_other_thread", 6},
                                         std::pair{"allocate_in_atexit", 8}),
                         [](const auto& info) { return info.param.first; });

TEST(ExitsOfOurs, TheMainThreadMayLeaveFirst) {
  JD_OURS_ONLY("bdwgc signals the main thread for ever");
  const ChildResult r = run_child("main_thread_exits_first", {}, 30);
  EXPECT_EQ(r.status, 7) << r;
}

}  // namespace
}  // namespace jd::test

// Handlers of the program's (pthread_atfork) that allocate as it forks.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.hpp"
#include "emulator.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

// Handlers of a library's that was there before the collector: they run with its own in between.
JD_CHILD(fork_between_handlers) {
  static void** kept = nullptr;
  const auto work = [] {
    for (int i = 0; i < 20000; ++i) {
      auto** const cell = static_cast<void**>(GC_malloc(40));
      *cell = *kept;
      *kept = i % 100 == 0 ? nullptr : cell;
    }
    GC_gcollect();
  };
  if (pthread_atfork(work, work, work) != 0) return 2;
  GC_INIT();
  kept = static_cast<void**>(GC_malloc_uncollectable(sizeof(void*)));
  for (int i = 0; i < 20; ++i) {
    work();
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return 0;
}

TEST(Fork, HandlersOfAProgramWithOneThreadMayAllocate) {
  JD_SKIP_IN_EMULATOR("has a thread of its own, so that no program has but one");
  // Threads of the collector's would be others.
  const ChildResult r = run_child(
      "fork_between_handlers",
      {{"GC_MARKERS", "1"}, {"JACKDAW_MARK_BESIDE", "0"}, {"JACKDAW_COLLECT_EVERY", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test

// Finalizers that run when the program asks for it, and who is told that there are some to run.
#include <cstdio>

#include "child.hpp"
#include "finalizers.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

class OnDemand : public testing::Test {
 protected:
  void SetUp() override {
    collect_all();
    finalized = 0;
    GC_set_finalize_on_demand(1);
  }
  void TearDown() override {
    GC_set_finalizer_notifier(nullptr);
    GC_set_finalize_on_demand(0);
    collect_all();
  }
};

TEST_F(OnDemand, NothingRunsByItself) {
  make_finalizable(1000);
  collect();
  collect();
  for (int i = 0; i < 20000; ++i) opaque(GC_malloc(100));
  EXPECT_EQ(finalized.load(), 0u);
  EXPECT_NE(GC_should_invoke_finalizers(), 0);
  const int run = GC_invoke_finalizers();
  EXPECT_GE(run, 950);
  EXPECT_EQ(finalized.load(), static_cast<std::size_t>(run));
  EXPECT_EQ(GC_should_invoke_finalizers(), 0);
  EXPECT_EQ(GC_invoke_finalizers(), 0);
}

std::size_t notified;

void count_notification() { ++notified; }

TEST_F(OnDemand, TheNotifierIsCalledWhenThereIsWork) {
  notified = 0;
  GC_set_finalizer_notifier(count_notification);
  collect();
  EXPECT_EQ(notified, 0u);
  make_finalizable(1000);
  collect();
  EXPECT_GE(notified, 1u);
  EXPECT_EQ(finalized.load(), 0u);
  EXPECT_GE(GC_invoke_finalizers(), 900);
}

void notifier_that_uses_everything() {
  // A collection in here calls it again.
  static bool inside = false;
  ++notified;
  if (inside) return;
  inside = true;
  opaque(GC_malloc(1000));
  run_threads(1, [](std::size_t) { opaque(make_list(100)); });
  inside = false;
}

// cycle.req.lock: as finalizers may, and the out-of-memory function.
TEST_F(OnDemand, TheNotifierMayAllocateAndStartThreads) {
  notified = 0;
  GC_set_finalizer_notifier(notifier_that_uses_everything);
  make_finalizable(1000);
  collect();
  EXPECT_GE(notified, 1u);
}

TEST_F(OnDemand, QueuedObjectsStayUntilTheirTurn) {
  Watch watch;
  far_away([&] {
    for (int i = 0; i < 500; ++i) {
      auto** object = static_cast<void**>(GC_malloc(40));
      *object = make_list(3);
      watch.add(*object);
      GC_register_finalizer_no_order(object, count_finalized, nullptr, nullptr, nullptr);
    }
  });
  collect();
  collect();
  // Their links were cleared with the objects' (they were unreachable), but not their memory.
  const std::size_t queued_before = finalized.load();
  EXPECT_EQ(queued_before, 0u);
  EXPECT_GE(GC_invoke_finalizers(), 475);
}

TEST(Finalizer, AwaitProcSeesEachQueuedObject) {
  static std::size_t seen;
  collect_all();
  seen = 0;
  finalized = 0;
  GC_set_await_finalize_proc([](void*) { ++seen; });
  make_finalizable(500);
  collect_all();
  GC_set_await_finalize_proc(nullptr);
  EXPECT_GE(seen, 475u);
  EXPECT_EQ(GC_get_await_finalize_proc(), nullptr);
}

JD_CHILD(await_at_the_end) {
  GC_INIT();
  static std::size_t seen;
  GC_set_await_finalize_proc([](void*) { ++seen; });
  auto** held = static_cast<void**>(GC_malloc(100 * sizeof(void*)));
  for (int i = 0; i < 100; ++i) {
    held[i] = GC_malloc(40);
    GC_register_finalizer(
        held[i],
        [](void*, void*) {
          finalized.fetch_add(1);
          GC_gcollect();
        },
        nullptr, nullptr, nullptr);
  }
  GC_finalize_all();
  keep_here(held);
  std::printf("%zu %zu\n", seen, finalized.load());
  return 0;
}

TEST(Finalizer, FinalizeAllIsNotAwaited) {
  const ChildResult r = run_child("await_at_the_end");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "0 100\n") << r;
}

}  // namespace
}  // namespace jd::test

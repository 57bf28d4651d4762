// Finalizers: registration, what is returned, when they run and what they may do.
#include <setjmp.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "child.hpp"
#include "finalizers.hpp"
#include "gc_test.hpp"
#include "threads.hpp"

namespace jd::test {
namespace {

using Register = void (*)(void*, GC_finalization_proc, void*, GC_finalization_proc*, void**);

void count_in_data(void*, void* data) {
  finalized.fetch_add(1);
  ++*static_cast<int*>(data);
}

class EachRegistration : public testing::TestWithParam<std::pair<const char*, Register>> {
 protected:
  void SetUp() override { finalized = 0; }
  void add(void* object, GC_finalization_proc fn, void* data) {
    GetParam().second(object, fn, data, nullptr, nullptr);
  }
};

TEST_P(EachRegistration, RunsOnceForEachDeadObject) {
  constexpr std::size_t kCount = 1000;
  static int counts[kCount];
  std::memset(counts, 0, sizeof counts);
  far_away([&] {
    for (int& count : counts) add(GC_malloc(40), count_in_data, &count);
  });
  EXPECT_TRUE(finalizes(kCount * 95 / 100)) << finalized.load();
  for (int i = 0; i < 3; ++i) collect_all();
  for (const int count : counts) ASSERT_LE(count, 1);
}

TEST_P(EachRegistration, NeverRunsForReachableObjects) {
  auto** held = static_cast<void**>(GC_malloc(300 * sizeof(void*)));
  for (int i = 0; i < 300; ++i) {
    held[i] = GC_malloc(40);
    add(held[i], count_finalized, nullptr);
  }
  collect_all();
  EXPECT_EQ(finalized.load(), 0u);
  for (int i = 0; i < 300; ++i) add(held[i], nullptr, nullptr);
  keep_here(held);
}

TEST_P(EachRegistration, ReturnsWhatWasRegisteredBefore) {
  void* const object = GC_malloc(40);
  int data = 0;
  auto fn = reinterpret_cast<GC_finalization_proc>(&data);
  void* old_data = &data;
  const Register reg = GetParam().second;
  reg(object, count_finalized, &data, &fn, &old_data);
  EXPECT_EQ(fn, nullptr);
  EXPECT_EQ(old_data, nullptr);
  reg(object, count_finalized, nullptr, &fn, &old_data);
  EXPECT_EQ(fn, count_finalized);
  EXPECT_EQ(old_data, &data);
  reg(object, nullptr, nullptr, &fn, &old_data);
  EXPECT_EQ(fn, count_finalized);
  EXPECT_EQ(old_data, nullptr);
  reg(object, nullptr, nullptr, &fn, &old_data);
  EXPECT_EQ(fn, nullptr);
  EXPECT_EQ(old_data, nullptr);
  keep_here(object);
}

TEST_P(EachRegistration, InLeakFindingModeNothingIsWritten) {
  void* const object = GC_malloc(40);
  int data = 0;
  const auto before = reinterpret_cast<GC_finalization_proc>(&data);
  auto fn = before;
  void* old_data = &data;
  GC_set_find_leak(1);
  GetParam().second(object, count_finalized, &data, &fn, &old_data);
  GC_set_find_leak(0);
  EXPECT_EQ(fn, before);
  EXPECT_EQ(old_data, &data);
  GetParam().second(object, nullptr, nullptr, &fn, &old_data);
  EXPECT_EQ(fn, nullptr);
  keep_here(object);
}

TEST_P(EachRegistration, RemovedOnesDoNotRun) {
  far_away([&] {
    for (int i = 0; i < 1000; ++i) {
      void* const object = GC_malloc(24);
      add(object, count_finalized, nullptr);
      add(object, nullptr, nullptr);
    }
  });
  collect_all();
  EXPECT_EQ(finalized.load(), 0u);
}

TEST_P(EachRegistration, ObjectsOutsideTheHeapAreRefused) {
  int on_stack = 0;
  auto fn = reinterpret_cast<GC_finalization_proc>(&on_stack);
  void* data = &on_stack;
  GetParam().second(&on_stack, count_finalized, nullptr, &fn, &data);
  EXPECT_EQ(fn, nullptr);
  EXPECT_EQ(data, nullptr);
  collect_all();
  EXPECT_EQ(finalized.load(), 0u);
}

// The object and its data have their contents when the finalizer runs.
struct Content {
  char text[56];
};

void check_content(void* object, void* data) {
  if (holds_pattern(object, 64, 5) && holds_pattern(data, sizeof(Content), 6)) {
    finalized.fetch_add(1);
  }
}

TEST_P(EachRegistration, ObjectAndDataAreIntact) {
  constexpr std::size_t kCount = 500;
  Watch data_watch;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* const object = GC_malloc(64);
      void* const data = GC_malloc(sizeof(Content));
      fill_pattern(object, 64, 5);
      fill_pattern(data, sizeof(Content), 6);
      add(object, check_content, data);
      data_watch.add(data);
    }
  });
  EXPECT_TRUE(finalizes(kCount * 95 / 100)) << finalized.load();
  // The data goes when its object is gone.
  EXPECT_TRUE(most_collected(data_watch));
}

TEST_P(EachRegistration, DataIsHeldWhileTheObjectLives) {
  Watch data_watch;
  auto** held = static_cast<void**>(GC_malloc(200 * sizeof(void*)));
  far_away([&] {
    for (int i = 0; i < 200; ++i) {
      held[i] = GC_malloc(40);
      void* const data = GC_malloc(48);
      data_watch.add(data);
      add(held[i], count_finalized, data);
    }
  });
  collect_all();
  EXPECT_TRUE(all_alive(data_watch));
  for (int i = 0; i < 200; ++i) add(held[i], nullptr, nullptr);
  keep_here(held);
}

void* resurrected[1000];
std::size_t resurrected_count;

void resurrect(void* object, void*) { resurrected[resurrected_count++] = object; }

TEST_P(EachRegistration, AResurrectedObjectLivesOnAndCanBeRegisteredAgain) {
  constexpr std::size_t kCount = 500;
  resurrected_count = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* const object = GC_malloc(64);
      fill_pattern(object, 64, 8);
      add(object, resurrect, nullptr);
    }
  });
  collect_all();
  EXPECT_GE(resurrected_count, kCount * 95 / 100);
  collect_all();
  for (std::size_t i = 0; i < resurrected_count; ++i) {
    ASSERT_TRUE(holds_pattern(resurrected[i], 64, 8));
  }
  far_away([&] {
    for (std::size_t i = 0; i < resurrected_count; ++i) {
      add(resurrected[i], count_finalized, nullptr);
    }
  });
  collect_all();
  EXPECT_EQ(finalized.load(), 0u);
  std::memset(resurrected, 0, sizeof resurrected);
  EXPECT_TRUE(finalizes(resurrected_count * 95 / 100)) << finalized.load();
}

void allocate_much(void*, void*) {
  void* list = nullptr;
  for (int i = 0; i < 200; ++i) {
    auto** node = static_cast<void**>(GC_malloc(64));
    node[0] = list;
    list = node;
  }
  if (list_length(list) == 200) finalized.fetch_add(1);
}

TEST_P(EachRegistration, AFinalizerMayAllocateAndCollect) {
  far_away([&] {
    for (int i = 0; i < 300; ++i) add(GC_malloc(40), allocate_much, nullptr);
  });
  EXPECT_TRUE(finalizes(285u)) << finalized.load();
}

void register_another(void*, void* data) {
  finalized.fetch_add(1);
  const auto left = reinterpret_cast<std::uintptr_t>(data);
  if (left == 0) return;
  GC_register_finalizer_no_order(GC_malloc(40), register_another, reinterpret_cast<void*>(left - 1),
                                 nullptr, nullptr);
}

TEST_P(EachRegistration, AFinalizerMayRegisterAnother) {
  far_away([&] {
    for (int i = 0; i < 100; ++i) {
      add(GC_malloc(40), register_another, reinterpret_cast<void*>(std::uintptr_t{3}));
    }
  });
  EXPECT_TRUE(finalizes(380)) << finalized.load();
}

TEST_P(EachRegistration, LargeObjectsAreFinalized) {
  far_away([&] {
    for (int i = 0; i < 100; ++i) add(GC_malloc(300000), count_finalized, nullptr);
  });
  EXPECT_TRUE(finalizes(95u)) << finalized.load();
}

TEST_P(EachRegistration, AtomicObjectsAreFinalized) {
  far_away([&] {
    for (int i = 0; i < 1000; ++i) add(GC_malloc_atomic(24), count_finalized, nullptr);
  });
  EXPECT_TRUE(finalizes(950u)) << finalized.load();
}

INSTANTIATE_TEST_SUITE_P(
    All, EachRegistration,
    testing::Values(std::pair{"ordered", Register{GC_register_finalizer}},
                    std::pair{"ignore_self", Register{GC_register_finalizer_ignore_self}},
                    std::pair{"no_order", Register{GC_register_finalizer_no_order}},
                    std::pair{"unreachable", Register{GC_register_finalizer_unreachable}}),
    [](const auto& info) { return info.param.first; });

// --- When they run
// --------------------------------------------------------------------------------

TEST(Finalizer, RunsInAllocationWithoutBeingAsked) {
  collect_all();
  finalized = 0;
  make_finalizable(1000);
  for (int i = 0; i < 40000000 && finalized.load() < 900; ++i) opaque(GC_malloc(256));
  EXPECT_GE(finalized.load(), 900u);
}

TEST(Finalizer, OfADisabledCollectorWaits) {
  collect_all();
  finalized = 0;
  GC_disable();
  make_finalizable(100);
  collect();
  EXPECT_EQ(finalized.load(), 0u);
  GC_enable();
  collect_all();
  EXPECT_GE(finalized.load(), 95u);
}

// Non-local exit out of a finalizer, as Lisp systems do.

jmp_buf escape;

void jump_out(void*, void*) {
  finalized.fetch_add(1);
  longjmp(escape, 1);
}

TEST(Finalizer, MayLeaveByLongjmp) {
  GC_set_finalize_on_demand(1);
  collect_all();
  finalized = 0;
  far_away([&] {
    for (int i = 0; i < 100; ++i) {
      GC_register_finalizer_no_order(GC_malloc(40), jump_out, nullptr, nullptr, nullptr);
    }
  });
  collect();
  // What a longjmp leaves in registers is indeterminate, so the counters are in memory.
  static int left;
  static int attempts;
  left = 0;
  for (attempts = 0; attempts < 200 && GC_should_invoke_finalizers() != 0; ++attempts) {
    if (setjmp(escape) == 0) {
      GC_invoke_finalizers();
    } else {
      ++left;
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(left), finalized.load());
  EXPECT_GE(left, 95);
  opaque(make_list(1000));
  collect();
  GC_set_finalize_on_demand(0);
}

// In a program that finalizes without a thought of itself, as ECL's `(push tag tags)` does: what
// one finalizer has read, it writes back after others had run within its allocation.
TEST(Finalizer, OthersOfItsCollectionDoNotRunInsideOne) {
  static int inside;
  static int nested;
  static std::size_t run;
  inside = nested = 0;
  run = 0;
  far_away([] {
    for (int i = 0; i < 100; ++i) {
      const auto allocate_all_sizes = [](void*, void*) {
        if (inside++ != 0) ++nested;
        GC_disable();
        // After a collection the first request of each size leaves the short way.
        for (std::size_t size = 16; size <= 2048; size += 16) opaque(GC_malloc(size));
        GC_enable();
        --inside;
        ++run;
      };
      GC_register_finalizer_no_order(GC_malloc(40), allocate_all_sizes, nullptr, nullptr, nullptr);
    }
  });
  collect();
  EXPECT_GE(run, 95u);
  EXPECT_EQ(nested, 0);
}

TEST(Finalizer, ThatLeftByLongjmpDoNotKeepOthersWaiting) {
  static int left;
  static int attempts;
  for (left = 0, attempts = 0; left < 10 && attempts < 200; ++attempts) {
    // Not before there is somewhere to jump to.
    GC_set_finalize_on_demand(1);
    far_away([] {
      for (int i = 0; i < 10; ++i) {
        GC_register_finalizer_no_order(GC_malloc(40), jump_out, nullptr, nullptr, nullptr);
      }
    });
    if (setjmp(escape) == 0) {
      GC_set_finalize_on_demand(0);
      collect();
    } else {
      ++left;
    }
  }
  EXPECT_GE(left, 10);
  // The rest of them.
  GC_set_finalize_on_demand(1);
  for (attempts = 0; attempts < 2000 && GC_should_invoke_finalizers() != 0; ++attempts) {
    if (setjmp(escape) == 0) GC_invoke_finalizers();
  }
  GC_set_finalize_on_demand(0);
  finalized = 0;
  make_finalizable(100);
  collect();
  collect();
  EXPECT_GE(finalized.load(), 95u);
}

TEST(Finalizer, ManyThreadsRegisterAndDrop) {
  collect_all();
  finalized = 0;
  const std::size_t each = rounds(20000);
  run_threads(4, [&](std::size_t) {
    for (std::size_t i = 0; i < each; ++i) {
      GC_register_finalizer_no_order(GC_malloc(32), count_finalized, nullptr, nullptr, nullptr);
      if (i % 5000 == 4999) GC_gcollect();
    }
  });
  EXPECT_TRUE(finalizes(4 * each * 95 / 100)) << finalized.load();
  EXPECT_LE(finalized.load(), 4 * each);
}

TEST(Finalizer, AFullTableIsAReasonToCollect) {
  // More than a table has room for that another test may have made, in a heap in which nothing
  // else is a reason.
  ASSERT_EQ(GC_expand_hp(128 << 20), 1);
  const GC_word before = GC_get_gc_no();
  make_finalizable(600'000);
  EXPECT_GT(GC_get_gc_no(), before);
}

TEST(Finalizer, FreedObjectsNeedTheirFinalizerRemoved) {
  collect_all();
  finalized = 0;
  for (int i = 0; i < 1000; ++i) {
    void* const object = GC_malloc(100);
    GC_register_finalizer(object, count_finalized, nullptr, nullptr, nullptr);
    GC_register_finalizer(object, nullptr, nullptr, nullptr, nullptr);
    GC_free(object);
  }
  collect_all();
  EXPECT_EQ(finalized.load(), 0u);
}

JD_CHILD(finalize_all) {
  GC_INIT();
  auto** held = static_cast<void**>(GC_malloc(500 * sizeof(void*)));
  for (int i = 0; i < 500; ++i) {
    held[i] = GC_malloc(40);
    GC_register_finalizer(held[i], count_finalized, nullptr, nullptr, nullptr);
  }
  // Reachable, and finalized all the same.
  GC_finalize_all();
  keep_here(held);
  std::printf("%zu\n", finalized.load());
  return 0;
}

TEST(Finalizer, FinalizeAllFinalizesTheReachableToo) {
  const ChildResult r = run_child("finalize_all");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out, "500\n") << r;
}

// Leaves a successor, which the collection that follows queues behind those that wait still.
void follow(void* /*object*/, void* left_to_follow) {
  finalized.fetch_add(1);
  auto* left = static_cast<int*>(left_to_follow);
  if (*left == 0) return;
  --*left;
  far_away([left] { GC_register_finalizer(GC_malloc(48), follow, left, nullptr, nullptr); });
  GC_gcollect();
}

TEST(Finalizer, QueueThatIsNeverEmptyLosesNone) {
  constexpr std::size_t kSteps = 2000;
  constexpr std::size_t kAtOnce = 4;
  static int left = kSteps;
  finalized = 0;
  GC_set_finalize_on_demand(1);
  far_away([] {
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      GC_register_finalizer(GC_malloc(48), follow, &left, nullptr, nullptr);
    }
  });
  // A stale word may hold some of the first or last ones.
  for (int i = 0; i < 20 && finalized.load() < kSteps; ++i) {
    collect_all();
    GC_invoke_finalizers();
  }
  GC_set_finalize_on_demand(0);
  EXPECT_GE(finalized.load(), kSteps);
  EXPECT_LE(finalized.load(), kSteps + kAtOnce);
}

TEST(Finalizer, GetsTheAddressThatWasRegistered) {
  static std::size_t at_eight;
  at_eight = 0;
  finalized = 0;
  far_away([] {
    for (int i = 0; i < 100; ++i) {
      auto* object = static_cast<char*>(GC_malloc(64));
      GC_register_finalizer(
          object + 8,
          [](void* given, void*) {
            finalized.fetch_add(1);
            if (static_cast<char*>(given) == static_cast<char*>(GC_base(given)) + 8) ++at_eight;
          },
          nullptr, nullptr, nullptr);
    }
  });
  EXPECT_TRUE(finalizes(95));
  EXPECT_EQ(at_eight, finalized.load());
}

// Each is queued, and put back since the one without order reaches it: a hundred thousand in one
// pause. (Where each moved all behind it the test passed, too, after seconds.)
TEST(Finalizer, ManyThatOneReachesWait) {
  const std::size_t count = rounds(100000);
  finalized = 0;
  far_away([count] {
    auto** holder = static_cast<void**>(GC_malloc(count * sizeof(void*)));
    for (std::size_t i = 0; i < count; ++i) {
      holder[i] = GC_malloc(16);
      GC_register_finalizer_unreachable(holder[i], count_finalized, nullptr, nullptr, nullptr);
    }
    GC_register_finalizer_no_order(holder, count_finalized, nullptr, nullptr, nullptr);
  });
  for (int i = 0; i < 20 && finalized.load() == 0; ++i) collect_all();
  EXPECT_TRUE(finalizes(count));
  EXPECT_LE(finalized.load(), count + 1);
}

}  // namespace
}  // namespace jd::test

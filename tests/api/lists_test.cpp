// GC_malloc_many and GC_generic_malloc_many: lists that clients keep for themselves.
#include <cstdlib>

#include "gc_test.hpp"

namespace jd::test {
namespace {

TEST(Lists, MallocManyGivesSeparateZeroedObjects) {
  for (std::size_t size = 1; size <= 4096; size += size < 300 ? 1 : 171) {
    std::size_t count = 0;
    void* const list = GC_malloc_many(size);
    ASSERT_NE(list, nullptr);
    for (auto** p = static_cast<void**>(list); p != nullptr; p = static_cast<void**>(*p)) {
      ASSERT_EQ(GC_base(p), static_cast<void*>(p));
      ASSERT_GE(GC_size(p), size);
      ASSERT_EQ(GC_get_kind_and_size(p, nullptr), 1);
      for (std::size_t i = 1; i < size / sizeof(void*); ++i) ASSERT_EQ(p[i], nullptr);
      ++count;
    }
    ASSERT_GE(count, 1u);
  }
}

TEST(Lists, SmallObjectsComeInBatches) {
  if (std::getenv("JACKDAW_PAD_OBJECTS") != nullptr) GTEST_SKIP() << "JACKDAW_PAD_OBJECTS is set";
  for (const std::size_t size : {16, 32, 64, 128}) {
    EXPECT_GT(list_length(GC_malloc_many(size)), 8u) << size;
  }
}

TEST(Lists, TheRestOfAListLivesThroughWordZero) {
  Root<void> head;
  Watch watch;
  for (int i = 0; i < 20; ++i) {
    far_away([&] {
      void* list = nullptr;
      GC_generic_malloc_many(48, GC_I_NORMAL, &list);
      void* last = nullptr;
      for (void* p = list; p != nullptr; p = GC_NEXT(p)) {
        watch.add(p);
        last = p;
      }
      GC_NEXT(last) = head.get();
      head.set(list);
    });
  }
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  EXPECT_EQ(list_length(head.get()), watch.count());
}

TEST(Lists, GenericMallocManyOfAtomicKind) {
  auto** slot = static_cast<void**>(GC_malloc_uncollectable(sizeof(void*)));
  for (const std::size_t size : {16, 32, 48, 160, 256, 512}) {
    *slot = nullptr;
    GC_generic_malloc_many(size, GC_I_PTRFREE, slot);
    ASSERT_NE(*slot, nullptr);
    std::size_t count = 0;
    for (void* p = *slot; p != nullptr; p = GC_NEXT(p)) {
      ASSERT_EQ(GC_get_kind_and_size(p, nullptr), 0);
      ASSERT_GE(GC_size(p), size);
      ++count;
    }
    EXPECT_GE(count, 1u);
  }
  GC_free(slot);
}

TEST(Lists, AClientThatPopsFromItsOwnListsKeepsItsObjects) {
  // As Guile does: a list for each size, refilled when empty, the objects linked into a structure.
  constexpr std::size_t kClasses = 8;
  struct State {
    void* free_lists[kClasses];
    void** kept;
  };
  auto* state = static_cast<State*>(GC_malloc_uncollectable(sizeof(State)));
  Watch watch;
  Random random(test_seed());
  constexpr std::size_t kKept = 2000;
  state->kept = static_cast<void**>(GC_malloc(kKept * sizeof(void*)));
  const std::size_t total = rounds(400000);
  for (std::size_t i = 0; i < total; ++i) {
    const std::size_t k = random.below(kClasses);
    const std::size_t size = 16 * (k + 1);
    if (state->free_lists[k] == nullptr) {
      GC_generic_malloc_many(size, GC_I_NORMAL, &state->free_lists[k]);
      ASSERT_NE(state->free_lists[k], nullptr);
    }
    auto** object = static_cast<void**>(state->free_lists[k]);
    state->free_lists[k] = *object;
    *object = nullptr;
    for (std::size_t w = 1; w < size / sizeof(void*); ++w) ASSERT_EQ(object[w], nullptr);
    const std::size_t place = random.below(kKept);
    object[0] = nullptr;
    object[1] = reinterpret_cast<void*>(place * 2 + 1);
    state->kept[place] = object;
  }
  for (std::size_t place = 0; place < kKept; ++place) {
    if (state->kept[place] == nullptr) continue;
    ASSERT_EQ(static_cast<void**>(state->kept[place])[1], reinterpret_cast<void*>(place * 2 + 1));
  }
  GC_free(state);
}

TEST(Lists, TheInlineMacrosAllocate) {
  struct Lists {
    void* free_lists[GC_TINY_FREELISTS];
  };
  auto* lists = static_cast<Lists*>(GC_malloc_uncollectable(sizeof(Lists)));
  Root<void> head;
  const std::size_t count = rounds(50000);
  for (std::size_t i = 0; i < count; ++i) {
    void* pair = nullptr;
    GC_MALLOC_WORDS(pair, 2, lists->free_lists);
    ASSERT_NE(pair, nullptr);
    ASSERT_EQ(static_cast<void**>(pair)[0], nullptr);
    ASSERT_EQ(static_cast<void**>(pair)[1], nullptr);
    *static_cast<void**>(pair) = head.get();
    head.set(pair);
  }
  EXPECT_EQ(list_length(head.get()), count);
  GC_free(lists);
}

}  // namespace
}  // namespace jd::test

// When a thread gets its cache (docs/design/alloc.md, "Pieces"), and that all goes well before.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include "alloc/cache.hpp"
#include "gc/gc.h"
#include "jackdaw/heap.h"
#include "jackdaw/layout.h"

namespace {

// Whether the thread has a cache after doing this as its first thing.
bool gets_cache(const std::function<void()>& first) {
  GC_INIT();
  GC_allow_register_threads();
  bool gets = false;
  std::thread([&] {
    GC_stack_base base;
    GC_get_stack_base(&base);
    ASSERT_EQ(GC_register_my_thread(&base), GC_SUCCESS);
    ASSERT_TRUE(jd::alloc::cache->is_nobodys()) << "with nothing allocated";
    first();
    gets = !jd::alloc::cache->is_nobodys();
    // The usual things go on.
    for (int i = 0; i < 1000; ++i) ASSERT_NE(GC_MALLOC(40), nullptr);
    ASSERT_FALSE(jd::alloc::cache->is_nobodys());
    GC_unregister_my_thread();
    ASSERT_TRUE(jd::alloc::cache->is_nobodys()) << "when it has left";
  }).join();
  return gets;
}

TEST(Cache, AThreadThatWaitsHasNone) {
  EXPECT_FALSE(gets_cache([] {
    GC_gcollect();
    GC_do_blocking([](void*) -> void* { return nullptr; }, nullptr);
  }));
}

TEST(Cache, ItComesWithASmallObject) {
  EXPECT_TRUE(gets_cache([] { GC_MALLOC(24); }));
  EXPECT_TRUE(gets_cache([] { GC_MALLOC_ATOMIC(24); }));
  EXPECT_TRUE(gets_cache([] { ASSERT_NE(GC_malloc_many(24), nullptr); }));
}

// So that a thread that only frees counts that without a shared counter.
TEST(Cache, ItComesWithTheFirstObjectThatIsFreed) {
  GC_INIT();
  void* of_another = GC_MALLOC_UNCOLLECTABLE(24);
  EXPECT_TRUE(gets_cache([&] { GC_FREE(of_another); }));
}

TEST(Cache, LargeObjectsNeedNone) {
  EXPECT_FALSE(gets_cache([] { GC_FREE(GC_MALLOC(100000)); }));
  EXPECT_FALSE(gets_cache([] { ASSERT_NE(GC_REALLOC(GC_MALLOC(100000), 200000), nullptr); }));
}

// The holes of such a layout are shown to the thread after each allocation, if it has any.
TEST(Cache, ALargeTypedObjectNeedsNone) {
  static const jd_layout* layout = [] {
    jd_layout_info desc{};
    desc.name = "array of words";
    desc.source = JD_HEADER;
    desc.size = 8;
    desc.element_size = 8;
    return jd_layout_define(&desc);
  }();
  ASSERT_NE(layout, nullptr);
  EXPECT_FALSE(gets_cache([] { ASSERT_NE(jd_new_array(layout, 100000), nullptr); }));
  EXPECT_TRUE(gets_cache([] { ASSERT_NE(jd_new_array(layout, 3), nullptr); }));
}

}  // namespace

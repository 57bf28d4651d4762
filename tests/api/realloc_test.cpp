// GC_realloc: contents, kind, growth, shrinking, and the shapes C gives realloc a meaning for.
#include <cstring>
#include <vector>

#include "gc_test.hpp"

namespace jd::test {
namespace {

// Ten blocks, of which nine are enough: less than half is to spare.
TEST(Realloc, AWholeBlockThatIsToSpareIsFreeAtOnce) {
  JD_OURS_ONLY("has pages of 4 KiB");
  constexpr std::size_t kBlock = 16384;
  void* const object = GC_malloc_atomic(10 * kBlock - 100);
  const std::size_t free_bytes = GC_get_free_bytes();
  EXPECT_EQ(GC_realloc(object, 9 * kBlock - 100), object);
  EXPECT_LE(GC_size(object), 9 * kBlock);
  EXPECT_GE(GC_get_free_bytes(), free_bytes + kBlock);
}

constexpr std::size_t kSizes[] = {1,    8,    15,   16,   17,    32,    100,    256,   1000,
                                  2048, 4095, 8192, 9000, 16384, 40000, 100000, 300000};

TEST(Realloc, OfNullAllocates) {
  void* const p = GC_realloc(nullptr, 100);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(GC_get_kind_and_size(p, nullptr), 1);
  EXPECT_NE(GC_realloc(nullptr, 0), nullptr);
}

TEST(Realloc, ToNothingFrees) {
  void* const p = GC_malloc(100);
  EXPECT_EQ(GC_realloc(p, 0), nullptr);
}

TEST(Realloc, KeepsContentsBetweenAllSizes) {
  for (const std::size_t from : kSizes) {
    for (const std::size_t to : kSizes) {
      auto* p = static_cast<unsigned char*>(GC_malloc(from));
      fill_pattern(p, from, 7);
      auto* q = static_cast<unsigned char*>(GC_realloc(p, to));
      ASSERT_NE(q, nullptr);
      ASSERT_TRUE(holds_pattern(q, from < to ? from : to, 7)) << from << " to " << to;
      ASSERT_GE(GC_size(q), to);
      for (std::size_t i = from; i < to; ++i) ASSERT_EQ(q[i], 0) << from << " to " << to;
    }
  }
}

TEST(Realloc, AGrownObjectIsHeldByItsEnd) {
  // The collector may go by how an object was asked for when it looks at an address one past an
  // object's end.
  for (const std::size_t size : {32, 48, 256, 512, 2048, 8192}) {
    Watch watch;
    void* volatile ends[100];
    for (auto& end : ends) {
      far_away([&] {
        auto* p = static_cast<char*>(GC_realloc(GC_malloc(size - 9), size));
        fill_pattern(p, size, 3);
        watch.add(p);
        end = p + size;
      });
    }
    collect();
    collect();
    EXPECT_TRUE(all_alive(watch)) << size;
    asm volatile("" : : "r"(ends) : "memory");
  }
}

TEST(Realloc, KeepsTheKind) {
  for (const std::size_t to : kSizes) {
    EXPECT_EQ(GC_get_kind_and_size(GC_realloc(GC_malloc_atomic(50), to), nullptr), 0);
    EXPECT_EQ(GC_get_kind_and_size(GC_realloc(GC_malloc(50), to), nullptr), 1);
    void* const u = GC_realloc(GC_malloc_uncollectable(50), to);
    EXPECT_EQ(GC_get_kind_and_size(u, nullptr), 2);
    GC_free(u);
    void* const au = GC_realloc(GC_malloc_atomic_uncollectable(50), to);
    EXPECT_EQ(GC_get_kind_and_size(au, nullptr), 3);
    GC_free(au);
  }
}

TEST(Realloc, UncollectableStaysARoot) {
  Watch watch;
  std::vector<GC_hidden_pointer> hidden;
  far_away([&] {
    for (int i = 0; i < 200; ++i) {
      auto** p = static_cast<void**>(GC_malloc_uncollectable(16));
      *p = GC_malloc(24);
      watch.add(*p);
      p = static_cast<void**>(GC_realloc(p, 64 + static_cast<std::size_t>(i) * 50));
      hidden.push_back(GC_HIDE_POINTER(p));
    }
  });
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  for (const GC_hidden_pointer p : hidden) GC_free(GC_REVEAL_POINTER(p));
}

TEST(Realloc, GrowingAppendKeepsAll) {
  Random random(test_seed());
  for (int series = 0; series < 20; ++series) {
    const bool atomic = series % 2 == 0;
    std::size_t size = 1;
    auto* p = static_cast<unsigned char*>(atomic ? GC_malloc_atomic(size) : GC_malloc(size));
    fill_pattern(p, size, 3);
    while (size < 200000) {
      size += random.below(size) + 1;
      p = static_cast<unsigned char*>(GC_realloc(p, size));
      // Only what was filled before can be compared; then fill anew.
      fill_pattern(p, size, 3);
      if (random.one_in(4)) collect();
      ASSERT_TRUE(holds_pattern(p, size, 3));
    }
  }
}

TEST(Realloc, ShrunkTailHoldsNothing) {
  Watch watch;
  auto** held = static_cast<void**>(GC_malloc_uncollectable(200 * sizeof(void*)));
  far_away([&] {
    for (int i = 0; i < 200; ++i) {
      auto** p = static_cast<void**>(GC_malloc(1024));
      for (int k = 2; k < 128; ++k) p[k] = nullptr;
      p[100] = GC_malloc(32);
      watch.add(p[100]);
      held[i] = GC_realloc(p, 16);
    }
  });
  EXPECT_TRUE(most_collected(watch));
  GC_free(held);
}

TEST(Realloc, WhatALargeObjectGainsAgainIsZero) {
  constexpr std::size_t kSmaller = 20001;
  constexpr std::size_t kRounded = 20016;
  auto* object = static_cast<unsigned char*>(GC_malloc(std::size_t{1} << 20));
  std::memset(object, 0xff, std::size_t{1} << 20);
  object = static_cast<unsigned char*>(GC_realloc(object, kSmaller));
  object = static_cast<unsigned char*>(GC_realloc(object, kRounded));
  for (std::size_t i = 0; i < kSmaller; ++i) ASSERT_EQ(object[i], 0xff) << i;
  for (std::size_t i = kSmaller; i < kRounded; ++i) EXPECT_EQ(object[i], 0) << i;
}

TEST(Realloc, FailureLeavesTheObjectAlone) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  auto* p = static_cast<unsigned char*>(GC_malloc(1000));
  fill_pattern(p, 1000, 9);
  EXPECT_EQ(GC_realloc(p, opaque(SIZE_MAX - 100)), nullptr);
  EXPECT_EQ(GC_realloc(p, opaque(SIZE_MAX / 2)), nullptr);
  EXPECT_EQ(GC_base(p), p);
  EXPECT_TRUE(holds_pattern(p, 1000, 9));
}

TEST(Realloc, PointersInTheObjectSurvive) {
  Watch watch;
  auto** p = static_cast<void**>(GC_malloc(8));
  std::size_t count = 1;
  *p = GC_malloc(16);
  watch.add(*p);
  while (count < 20000) {
    const std::size_t more = count + count / 3 + 1;
    p = static_cast<void**>(GC_realloc(p, more * sizeof(void*)));
    for (; count < more; ++count) {
      p[count] = GC_malloc(16);
      watch.add(p[count]);
    }
  }
  collect();
  EXPECT_TRUE(all_alive(watch));
  keep_here(p);
}

// What GC_malloc_ignore_off_page was promised ends with the size that it was promised of.
TEST(Realloc, AnotherSizeIsHeldFromAnywhere) {
  for (const bool atomic : {false, true}) {
    for (const std::size_t bytes : {std::size_t{200000}, std::size_t{40000}}) {
      constexpr std::size_t kCount = 50;
      Watch watch;
      auto** inside = static_cast<char**>(GC_malloc_uncollectable(kCount * sizeof(char*)));
      far_away([&] {
        for (std::size_t i = 0; i < kCount; ++i) {
          void* object =
              atomic ? GC_malloc_atomic_ignore_off_page(100000) : GC_malloc_ignore_off_page(100000);
          object = GC_realloc(object, bytes);
          watch.add(object);
          inside[i] = static_cast<char*>(object) + bytes * 3 / 4;
        }
      });
      collect();
      EXPECT_TRUE(all_alive(watch)) << bytes << (atomic ? ", atomic" : "");
      GC_free(inside);
    }
  }
}

}  // namespace
}  // namespace jd::test

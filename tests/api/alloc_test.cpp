// Allocation: what comes back is zeroed, aligned, large enough and of its kind.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

using Allocator = void* (*)(std::size_t);

bool is_zero(const void* memory, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

std::vector<std::size_t> interesting_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size <= 600; ++size) sizes.push_back(size);
  for (std::size_t size = 601; size <= 100000; size += size / 37 + 1) sizes.push_back(size);
  for (std::size_t power = 1024; power <= 131072; power *= 2) {
    for (const std::size_t size : {power - 16, power - 1, power, power + 1, power + 16}) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

void expect_sound(void* p, std::size_t size) {
  ASSERT_NE(p, nullptr) << size;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 16, 0u) << size;
  EXPECT_EQ(GC_base(p), p) << size;
  EXPECT_GE(GC_size(p), size == 0 ? 1 : size);
  EXPECT_NE(GC_is_heap_ptr(p), 0);
}

class EachAllocator : public testing::TestWithParam<std::pair<const char*, Allocator>> {};

TEST_P(EachAllocator, GivesAlignedMemoryOfEachSize) {
  const Allocator allocate = GetParam().second;
  for (const std::size_t size : interesting_sizes()) {
    void* const p = allocate(size);
    expect_sound(p, size);
    std::memset(p, 0x5a, size);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EachAllocator,
    testing::Values(std::pair{"malloc", Allocator{GC_malloc}},
                    std::pair{"atomic", Allocator{GC_malloc_atomic}},
                    std::pair{"uncollectable", Allocator{GC_malloc_uncollectable}},
                    std::pair{"atomic_uncollectable", Allocator{GC_malloc_atomic_uncollectable}},
                    std::pair{"ignore_off_page", Allocator{GC_malloc_ignore_off_page}},
                    std::pair{"atomic_ignore_off_page",
                              Allocator{GC_malloc_atomic_ignore_off_page}}),
    [](const auto& info) { return info.param.first; });

// alloc.req.clear, here and after an explicit free.
TEST(Alloc, PlainMemoryIsZeroEvenWhereDirtyObjectsDied) {
  // Twice over: the first pass leaves dirt, which the second may be given.
  for (int pass = 0; pass < 3; ++pass) {
    for (const std::size_t size : interesting_sizes()) {
      void* const p = GC_malloc(size);
      ASSERT_TRUE(is_zero(p, size)) << size;
      std::memset(p, 0xee, size);
      void* const u = GC_malloc_uncollectable(size);
      ASSERT_TRUE(is_zero(u, size)) << size;
      std::memset(u, 0xee, size);
      GC_free(u);
      void* const a = GC_malloc_atomic(size);
      std::memset(a, 0xee, size);
    }
    collect();
  }
}

TEST(Alloc, MemoryIsZeroAfterExplicitFree) {
  for (const std::size_t size : {1, 16, 40, 300, 3000, 20000, 300000}) {
    for (int i = 0; i < 200; ++i) {
      void* const p = GC_malloc(size);
      ASSERT_TRUE(is_zero(p, size)) << size;
      std::memset(p, 0xee, size);
      GC_free(p);
    }
  }
}

TEST(Alloc, ObjectsDoNotOverlap) {
  struct Entry {
    unsigned char* memory;
    std::size_t size;
    std::uint32_t tag;
  };
  Random random(test_seed());
  constexpr std::size_t kCount = 3000;
  auto* entries = static_cast<Entry*>(GC_malloc(kCount * sizeof(Entry)));
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t size = random.one_in(50) ? random.below(60000) : random.below(400);
    auto* memory =
        static_cast<unsigned char*>(random.one_in(2) ? GC_malloc(size) : GC_malloc_atomic(size));
    const auto tag = static_cast<std::uint32_t>(random.next());
    fill_pattern(memory, size, tag);
    entries[i] = {memory, size, tag};
  }
  collect();
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(holds_pattern(entries[i].memory, entries[i].size, entries[i].tag)) << i;
  }
}

TEST(Alloc, AtomicObjectsAreNotScanned) {
  for (const std::size_t size : {16, 64, 1000, 5000, 100000}) {
    Watch watch;
    Root<void> holder;
    far_away([&] {
      // An atomic array of atomic pointer boxes: whatever is in there holds nothing.
      auto** box = static_cast<void**>(GC_malloc_uncollectable(500 * sizeof(void*)));
      holder.set(box);
      for (int i = 0; i < 500; ++i) {
        auto** atomic = static_cast<void**>(GC_malloc_atomic(size));
        box[i] = atomic;
        void* const target = GC_malloc(32);
        atomic[0] = target;
        atomic[size / sizeof(void*) - 1] = target;
        watch.add(target);
      }
    });
    EXPECT_TRUE(most_collected(watch)) << size;
    GC_free(holder.get());
  }
}

TEST(Alloc, AtomicUncollectableIsKeptAndNotScanned) {
  Watch kept;
  Watch dropped;
  std::vector<GC_hidden_pointer> hidden;
  far_away([&] {
    for (int i = 0; i < 500; ++i) {
      auto** atomic = static_cast<void**>(GC_malloc_atomic_uncollectable(40));
      hidden.push_back(GC_HIDE_POINTER(atomic));
      kept.add(atomic);
      *atomic = GC_malloc(40);
      dropped.add(*atomic);
    }
  });
  EXPECT_TRUE(most_collected(dropped));
  EXPECT_TRUE(all_alive(kept));
  kept.forget();
  for (const GC_hidden_pointer p : hidden) GC_free(GC_REVEAL_POINTER(p));
}

TEST(Alloc, UncollectableIsARootAndScanned) {
  for (const std::size_t size : {16, 48, 3000, 70000}) {
    Watch cells;
    Watch targets;
    std::vector<GC_hidden_pointer> hidden;
    far_away([&] {
      for (int i = 0; i < 300; ++i) {
        auto** cell = static_cast<void**>(GC_malloc_uncollectable(size));
        hidden.push_back(GC_HIDE_POINTER(cell));
        void*& slot = cell[size / sizeof(void*) - 1];
        slot = make_list(2);
        cells.add(cell);
        targets.add(slot);
        targets.add(GC_NEXT(slot));
      }
    });
    collect();
    collect();
    EXPECT_TRUE(all_alive(cells)) << size;
    EXPECT_TRUE(all_alive(targets)) << size;
    // An object that is freed by hand must have no links left.
    cells.forget();
    far_away([&] {
      for (const GC_hidden_pointer p : hidden) GC_free(GC_REVEAL_POINTER(p));
    });
    EXPECT_TRUE(most_collected(targets)) << size;
  }
}

TEST(Alloc, UnreachablePlainObjectsAreCollected) {
  for (const std::size_t size : {1, 16, 100, 2000, 9000, 40000}) {
    Watch watch;
    far_away([&] {
      for (int i = 0; i < 1000; ++i) watch.add(GC_malloc(size));
    });
    EXPECT_TRUE(most_collected(watch)) << size;
  }
}

// alloc.req.overflow, here and in products.
TEST(Alloc, HugeSizesReturnNull) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  for (const Allocator allocate :
       {GC_malloc, GC_malloc_atomic, GC_malloc_uncollectable, GC_malloc_atomic_uncollectable,
        GC_malloc_ignore_off_page, GC_malloc_atomic_ignore_off_page}) {
    for (std::size_t below = 0; below < 40; ++below) EXPECT_EQ(allocate(SIZE_MAX - below), nullptr);
    EXPECT_EQ(allocate(SIZE_MAX - 4096), nullptr);
    errno = 0;
    EXPECT_EQ(allocate(SIZE_MAX / 2), nullptr);
    if (!kPeer) {
      EXPECT_EQ(errno, ENOMEM);
    }
    EXPECT_EQ(allocate(SIZE_MAX / 2 + 1), nullptr);
    EXPECT_EQ(allocate(std::size_t{1} << 62), nullptr);
  }
  // And the collector goes on.
  EXPECT_EQ(list_length(make_list(10000)), 10000u);
}

TEST(Alloc, CallocOfOverflowingProductReturnsNull) {
  GC_set_warn_proc(GC_ignore_warn_proc);
  EXPECT_EQ(GC_calloc_explicitly_typed(opaque(SIZE_MAX / 2), opaque(std::size_t{16}), GC_DS_LENGTH),
            nullptr);
  EXPECT_EQ(GC_calloc_explicitly_typed(opaque(std::size_t{16}), opaque(SIZE_MAX / 2), GC_DS_LENGTH),
            nullptr);
  EXPECT_EQ(GC_calloc_explicitly_typed(opaque(SIZE_MAX), opaque(SIZE_MAX), GC_DS_LENGTH), nullptr);
}

TEST(Alloc, InteriorPointersHaveTheirBase) {
  for (const std::size_t size : {16, 24, 100, 1000, 2048, 4096, 10000, 100000, 1000000}) {
    auto* p = static_cast<char*>(GC_malloc(size));
    const std::size_t step = size > 5000 ? 509 : 1;
    for (std::size_t offset = 0; offset < size; offset += step) {
      ASSERT_EQ(GC_base(p + offset), p) << size << " + " << offset;
      ASSERT_NE(GC_is_heap_ptr(p + offset), 0);
    }
    EXPECT_EQ(GC_base(p + size - 1), p);
  }
}

TEST(Alloc, AddressesOutsideTheHeapHaveNoBase) {
  static int in_static_data;
  int on_stack = 0;
  void* const outside = std::malloc(100);
  for (void* p : {static_cast<void*>(nullptr), static_cast<void*>(&in_static_data),
                  static_cast<void*>(&on_stack), outside, reinterpret_cast<void*>(8),
                  reinterpret_cast<void*>(UINTPTR_MAX), reinterpret_cast<void*>(~0xfffULL),
                  reinterpret_cast<void*>(1ULL << 63), reinterpret_cast<void*>(&list_length)}) {
    EXPECT_EQ(GC_base(p), nullptr) << p;
    EXPECT_EQ(GC_is_heap_ptr(p), 0) << p;
  }
  std::free(outside);
}

TEST(Alloc, RandomWordsHaveNoBaseOrAnAllocatedOne) {
  Random random(test_seed());
  auto** some = static_cast<char**>(GC_malloc(100 * sizeof(char*)));
  for (int i = 0; i < 100; ++i) some[i] = static_cast<char*>(GC_malloc(random.below(50000)));
  for (int i = 0; i < 200000; ++i) {
    char* word;
    switch (random.below(3)) {
      case 0:
        word = reinterpret_cast<char*>(random.next());
        break;
      case 1:
        word = reinterpret_cast<char*>(random.next() >> random.below(40));
        break;
      default:
        word = some[random.below(100)] + (random.below(1 << 24)) - (1 << 23);
    }
    char* const base = static_cast<char*>(GC_base(word));
    if (base != nullptr) {
      ASSERT_LE(base, word);
      ASSERT_LT(static_cast<std::size_t>(word - base), GC_size(base) + (kPeer ? 4096 : 0));
    }
  }
}

TEST(Alloc, SizesOfOursAreNotPadded) {
  JD_OURS_ONLY("bdwgc adds a byte to each object");
  if (std::getenv("JACKDAW_PAD_OBJECTS") != nullptr) GTEST_SKIP() << "JACKDAW_PAD_OBJECTS is set";
  for (const std::size_t size : {16, 32, 512, 1024}) EXPECT_EQ(GC_size(GC_malloc(size)), size);
  EXPECT_EQ(GC_size(GC_malloc(0)), 16u);
  EXPECT_EQ(GC_size(GC_malloc(1)), 16u);
}

// Which sizes there are depends on how large the heap has been, and on whether ends hold objects.
int print_sizes_of_slots() {
  GC_INIT();
  const auto print = [] {
    for (const std::size_t size : {32, 40, 48, 100, 193, 250, 384, 500, 512}) {
      void* object = GC_malloc(size);
      std::printf("%zu:%zu ", size, GC_size(object));
      if (GC_size(object) < size || GC_size(GC_memalign(64, size)) < size) return 1;
      if (reinterpret_cast<std::uintptr_t>(GC_memalign(64, size)) % 64 != 0) return 2;
      // Room in the slot is used.
      void* larger = GC_realloc(object, GC_size(object) - sizeof(void*));
      if (larger != object) return 3;
    }
    std::printf("\n");
    return 0;
  };
  const int small = print();
  GC_expand_hp(4U << 20);
  const int large = print();
  return small != 0 ? small : large;
}
JD_CHILD(sizes_of_slots) { return print_sizes_of_slots(); }
JD_CHILD(sizes_of_slots_without_ends) {
  GC_set_all_interior_pointers(0);
  return print_sizes_of_slots();
}

TEST(Alloc, SlotsHaveFewerSizesInSmallHeaps) {
  JD_OURS_ONLY("the sizes are ours");
  const ChildResult r = run_child(
      "sizes_of_slots", {{"JACKDAW_COARSE_CLASSES", kUnset}, {"JACKDAW_PAD_OBJECTS", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out,
            "32:32 40:48 48:64 100:128 193:256 250:320 384:512 500:512 512:512 \n"
            "32:32 40:48 48:48 100:112 193:208 250:256 384:384 500:512 512:512 \n");
}

// The slot of a request of 256 bytes after a collection that found so many objects of each of so
// many sizes.
int print_slot_beside(std::size_t objects, std::size_t sizes) {
  GC_INIT();
  GC_disable();
  static void** kept;  // each leads to the one before
  for (std::size_t i = 0; i < objects; ++i) {
    for (std::size_t size = 0; size < sizes; ++size) {
      auto** object = static_cast<void**>(GC_malloc(256 - 16 * size));
      *object = kept;
      kept = object;
    }
  }
  const std::size_t before = GC_size(GC_malloc(256));
  GC_enable();
  GC_gcollect();
  std::printf("%zu %zu\n", before, GC_size(GC_malloc(256)));
  return GC_get_heap_size() < 3U << 20 ? 0 : 1;
}
JD_CHILD(slots_of_one_size) { return print_slot_beside(2000, 1); }
JD_CHILD(slots_of_many_sizes) { return print_slot_beside(20, 14); }

TEST(Alloc, SlotsFitInSmallHeapsOfFewSizes) {
  JD_OURS_ONLY("the sizes are ours");
  const Environment by_default = {{"JACKDAW_COARSE_CLASSES", kUnset},
                                  {"JACKDAW_PAD_OBJECTS", kUnset},
                                  {"JACKDAW_COLLECT_EVERY", kUnset}};
  const ChildResult few = run_child("slots_of_one_size", by_default);
  EXPECT_TRUE(few.ok()) << few;
  EXPECT_EQ(few.out, "320 256\n");
  const ChildResult many = run_child("slots_of_many_sizes", by_default);
  EXPECT_TRUE(many.ok()) << many;
  EXPECT_EQ(many.out, "320 320\n");
}

TEST(Alloc, SlotsAreFilledInSmallHeapsWhereEndsHoldNothing) {
  JD_OURS_ONLY("the sizes are ours");
  const ChildResult r =
      run_child("sizes_of_slots_without_ends",
                {{"JACKDAW_COARSE_CLASSES", kUnset}, {"JACKDAW_PAD_OBJECTS", kUnset}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out,
            "32:32 40:48 48:48 100:128 193:256 250:256 384:384 500:512 512:512 \n"
            "32:32 40:48 48:48 100:112 193:208 250:256 384:384 500:512 512:512 \n");
}

TEST(Alloc, StrdupCopies) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    char* const copy = GC_strdup(text.c_str());
    ASSERT_NE(copy, nullptr);
    ASSERT_EQ(text, copy);
    text.push_back(static_cast<char>('a' + i % 26));
  }
  EXPECT_EQ(GC_strdup(nullptr), nullptr);
}

TEST(Alloc, StrndupStopsAtTheLimitAndAtTheEnd) {
  EXPECT_STREQ(GC_strndup("collector", 4), "coll");
  EXPECT_STREQ(GC_strndup("collector", 0), "");
  EXPECT_STREQ(GC_strndup("collector", 9), "collector");
  EXPECT_STREQ(GC_strndup("collector", 1000), "collector");
}

TEST(Alloc, StringsAreAtomic) {
  std::size_t size = 0;
  EXPECT_EQ(GC_get_kind_and_size(GC_strdup("abc"), &size), GC_I_PTRFREE);
  EXPECT_GE(size, 4u);
}

TEST(Alloc, KindsAreTheKnownNumbers) {
  EXPECT_EQ(GC_get_kind_and_size(GC_malloc_atomic(10), nullptr), 0);
  EXPECT_EQ(GC_get_kind_and_size(GC_malloc(10), nullptr), 1);
  EXPECT_EQ(GC_get_kind_and_size(GC_malloc_kind(10, 0), nullptr), 0);
  EXPECT_EQ(GC_get_kind_and_size(GC_malloc_kind(10, 1), nullptr), 1);
  EXPECT_EQ(GC_get_kind_and_size(GC_generic_malloc(100000, 0), nullptr), 0);
  void* const u = GC_malloc_uncollectable(10);
  EXPECT_EQ(GC_get_kind_and_size(u, nullptr), 2);
  GC_free(u);
  void* const au = GC_malloc_atomic_uncollectable(10);
  EXPECT_EQ(GC_get_kind_and_size(au, nullptr), 3);
  GC_free(au);
}

TEST(Alloc, MemalignAligns) {
  const std::size_t greatest = kPeer ? 4096 : std::size_t{1} << 20;
  for (std::size_t align = 1; align <= greatest; align *= 2) {
    for (const std::size_t size :
         {std::size_t{1}, std::size_t{16}, std::size_t{1000}, align, align + 1, 3 * align}) {
      auto* p = static_cast<unsigned char*>(GC_memalign(align, size));
      ASSERT_NE(p, nullptr) << align << " " << size;
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0u) << align << " " << size;
      ASSERT_TRUE(is_zero(p, size));
      void* const base = GC_base(p);
      ASSERT_NE(base, nullptr);
      ASSERT_EQ(GC_base(p + size - 1), base);
      std::memset(p, 0x77, size);
    }
  }
}

TEST(Alloc, MemalignOfNothingIsAnObject) {
  const std::size_t greatest = kPeer ? 4096 : std::size_t{1} << 20;
  for (std::size_t align = 1; align <= greatest; align *= 2) {
    const std::size_t before = GC_get_heap_size();
    void* const p = GC_memalign(align, 0);
    ASSERT_NE(p, nullptr) << align;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0u) << align;
    EXPECT_EQ(GC_base(p), p);
    EXPECT_LE(GC_get_heap_size(), before + (std::size_t{4} << 20)) << align;
    void* q = nullptr;
    EXPECT_EQ(GC_posix_memalign(&q, std::max(align, sizeof(void*)), 0), 0);
  }
}

// What lies before them is address space.
TEST(Alloc, AlignmentTakesNoMemory) {
  if (kPeer) GTEST_SKIP() << "bdwgc ends the program";
  JD_SKIP_UNDER_TSAN("keeps memory beside the heap's");
  constexpr std::size_t kAlignment = std::size_t{64} << 20;
  const std::size_t before = resident_bytes();
  ASSERT_NE(before, 0u);
  auto** held = static_cast<void**>(GC_malloc(8 * sizeof(void*)));
  for (int i = 0; i < 8; ++i) {
    held[i] = GC_memalign(kAlignment, 100);
    ASSERT_NE(held[i], nullptr);
    EXPECT_LT(GC_size(held[i]), 4096u);
    std::memset(held[i], 1, 100);
  }
  EXPECT_LT(resident_bytes(), before + kAlignment);
}

TEST(Alloc, AlignedObjectsLiveWhileReferredTo) {
  const std::size_t align = 1024;
  Watch watch;
  auto** held = static_cast<void**>(GC_malloc(300 * sizeof(void*)));
  for (int i = 0; i < 300; ++i) {
    held[i] = GC_memalign(align, 500);
    fill_pattern(held[i], 500, static_cast<std::uint32_t>(i));
    watch.add(GC_base(held[i]));
  }
  collect();
  collect();
  ASSERT_TRUE(all_alive(watch));
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(holds_pattern(held[i], 500, static_cast<std::uint32_t>(i)));
  }
}

TEST(Alloc, PosixMemalignChecksItsArguments) {
  void* p = &p;
  EXPECT_EQ(GC_posix_memalign(&p, 3, 100), EINVAL);
  EXPECT_EQ(GC_posix_memalign(&p, 4, 100), EINVAL);
  EXPECT_EQ(GC_posix_memalign(&p, 48, 100), EINVAL);
  EXPECT_EQ(p, &p);
  EXPECT_EQ(GC_posix_memalign(&p, sizeof(void*), 100), 0);
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(GC_posix_memalign(&p, 256, 100), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0u);
}

TEST(Alloc, LargeObjectsAreUsableAndReturned) {
  constexpr std::size_t kSize = std::size_t{24} << 20;
  for (int i = 0; i < 60; ++i) {
    auto* p = static_cast<unsigned char*>(GC_malloc_ignore_off_page(kSize));
    ASSERT_NE(p, nullptr);
    ASSERT_EQ(p[0] | p[kSize / 2] | p[kSize - 1], 0);
    p[0] = p[kSize / 2] = p[kSize - 1] = 1;
  }
  // 1.4 GB were asked for; all but a few of the objects must have been reused. (Where collections
  // take steps, each allocation here is one, and a few more are needed.)
  const bool in_steps = GC_get_time_limit() != GC_TIME_UNLIMITED;
  EXPECT_LT(GC_get_heap_size(), (in_steps ? 30 : 20) * kSize);
}

TEST(Alloc, IgnoreOffPageObjectsNeedAPointerToTheirBeginning) {
  constexpr std::size_t kSize = 400000;
  Watch watch;
  auto** held = static_cast<void**>(GC_malloc_uncollectable(120 * sizeof(void*)));
  for (int i = 0; i < 120; ++i) {
    held[i] = GC_malloc_ignore_off_page(kSize);
    watch.add(held[i]);
    // Within the first 256 bytes is near enough.
    held[i] = static_cast<char*>(held[i]) + 200;
  }
  collect();
  EXPECT_TRUE(all_alive(watch));
  far_away([&] {
    for (int i = 0; i < 120; ++i) held[i] = static_cast<char*>(held[i]) + 200000;
  });
  EXPECT_TRUE(most_collected(watch));
  GC_free(held);
}

TEST(Alloc, FreedMemoryIsUsedAgain) {
  const std::size_t before = GC_get_heap_size();
  for (int i = 0; i < 200000; ++i) {
    void* const p = GC_malloc(400);
    GC_free(p);
  }
  EXPECT_LT(GC_get_heap_size(), before + (std::size_t{32} << 20));
  GC_free(nullptr);
}

// A thread takes several blocks at a time. What it frees just before the object that it got last
// may be the end of another of them.
TEST(Alloc, FreesAcrossTheBordersOfItsBlocks) {
  constexpr std::size_t kSlot = 32;
  constexpr std::size_t kBlock = 16384;
  GC_disable();
  std::vector<GC_word> objects(rounds(120000));
  for (GC_word& object : objects) object = reinterpret_cast<GC_word>(GC_malloc(24));
  std::sort(objects.begin(), objects.end());
  std::vector<GC_word> last;  // of each block, and the only one that stays
  for (const GC_word object : objects) {
    if ((object + kSlot) % kBlock == 0) {
      last.push_back(object);
    } else {
      GC_free(reinterpret_cast<void*>(object));
    }
  }
  constexpr std::size_t kTries = 5;
  std::size_t met = 0;
  for (std::size_t i = 0; i < objects.size() && met < 10 * kTries; ++i) {
    void* const first = GC_malloc(24);
    const auto at = reinterpret_cast<GC_word>(first);
    if (at % kBlock != 0 || !std::binary_search(last.begin(), last.end(), at - kSlot)) continue;
    if (++met % kTries != 0) continue;
    GC_free(first);
    GC_free(reinterpret_cast<void*>(at - kSlot));
    GC_enable();
    GC_gcollect();
    GC_disable();
    break;
  }
  std::vector<void*> got(2000);
  for (void*& object : got) object = GC_malloc(24);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end()) << "handed out twice";
  GC_enable();
}

TEST(Alloc, NewMacrosAllocate) {
  struct Pair {
    void* a;
    void* b;
  };
  Pair* p = GC_NEW(Pair);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(p->a, nullptr);
  EXPECT_NE(GC_NEW_ATOMIC(Pair), nullptr);
  Pair* u = GC_NEW_UNCOLLECTABLE(Pair);
  EXPECT_NE(u, nullptr);
  GC_FREE(u);
}

}  // namespace
}  // namespace jd::test

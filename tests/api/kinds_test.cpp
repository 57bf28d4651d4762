// Kinds that clients make: mark procedures, disclaim procedures, finalized objects.
#include <atomic>
#include <cstring>

#include "gc_test.hpp"

namespace jd::test {
namespace {

// An object whose second word holds its target disguised, which only its mark procedure knows.
struct Disguised {
  std::uintptr_t tag;
  GC_hidden_pointer hidden;
  void* ignored;
  std::uintptr_t end_tag;
};
constexpr std::uintptr_t kTag = 0x7a67;
// Markers call the procedure side by side.
std::atomic<std::size_t> marked;
std::atomic<std::size_t> bad_tags;

GC_ms_entry* mark_disguised(GC_word* addr, GC_ms_entry* msp, GC_ms_entry* limit, GC_word) {
  auto* object = reinterpret_cast<Disguised*>(addr);
  // A slot that was never handed out, or was cleared, may be offered, too.
  if (object->tag == 0) return msp;
  ++marked;
  if (object->tag != kTag || object->end_tag != ~kTag) {
    ++bad_tags;
    return msp;
  }
  void* target = GC_REVEAL_POINTER(object->hidden);
  return GC_MARK_AND_PUSH(target, msp, limit, reinterpret_cast<void**>(&object->hidden));
}

int disguised_kind() {
  static const int kind = [] {
    const unsigned proc = GC_new_proc(mark_disguised);
    return static_cast<int>(GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(proc, 0), 0, 1));
  }();
  return kind;
}

TEST(Kinds, AMarkProcedureDecidesWhatIsHeld) {
  constexpr std::size_t kCount = 1000;
  Watch held;
  Watch not_held;
  auto** roots = static_cast<void**>(GC_malloc_uncollectable(kCount * sizeof(void*)));
  marked = bad_tags = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      auto* object =
          static_cast<Disguised*>(GC_generic_malloc(sizeof(Disguised), disguised_kind()));
      ASSERT_EQ(object->tag, 0u);
      ASSERT_EQ(GC_get_kind_and_size(object, nullptr), disguised_kind());
      void* target = GC_malloc(32);
      void* ignored = GC_malloc(32);
      object->hidden = GC_HIDE_POINTER(target);
      object->ignored = ignored;
      object->end_tag = ~kTag;
      object->tag = kTag;
      held.add(target);
      not_held.add(ignored);
      roots[i] = object;
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  EXPECT_GE(marked.load(), kCount);
  EXPECT_EQ(bad_tags.load(), 0u);
  EXPECT_TRUE(most_collected(not_held));
  EXPECT_TRUE(all_alive(held));
  far_away([&] { std::memset(roots, 0, kCount * sizeof(void*)); });
  EXPECT_TRUE(most_collected(held));
  EXPECT_EQ(bad_tags.load(), 0u);
  GC_free(roots);
}

// mark.req.free, also where words still lead to slots that were freed.
std::atomic<std::size_t> whole_seen;
std::atomic<std::size_t> others_seen;

TEST(Kinds, NoMarkProcedureSeesAFreeSlot) {
  JD_OURS_ONLY("its mark procedures must know objects on a free list");
  static const int kind = [] {
    const unsigned proc =
        GC_new_proc([](GC_word* object, GC_ms_entry* top, GC_ms_entry*, GC_word) -> GC_ms_entry* {
          ++(object[1] == kTag ? whole_seen : others_seen);
          return top;
        });
    return static_cast<int>(GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(proc, 0), 0, 1));
  }();
  constexpr std::size_t kCount = 1000;
  for (const std::size_t bytes : {std::size_t{32}, std::size_t{400}, std::size_t{20000}}) {
    auto** roots = static_cast<GC_word**>(GC_malloc_uncollectable(kCount * sizeof(void*)));
    // In none is an object in the making.
    GC_disable();
    for (std::size_t i = 0; i < kCount; ++i) {
      roots[i] = static_cast<GC_word*>(GC_generic_malloc(bytes, kind));
      roots[i][1] = kTag;
    }
    for (std::size_t i = 0; i < kCount; i += 2) {
      roots[i][1] = 0;
      GC_free(roots[i]);
    }
    GC_enable();
    whole_seen = others_seen = 0;
    collect();
    EXPECT_GE(whole_seen.load(), kCount / 2) << bytes;
    EXPECT_EQ(others_seen.load(), 0u) << bytes;
    GC_free(roots);
  }
}

TEST(Kinds, ChainsThroughMarkProcedures) {
  const std::size_t chain = rounds(100000);
  Root<void> head;
  bad_tags = 0;
  for (std::size_t i = 0; i < chain; ++i) {
    auto* object = static_cast<Disguised*>(GC_generic_malloc(sizeof(Disguised), disguised_kind()));
    object->hidden = GC_HIDE_POINTER(head.get());
    object->end_tag = ~kTag;
    object->tag = kTag;
    head.set(object);
  }
  collect();
  collect();
  std::size_t length = 0;
  for (const void* p = head.get(); p != nullptr; ++length) {
    const auto* object = static_cast<const Disguised*>(p);
    ASSERT_EQ(object->tag, kTag);
    p = GC_REVEAL_POINTER(object->hidden);
  }
  EXPECT_EQ(length, chain);
  EXPECT_EQ(bad_tags.load(), 0u);
}

// One object that owns a very long hidden list: its procedure pushes every element itself.
struct ListOwner {
  void* head_hidden;
  std::size_t pushes;
};

GC_ms_entry* mark_list_owner(GC_word* addr, GC_ms_entry* msp, GC_ms_entry* limit, GC_word env) {
  auto* owner = reinterpret_cast<ListOwner*>(addr);
  if (owner->head_hidden == nullptr) return msp;
  if (env != 42) return msp;
  for (void* p = GC_REVEAL_POINTER(owner->head_hidden); p != nullptr; p = GC_NEXT(p)) {
    msp = GC_mark_and_push(p, msp, limit, nullptr);
    ++owner->pushes;
  }
  return msp;
}

TEST(Kinds, OneCallMayPushAnyNumberOfObjects) {
  const unsigned proc = GC_new_proc(mark_list_owner);
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(proc, 42), 0, 1));
  const std::size_t elements = rounds(30000);
  auto* owner = static_cast<ListOwner*>(GC_generic_malloc(sizeof(ListOwner), kind));
  Watch watch;
  // Atomic elements: nothing but the procedure's pushes holds the rest of the list.
  void* head = nullptr;
  for (std::size_t i = 0; i < elements; ++i) {
    void* element = GC_malloc_atomic(16);
    GC_NEXT(element) = head;
    head = element;
    owner->head_hidden = reinterpret_cast<void*>(GC_HIDE_POINTER(head));
    if (i % 10 == 0) watch.add(element);
    static_cast<std::size_t*>(element)[1] = i;
  }
  head = nullptr;
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  EXPECT_GE(owner->pushes, elements);
  std::size_t expected = elements;
  for (void* p = GC_REVEAL_POINTER(owner->head_hidden); p != nullptr; p = GC_NEXT(p)) {
    ASSERT_EQ(static_cast<std::size_t*>(p)[1], --expected);
  }
  EXPECT_EQ(expected, 0u);
  keep_here(owner);
}

TEST(Kinds, ALengthDescriptorScansThatPrefix) {
  // The first two words hold, the others do not.
  const auto kind =
      static_cast<int>(GC_new_kind(GC_new_free_list(), GC_DS_LENGTH | (2 * sizeof(void*)), 0, 1));
  Watch held;
  Watch not_held;
  auto** roots = static_cast<void**>(GC_malloc_uncollectable(500 * sizeof(void*)));
  far_away([&] {
    for (int i = 0; i < 500; ++i) {
      auto** object = static_cast<void**>(GC_generic_malloc(6 * sizeof(void*), kind));
      for (int k = 0; k < 6; ++k) {
        object[k] = GC_malloc(24);
        (k < 2 ? held : not_held).add(object[k]);
      }
      roots[i] = object;
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  EXPECT_TRUE(most_collected(not_held));
  GC_free(roots);
}

TEST(Kinds, ABitmapDescriptorScansItsWords) {
  const GC_word bitmap = (GC_word{1} << 63) | (GC_word{1} << 60);  // words 0 and 3
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), bitmap | GC_DS_BITMAP, 0, 1));
  Watch held;
  Watch not_held;
  auto** roots = static_cast<void**>(GC_malloc_uncollectable(500 * sizeof(void*)));
  far_away([&] {
    for (int i = 0; i < 500; ++i) {
      auto** object = static_cast<void**>(GC_generic_malloc(6 * sizeof(void*), kind));
      for (int k = 0; k < 6; ++k) {
        object[k] = GC_malloc(24);
        (k == 0 || k == 3 ? held : not_held).add(object[k]);
      }
      roots[i] = object;
    }
  });
  collect();
  EXPECT_TRUE(all_alive(held));
  EXPECT_TRUE(most_collected(not_held));
  GC_free(roots);
}

TEST(Kinds, TheSizeCanBeAddedToTheDescriptor) {
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1));
  Watch held;
  auto** roots = static_cast<void**>(GC_malloc_uncollectable(300 * sizeof(void*)));
  for (int i = 0; i < 300; ++i) {
    const std::size_t words = 1 + static_cast<std::size_t>(i) * 10;
    auto** object = static_cast<void**>(GC_generic_malloc(words * sizeof(void*), kind));
    object[words - 1] = GC_malloc(24);
    held.add(object[words - 1]);
    roots[i] = object;
  }
  collect();
  collect();
  EXPECT_TRUE(all_alive(held));
  GC_free(roots);
}

TEST(Kinds, MarkBitsOfLiveObjects) {
  void* object = GC_malloc(40);
  GC_gcollect();
  struct Query {
    static void* is_marked(void* p) {
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(GC_is_marked(p)));
    }
  };
  EXPECT_NE(GC_call_with_alloc_lock(Query::is_marked, object), nullptr);
  keep_here(object);
}

TEST(Kinds, EnumeratesReachableObjects) {
  constexpr std::size_t kCount = 1000;
  Watch watch;
  auto** held = static_cast<void**>(GC_malloc(kCount * sizeof(void*)));
  for (std::size_t i = 0; i < kCount; ++i) {
    held[i] = GC_malloc(88);
    *static_cast<std::uintptr_t*>(held[i]) = 0x5ca1ab1e;
  }
  collect();
  struct Count {
    std::size_t objects;
    std::size_t bytes;
    static void GC_CALLBACK add(void* object, std::size_t bytes, void* self) {
      if (bytes >= 88 && *static_cast<std::uintptr_t*>(object) == 0x5ca1ab1e) {
        static_cast<Count*>(self)->objects++;
      }
      static_cast<Count*>(self)->bytes += bytes;
    }
    static void* run(void* self) {
      GC_enumerate_reachable_objects_inner(add, self);
      return nullptr;
    }
  };
  Count count{0, 0};
  GC_call_with_alloc_lock(Count::run, &count);
  EXPECT_EQ(count.objects, kCount);
  EXPECT_GE(count.bytes, kCount * 88);
  keep_here(held);
}

// --- Finalized objects
// ------------------------------------------------------------------------------

std::size_t closures_run;

void close_object(void* object, void* data) {
  if (holds_pattern(static_cast<char*>(object), 40, 3) && data == &closures_run) ++closures_run;
}

const GC_finalizer_closure close_and_count = {close_object, &closures_run};

TEST(Kinds, FinalizedMallocCallsItsClosureOnce) {
  GC_init_finalized_malloc();
  closures_run = 0;
  constexpr std::size_t kCount = 1000;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = GC_finalized_malloc(40, &close_and_count);
      ASSERT_NE(object, nullptr);
      fill_pattern(object, 40, 3);
    }
  });
  for (int i = 0; i < 10 && closures_run < kCount * 95 / 100; ++i) {
    collect();
    // Reclaiming may be lazy; allocation of the same size drives it on.
    for (int k = 0; k < 5000; ++k) opaque(GC_malloc(40));
    far_away([&] {
      void* object = GC_finalized_malloc(40, &close_and_count);
      fill_pattern(object, 40, 3);
    });
  }
  EXPECT_GE(closures_run, kCount * 95 / 100);
  EXPECT_LE(closures_run, kCount + 10);
}

TEST(Kinds, FinalizedMallocObjectsAreScanned) {
  GC_init_finalized_malloc();
  Watch watch;
  auto** held = static_cast<void**>(GC_malloc(200 * sizeof(void*)));
  for (int i = 0; i < 200; ++i) {
    auto** object = static_cast<void**>(GC_finalized_malloc(64, &close_and_count));
    object[5] = GC_malloc(24);
    watch.add(object[5]);
    held[i] = object;
  }
  collect();
  collect();
  EXPECT_TRUE(all_alive(watch));
  keep_here(held);
}

std::size_t disclaimed;
std::size_t vetoes;

int disclaim(void* object) {
  auto* words = static_cast<std::uintptr_t*>(object);
  // A slot that is free may be offered, too.
  if (words[2] != kTag) return 0;
  if (words[1] > 0) {
    --words[1];
    ++vetoes;
    return 1;
  }
  words[2] = 0;
  ++disclaimed;
  return 0;
}

TEST(Kinds, ADisclaimProcedureMayKeepTheObject) {
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1));
  GC_register_disclaim_proc(kind, disclaim, 1);
  disclaimed = vetoes = 0;
  constexpr std::size_t kCount = 1000;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      auto* words = static_cast<std::uintptr_t*>(GC_generic_malloc(48, kind));
      words[1] = 2;
      words[2] = kTag;
    }
  });
  for (int i = 0; i < 20 && disclaimed < kCount * 95 / 100; ++i) {
    collect();
    far_away([&] {
      for (int k = 0; k < 400; ++k) opaque(GC_generic_malloc(48, kind));
    });
  }
  EXPECT_GE(disclaimed, kCount * 95 / 100);
  EXPECT_LE(disclaimed, kCount);
  EXPECT_GE(vetoes, 2 * disclaimed);
}

bool keeping;

int keep(void* /*object*/) { return keeping ? 1 : 0; }

TEST(Kinds, WhatADisclaimProcedureKeepsIsNotFinalized) {
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1));
  GC_register_disclaim_proc(kind, keep, 1);
  keeping = true;
  constexpr std::size_t kCount = 200;
  auto** short_links = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  auto** long_links = static_cast<void**>(GC_malloc_atomic(kCount * sizeof(void*)));
  static std::size_t finalized;
  finalized = 0;
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      auto** holder = static_cast<void**>(GC_generic_malloc(48, kind));
      holder[1] = short_links[i] = long_links[i] = GC_malloc(64);
      GC_register_finalizer_no_order(
          holder[1], [](void*, void*) { ++finalized; }, nullptr, nullptr, nullptr);
      ASSERT_EQ(GC_general_register_disappearing_link(&short_links[i], holder[1]), GC_SUCCESS);
      ASSERT_EQ(GC_register_long_link(&long_links[i], holder[1]), GC_SUCCESS);
    }
  });
  for (int i = 0; i < 3; ++i) collect();
  GC_invoke_finalizers();
  EXPECT_EQ(finalized, 0u);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_NE(short_links[i], nullptr);
    EXPECT_NE(long_links[i], nullptr);
  }
  keeping = false;
}

// A kind whose objects are not cleared: what an object held before it was freed.
constexpr std::uintptr_t kFreed = 0xdead;
std::atomic<std::size_t> seen_freed;

GC_ms_entry* mark_unless_freed(GC_word* object, GC_ms_entry* msp, GC_ms_entry*, GC_word) {
  if (object[0] != 0 && object[1] == kFreed) ++seen_freed;
  return msp;
}

int note_freed(void* object) {
  auto* words = static_cast<std::uintptr_t*>(object);
  if (words[0] != 0) words[1] = kFreed;
  return 0;
}

TEST(Kinds, OfObjectsThatAreNotClearedTheFirstWordIs) {
  const unsigned proc = GC_new_proc(mark_unless_freed);
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_MAKE_PROC(proc, 0), 0, 0));
  GC_register_disclaim_proc(kind, note_freed, 1);
  for (std::size_t round = 0; round < rounds(6); ++round) {
    far_away([&] {
      for (std::size_t i = 0; i < 1000 - 100 * round; ++i) {
        auto* words = static_cast<std::uintptr_t*>(GC_generic_malloc(32, kind));
        ASSERT_EQ(words[0], 0u);
        words[0] = kTag;
        words[1] = 0;
      }
    });
    collect();
  }
  EXPECT_EQ(seen_freed, 0u) << "a mark procedure met what was disclaimed already";
}

// Zero is a length: an object with it has no pointers.
TEST(Kinds, AnUninitialisedObjectWithADescriptorOfItsOwnHasNone) {
  const auto kind = static_cast<int>(GC_new_kind(GC_new_free_list(), GC_DS_PER_OBJECT, 0, 0));
  for (const std::size_t bytes : {std::size_t{48}, std::size_t{100000}}) {
    const std::size_t count = bytes < 1000 ? rounds(20000) : rounds(20);
    far_away([&] {
      for (std::size_t i = 0; i < count; ++i) {
        auto* words = static_cast<GC_word*>(GC_malloc_atomic(bytes));
        // Names a mark procedure that nobody made.
        for (std::size_t k = 0; k < bytes / sizeof(GC_word); ++k) words[k] = 254;
      }
    });
    collect();
    auto** roots = static_cast<void**>(GC_malloc_uncollectable(64 * sizeof(void*)));
    for (std::size_t i = 0; i < 64; ++i) roots[i] = GC_generic_malloc(bytes, kind);
    collect();
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(*static_cast<GC_word*>(roots[i]), 0u);
    GC_free(roots);
  }
}

// As bdwgc's, uncollectable objects carry a mark from their beginning: a walk over the heap meets
// those that are younger than the last collection.
TEST(Kinds, WhatIsUncollectableIsMarkedFromTheBeginning) {
  struct Walk {
    void* wanted;
    int met;
  };
  const auto meets = [](void* object) {
    Walk walk{object, 0};
    GC_call_with_alloc_lock(
        [](void* data) -> void* {
          GC_enumerate_reachable_objects_inner(
              [](void* met, std::size_t, void* of) {
                auto* const in = static_cast<Walk*>(of);
                if (met == in->wanted) ++in->met;
              },
              data);
          return nullptr;
        },
        &walk);
    return walk.met;
  };
  GC_gcollect();
  for (const std::size_t size : {std::size_t{40}, std::size_t{10000}, std::size_t{100000}}) {
    for (void* (*allocate)(std::size_t) :
         {GC_malloc_uncollectable, GC_malloc_atomic_uncollectable}) {
      void* const object = allocate(size);
      EXPECT_EQ(GC_is_marked(object), 1) << size;
      EXPECT_EQ(meets(object), 1) << size;
      GC_gcollect();
      EXPECT_EQ(meets(object), 1) << size;
      GC_free(object);
      EXPECT_EQ(meets(object), 0) << size;
    }
  }
}

}  // namespace
}  // namespace jd::test

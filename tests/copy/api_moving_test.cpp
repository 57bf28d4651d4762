// What lives, what moves, what stays, and what follows (include/jackdaw/heap.h).
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>

#include "api_support.hpp"
#include "child.hpp"

namespace jd::test {
namespace {

// Enough for several blocks of each size that is used here, in all sources.
constexpr std::size_t kLength = 1000;
constexpr std::size_t kGarbage = 4;

// ---- Life ----

class Life : public EachSource {};
JD_EACH_SOURCE(Life);

TEST_P(Life, NewObjectsReadAsZero) {
  const Nodes nodes(GetParam(), 5);
  for (std::size_t round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 300; ++i) {
      auto* object = static_cast<char*>(jd_new(nodes.layout()));
      const std::size_t front = front_of(GetParam());
      for (std::size_t byte = front; byte < front + sizeof(Node) + 40; ++byte) {
        ASSERT_EQ(object[byte], 0) << byte;
      }
      // Only what is no pointer may hold what it likes.
      std::memset(object + front + 16, 0xa5, sizeof(Node) - 16 + 40);
    }
    if (round % 5 == 0) compact();
  }
}

TEST_P(Life, WhatNothingRefersToDies) {
  const Nodes nodes(GetParam());
  WeakWatch watch(500);
  far_away([&] {
    for (std::size_t i = 0; i < 500; ++i) watch.add(nodes.make(i));
  });
  EXPECT_TRUE(watch.most_dead());
}

TEST_P(Life, CyclesDie) {
  const Nodes nodes(GetParam());
  WeakWatch watch(1000);
  far_away([&] {
    for (std::size_t i = 0; i < 500; ++i) {
      void* a = nodes.make(i);
      void* b = nodes.make(i, a);
      nodes.node(a)->next = static_cast<Node*>(b);
      watch.add(a);
      watch.add(b);
    }
  });
  EXPECT_TRUE(watch.most_dead());
}

TEST_P(Life, CyclesWithUntypedObjectsDie) {
  const Nodes nodes(GetParam());
  WeakWatch watch(1000);
  far_away([&] {
    for (std::size_t i = 0; i < 500; ++i) {
      void* typed = nodes.make(i);
      auto** untyped = static_cast<void**>(GC_malloc(32));
      untyped[1] = typed;
      nodes.node(typed)->next = reinterpret_cast<Node*>(untyped);
      watch.add(typed);
      watch.add(untyped);
    }
  });
  EXPECT_TRUE(watch.most_dead());
}

void* static_reference;

TEST_P(Life, EachKindOfReferenceHolds) {
  const Nodes nodes(GetParam());
  void* volatile on_stack = nodes.make(1, nodes.make(11));
  static_reference = nodes.make(2, nodes.make(12));
  auto** untyped = static_cast<void**>(GC_malloc_uncollectable(64));
  auto** inner = static_cast<void**>(GC_malloc(64));
  untyped[3] = inner;
  inner[5] = nodes.make(3, nodes.make(13));
  const Cell cell(nodes.make(4, nodes.make(14)));
  auto pinned = ~reinterpret_cast<std::uintptr_t>(nodes.make(5, nodes.make(15)));
  ASSERT_NE(jd_pin(reinterpret_cast<void*>(~pinned)), 0);
  // An interior pointer, and one in a GC_malloc_explicitly_typed object.
  Cell inside;
  inside.set(reinterpret_cast<char*>(nodes.node(nodes.make(6, nodes.make(16)))) + 17);
  const GC_word bitmap[] = {2};
  const GC_descr descriptor = GC_make_descriptor(bitmap, 4);
  auto** explicitly = static_cast<void**>(GC_malloc_explicitly_typed(32, descriptor));
  explicitly[1] = nodes.make(7, nodes.make(17));
  untyped[4] = explicitly;

  for (int round = 0; round < 3; ++round) {
    // Others take the place of what died.
    far_away([&] { static_cast<void>(nodes.sparse_list(300, 2)); });
    compact();
    void* const objects[] = {
        on_stack,     static_reference, inner[5], cell.get(), reinterpret_cast<void*>(~pinned),
        explicitly[1]};
    const std::uint64_t values[] = {1, 2, 3, 4, 5, 7};
    for (std::size_t i = 0; i < std::size(objects); ++i) {
      ASSERT_EQ(nodes.value(objects[i]), values[i]);
      ASSERT_EQ(nodes.value(nodes.next(objects[i])), values[i] + 10);
    }
    Node* through = reinterpret_cast<Node*>(static_cast<char*>(inside.get()) - 17);
    ASSERT_EQ(through->value, 6U);
    ASSERT_EQ(nodes.value(through->next), 16U);
  }
  static_reference = nullptr;
  jd_unpin(reinterpret_cast<void*>(~pinned));
  GC_free(untyped);
}

// A word that no layout calls a pointer holds nothing.
TEST_P(Life, OtherWordsHoldNothing) {
  const Nodes nodes(GetParam());
  WeakWatch watch(500);
  Cell list;
  far_away([&] {
    for (std::size_t i = 0; i < 500; ++i) {
      void* dying = nodes.make(i);
      watch.add(dying);
      list.set(nodes.make(reinterpret_cast<std::uint64_t>(dying), list.get()));
    }
  });
  EXPECT_TRUE(watch.most_dead());
}

TEST_P(Life, RemovedRootsAndPinsHoldNothing) {
  const Nodes nodes(GetParam());
  WeakWatch watch(1000);
  far_away([&] {
    auto** cells = static_cast<void**>(std::calloc(500, sizeof(void*)));
    for (std::size_t i = 0; i < 500; ++i) {
      ASSERT_NE(jd_root_add(&cells[i]), 0);
      ASSERT_NE(jd_root_add(&cells[i]), 0);  // twice is once
      cells[i] = nodes.make(i);
      watch.add(cells[i]);
      void* pinned = nodes.make(i);
      watch.add(pinned);
      ASSERT_NE(jd_pin(pinned), 0);
      ASSERT_NE(jd_pin(pinned), 0);
      jd_unpin(pinned);
      jd_unpin(pinned);
    }
    for (std::size_t i = 0; i < 500; ++i) jd_root_remove(&cells[i]);
    std::free(cells);
  });
  EXPECT_TRUE(watch.most_dead());
}

TEST_P(Life, LargeObjectsDie) {
  const jd_layout_info info = info_of("large", GetParam(), 40000);
  const jd_layout* layout = jd_layout_define(&info);
  WeakWatch watch(200);
  far_away([&] {
    for (std::size_t i = 0; i < 200; ++i) watch.add(jd_new(layout));
  });
  EXPECT_TRUE(watch.most_dead());
}

// ---- Moving ----

class Moving : public EachSource {};
JD_EACH_SOURCE(Moving);

TEST_P(Moving, SparseBlocksAreEmptied) {
  JD_SKIP_IF_STILL();
  const Nodes nodes(GetParam());
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLength, kGarbage)); });
  std::unique_ptr<Places> places;
  far_away([&] { places = std::make_unique<Places>(nodes, list.get()); });
  const std::uint64_t epoch = jd_epoch();
  jd_heap_counts before;
  jd_heap_get_counts(&before);
  compact();
  jd_heap_counts after;
  jd_heap_get_counts(&after);
  EXPECT_GT(jd_epoch(), epoch);
  EXPECT_GT(after.moving_collections, before.moving_collections);
  EXPECT_GE(after.moving_collections, jd_epoch());
  EXPECT_GT(after.moved_objects, before.moved_objects);
  EXPECT_GE(after.moved_bytes - before.moved_bytes,
            (after.moved_objects - before.moved_objects) * sizeof(Node));
  far_away([&] {
    EXPECT_TRUE(nodes.is_list(list.get(), kLength));
    // A quarter of the blocks could hold all; one may stay where it is.
    EXPECT_GE(places->moved(nodes, list.get()), kLength / 3);
  });
}

TEST_P(Moving, NothingMovesWhereThePolicySaysSo) {
  if (moves()) GTEST_SKIP() << "for JACKDAW_POLICY=non-moving";
  const Nodes nodes(GetParam());
  Cell list(nodes.sparse_list(kLength, kGarbage));
  const Places places(nodes, list.get());
  const std::uint64_t epoch = jd_epoch();
  compact();
  EXPECT_EQ(jd_epoch(), epoch);
  EXPECT_EQ(places.moved(nodes, list.get()), 0U);
  EXPECT_TRUE(nodes.is_list(list.get(), kLength));
}

// While the epoch is the same, so are addresses.
TEST_P(Moving, EpochTellsWhetherAddressesMayHaveChanged) {
  const Nodes nodes(GetParam());
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLength / 4, kGarbage)); });
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t epoch = jd_epoch();
    std::size_t moved = 0;
    far_away([&] {
      const Places places(nodes, list.get());
      far_away([&] {
        clear_stack();
        if (round % 3 == 0) jd_collect(round % 2);
      });
      moved = places.moved(nodes, list.get());
    });
    if (jd_epoch() == epoch) {
      EXPECT_EQ(moved, 0U);
    }
  }
}

// The addresses of all that is fixed in one sparse heap.
TEST_P(Moving, WhatAmbiguousWordsMeanStays) {
  const Nodes nodes(GetParam());
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLength, kGarbage)); });
  constexpr std::size_t kEach = 20;
  // Disguised addresses, from here on.
  std::vector<std::uintptr_t> fixed;
  void* on_stack[kEach];
  static void* in_static[kEach];
  auto** untyped = static_cast<void**>(GC_malloc_uncollectable(kEach * sizeof(void*)));
  auto* explicitly = static_cast<void**>(nullptr);
  const GC_word bitmap[] = {~GC_word{0}};
  explicitly =
      static_cast<void**>(GC_malloc_explicitly_typed(kEach * 8, GC_make_descriptor(bitmap, kEach)));
  void* at = list.get();
  const auto take = [&](std::ptrdiff_t offset) {
    for (int i = 0; i < 7; ++i) at = nodes.next(at);
    fixed.push_back(~reinterpret_cast<std::uintptr_t>(at));
    return static_cast<char*>(at) + offset;
  };
  for (std::size_t i = 0; i < kEach; ++i) {
    on_stack[i] = take(0);
    in_static[i] = take(3);
    untyped[i] = take(8);
    explicitly[i] = take(0);
  }
  at = nullptr;
  keep_here(&on_stack);
  for (int round = 0; round < 3; ++round) {
    compact();
    std::set<std::uintptr_t> places;
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      places.insert(~reinterpret_cast<std::uintptr_t>(node));
    }
    for (std::size_t i = 0; i < fixed.size(); ++i) {
      ASSERT_EQ(places.count(fixed[i]), 1U) << "object " << i << " moved";
    }
  }
  EXPECT_TRUE(nodes.is_list(list.get(), kLength));
  keep_here(&on_stack);
  keep_here(explicitly);
  std::fill(std::begin(in_static), std::end(in_static), nullptr);
  GC_free(untyped);
}

// One past the end of an object, on the stack: a loop's end pointer. It holds and pins.
TEST_P(Moving, OnePastTheEndOnTheStackPins) {
  const Nodes nodes(GetParam());
  const std::size_t size = front_of(GetParam()) + sizeof(Node);
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLength, kGarbage)); });
  constexpr std::size_t kCount = 30;
  char* ends[kCount];
  std::uintptr_t fixed[kCount];
  far_away([&] {
    void* at = list.get();
    for (std::size_t i = 0; i < kCount; ++i) {
      for (int k = 0; k < 11; ++k) at = nodes.next(at);
      fixed[i] = ~reinterpret_cast<std::uintptr_t>(at);
      ends[i] = static_cast<char*>(at) + size;
    }
  });
  keep_here(&ends);
  compact();
  far_away([&] {
    std::set<std::uintptr_t> places;
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      places.insert(~reinterpret_cast<std::uintptr_t>(node));
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(places.count(fixed[i]), 1U) << i;
  });
  keep_here(&ends);
}

TEST_P(Moving, OnePastTheEndOnTheStackHolds) {
  const Nodes nodes(GetParam());
  const std::size_t size = front_of(GetParam()) + sizeof(Node);
  constexpr std::size_t kCount = 100;
  char* ends[kCount];
  WeakWatch watch(kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      void* object = nodes.make(i);
      watch.add(object);
      ends[i] = static_cast<char*>(object) + size;
    }
  });
  keep_here(&ends);
  compact();
  compact();
  EXPECT_EQ(watch.alive(), kCount);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(nodes.value(ends[i] - size), i);
    }
  });
  keep_here(&ends);
}

// A registered variable in static data is rewritten, not pinned by.
TEST_P(Moving, RootInStaticDataDoesNotPin) {
  JD_SKIP_IF_STILL();
  const Nodes nodes(GetParam());
  // More than a block of them: a thread's own block is left alone.
  constexpr std::size_t kCount = 1000;
  static void* roots[kCount];
  for (void*& root : roots) ASSERT_NE(jd_root_add(&root), 0);
  far_away([&] {
    for (std::size_t i = 0; i < kCount; ++i) {
      for (int k = 0; k < 8; ++k) static_cast<void>(nodes.make());
      roots[i] = nodes.make(i);
    }
  });
  std::vector<std::uintptr_t> before;
  for (void* root : roots) before.push_back(~reinterpret_cast<std::uintptr_t>(root));
  compact();
  std::size_t moved = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(nodes.value(roots[i]), i);
    moved += before[i] != ~reinterpret_cast<std::uintptr_t>(roots[i]);
  }
  EXPECT_GE(moved, kCount / 4);
  for (void*& root : roots) {
    jd_root_remove(&root);
    root = nullptr;
  }
}

TEST_P(Moving, InteriorPointersKeepTheirOffset) {
  const Nodes nodes(GetParam(), 10);
  const std::size_t size = front_of(GetParam()) + sizeof(Node) + 80;
  Cell list;
  far_away([&] {
    void* last = nullptr;
    for (std::size_t i = 0; i < kLength; ++i) {
      void* target = nodes.make(i);
      for (std::size_t k = 0; k < 3; ++k) static_cast<void>(nodes.make());
      void* node = nodes.make(i, last);
      // From the first byte to the last, tags included.
      nodes.node(node)->other = reinterpret_cast<Node*>(static_cast<char*>(target) + i % size);
      last = node;
      list.set(last);
    }
  });
  for (int round = 0; round < 2; ++round) {
    compact();
    far_away([&] {
      std::size_t i = kLength;
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        --i;
        ASSERT_EQ(nodes.value(node), i);
        void* target = static_cast<char*>(nodes.other(node)) - i % size;
        ASSERT_EQ(jd_size_of(target), size);
        ASSERT_EQ(nodes.value(target), i);
      }
      EXPECT_EQ(i, 0U);
    });
  }
}

TEST_P(Moving, PointersOutOfTheHeapStay) {
  const Nodes nodes(GetParam());
  static int variable;
  void* malloced = std::malloc(10);
  Cell list;
  far_away([&] {
    list.set(nodes.sparse_list(kLength, kGarbage));
    std::size_t i = 0;
    for (void* node = list.get(); node != nullptr; node = nodes.next(node), ++i) {
      nodes.node(node)->other =
          reinterpret_cast<Node*>(i % 4 == 0   ? reinterpret_cast<std::uintptr_t>(&variable)
                                  : i % 4 == 1 ? reinterpret_cast<std::uintptr_t>(malloced)
                                  : i % 4 == 2 ? ~std::uintptr_t{0} - i
                                               : i);
    }
  });
  compact();
  far_away([&] {
    std::size_t i = 0;
    for (void* node = list.get(); node != nullptr; node = nodes.next(node), ++i) {
      const auto other = reinterpret_cast<std::uintptr_t>(nodes.other(node));
      ASSERT_EQ(other, i % 4 == 0   ? reinterpret_cast<std::uintptr_t>(&variable)
                       : i % 4 == 1 ? reinterpret_cast<std::uintptr_t>(malloced)
                       : i % 4 == 2 ? ~std::uintptr_t{0} - i
                                    : i);
    }
  });
  std::free(malloced);
}

// Dense cycles and shared objects: each is copied once.
TEST_P(Moving, SharedObjectsStayShared) {
  const Nodes nodes(GetParam());
  Cell list;
  Cell shared;
  far_away([&] {
    shared.set(nodes.make(77));
    list.set(nodes.sparse_list(kLength, kGarbage));
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      nodes.node(node)->other =
          static_cast<Node*>(nodes.value(node) % 2 == 0 ? shared.get() : node);
    }
  });
  for (int round = 0; round < 2; ++round) {
    compact();
    far_away([&] {
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        ASSERT_EQ(nodes.other(node), nodes.value(node) % 2 == 0 ? shared.get() : node);
      }
      EXPECT_EQ(nodes.value(shared.get()), 77U);
    });
  }
}

// Many collections of a heap that changes: what was moved moves again, and slots are used again.
TEST_P(Moving, AgainAndAgain) {
  const Nodes nodes(GetParam());
  const Nodes wide(GetParam(), 7);
  Cell list;
  Cell other;
  for (int round = 0; round < 12; ++round) {
    far_away([&] {
      list.set(nodes.sparse_list(300, 3));
      other.set(wide.sparse_list(200, 3));
    });
    compact();
    far_away([&] {
      ASSERT_TRUE(nodes.is_list(list.get(), 300));
      ASSERT_TRUE(wide.is_list(other.get(), 200));
    });
    // Every other node goes.
    far_away([&] {
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        void* next = nodes.next(node);
        if (next != nullptr) nodes.node(node)->next = static_cast<Node*>(nodes.next(next));
      }
    });
    compact();
    far_away([&] {
      std::size_t count = 0;
      for (void* node = list.get(); node != nullptr; node = nodes.next(node), ++count) {
        ASSERT_EQ(nodes.value(node), 299 - 2 * count);
      }
      EXPECT_EQ(count, 150U);
    });
  }
}

// Regression: under JD_MCC the collection went on, by marking.
TEST(Collections, AreGivenUpWhenTheFunctionSaysSoOnce) {
  static_cast<void>(Nodes(JD_HEADER).make());
  static int asked = 0;
  asked = 0;
  // Before the world stops, and when it stands.
  EXPECT_EQ(GC_try_to_collect([] { return ++asked == 2 ? 1 : 0; }), 0);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(GC_try_to_collect([] { return 0; }), 1);
}

}  // namespace
}  // namespace jd::test

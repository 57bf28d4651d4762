// Pins, stable hashes, and what memory is left when objects have moved (include/jackdaw/heap.h).
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>

#include "api_support.hpp"
#include "child.hpp"
#include "emulator.hpp"

namespace jd::test {
namespace {

// Enough for several blocks of each size that is used here, in all sources.
constexpr std::size_t kLength = 1000;
constexpr std::size_t kGarbage = 4;

class Held : public EachSource {};
JD_EACH_SOURCE(Held);

// ---- Pins ----

TEST_P(Held, PinsHoldTheirPlace) {
  const Nodes nodes(GetParam());
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLength, kGarbage)); });
  std::vector<std::uintptr_t> pinned;
  far_away([&] {
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      if (nodes.value(node) % 50 != 0) continue;
      ASSERT_NE(jd_pin(node), 0);
      ASSERT_NE(jd_pin(node), 0);
      pinned.push_back(~reinterpret_cast<std::uintptr_t>(node));
    }
  });
  const auto check = [&] {
    std::size_t i = 0;
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      if (nodes.value(node) % 50 != 0) continue;
      ASSERT_EQ(pinned[i++], ~reinterpret_cast<std::uintptr_t>(node));
    }
    ASSERT_EQ(i, pinned.size());
  };
  compact();
  far_away(check);
  // Once unpinned of twice pinned: still there, and so when nothing else holds it.
  for (const std::uintptr_t hidden : pinned) jd_unpin(reinterpret_cast<void*>(~hidden));
  compact();
  far_away(check);
  list.set(nullptr);
  compact();
  far_away([&] {
    for (std::size_t i = 0; i < pinned.size(); ++i) {
      void* node = reinterpret_cast<void*>(~pinned[i]);
      ASSERT_EQ(nodes.value(node), kLength - 50 - 50 * i);
    }
  });
  for (const std::uintptr_t hidden : pinned) jd_unpin(reinterpret_cast<void*>(~hidden));
}

int misuse(void (*what)(void* object)) {
  GC_INIT();
  const Nodes nodes(JD_HEADER);
  void* object = jd_new(define_node("pinned too little", JD_HEADER));
  what(object);
  keep_here(object);
  return 0;
}
JD_CHILD(unpin_never_pinned) {
  return misuse([](void* object) { jd_unpin(object); });
}
JD_CHILD(unpin_once_too_often) {
  return misuse([](void* object) {
    for (int pins = 0; pins < 2; ++pins) {
      if (jd_pin(object) == 0) std::exit(1);
    }
    jd_unpin(object);
    jd_unpin(object);
    jd_unpin(object);
  });
}
JD_CHILD(pin_inside) {
  return misuse([](void* object) { jd_pin(static_cast<char*>(object) + 8); });
}
JD_CHILD(pin_header) {
  return misuse([](void* object) { jd_pin(static_cast<char*>(object) - 8); });
}
JD_CHILD(pin_null) {
  return misuse([](void*) { jd_pin(nullptr); });
}
JD_CHILD(pin_foreign) {
  return misuse([](void*) {
    static int variable;
    jd_pin(&variable);
  });
}
JD_CHILD(hash_inside) {
  return misuse([](void* object) { jd_address_hash(static_cast<char*>(object) + 1); });
}
JD_CHILD(finalizer_inside) {
  return misuse([](void* object) {
    jd_finalizer(
        static_cast<char*>(object) + 8, [](void*, void*) {}, nullptr);
  });
}
TEST(Misuse, UnpinningWhatIsNotPinnedNamesTheLayout) {
  for (const char* child : {"unpin_never_pinned", "unpin_once_too_often"}) {
    const ChildResult r = run_child(child);
    EXPECT_EQ(r.signal, SIGABRT) << child << r;
    EXPECT_NE(r.err.find("pinned too little"), std::string::npos) << child << r;
  }
}
TEST(Misuse, AddressesThatAreNoObjectsEndTheProgram) {
  for (const char* child :
       {"pin_inside", "pin_header", "pin_null", "pin_foreign", "hash_inside", "finalizer_inside"}) {
    const ChildResult r = run_child(child);
    EXPECT_EQ(r.signal, SIGABRT) << child << r;
    EXPECT_NE(r.err.find("not an object's first byte"), std::string::npos) << child << r;
  }
}

// ---- Hashes ----

TEST_P(Held, AddressHashesStayAndDiffer) {
  const Nodes nodes(GetParam());
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLength, kGarbage)); });
  std::vector<std::uint64_t> hashes;
  far_away([&] {
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      hashes.push_back(jd_address_hash(node));
    }
  });
  EXPECT_EQ(std::unordered_set<std::uint64_t>(hashes.begin(), hashes.end()).size(), kLength);
  for (int round = 0; round < 3; ++round) {
    // Others come and go with hashes of their own, where nodes were.
    far_away([&] {
      for (int i = 0; i < 200; ++i) {
        const std::uint64_t hash = jd_address_hash(nodes.make());
        ASSERT_EQ(std::count(hashes.begin(), hashes.end(), hash), 0);
      }
    });
    compact();
    far_away([&] {
      std::size_t i = 0;
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        ASSERT_EQ(jd_address_hash(node), hashes[i++]);
      }
    });
  }
}

TEST(Hash, OfUntypedObjects) {
  void* a = GC_malloc(40);
  void* b = GC_malloc(40);
  const std::uint64_t hash = jd_address_hash(a);
  EXPECT_NE(hash, jd_address_hash(b));
  compact();
  EXPECT_EQ(jd_address_hash(a), hash);
  keep_here(a);
  keep_here(b);
}

// ---- Memory ----

// One object of eight lives; compacted, an eighth of the memory.
TEST_P(Held, FragmentedHeapIsGivenBack) {
  JD_SKIP_UNDER_TSAN("keeps memory beside the heap's");
  JD_SKIP_IN_EMULATOR("keeps memory for each page of the address space");
  JD_SKIP_IF_STILL();
  if (allocations_are_dear()) GTEST_SKIP() << "millions of allocations";
  const Nodes nodes(GetParam(), 2);
  constexpr std::size_t kLive = 100000;
  constexpr std::size_t kSlot = 64;
  Cell list;
  // No collection before the one that is asked for.
  GC_disable();
  far_away([&] { list.set(nodes.sparse_list(kLive, 7)); });
  GC_enable();
  const std::size_t before = resident_bytes();
  ASSERT_GT(before, kLive * 8 * 48);
  jd_collect(0);
  compact();
  const std::size_t after = resident_bytes();
  std::printf("resident: %zu KiB before, %zu KiB after; live: %zu KiB\n", before / 1024,
              after / 1024, kLive * kSlot / 1024);
  // The program itself, and the heap's tables, are some megabytes.
  EXPECT_LT(after, 2 * kLive * kSlot + before / 8);
  far_away([&] { EXPECT_TRUE(nodes.is_list(list.get(), kLive)); });
}

// The blocks that the objects lie in are about as many as it takes to hold them.
TEST_P(Held, CompactedObjectsLieInFewBlocks) {
  JD_SKIP_IF_STILL();
  if (allocations_are_dear()) GTEST_SKIP() << "many allocations";
  const Nodes nodes(GetParam());
  constexpr std::size_t kLive = 10000;
  constexpr std::uintptr_t kBlock = 16384;
  Cell list;
  far_away([&] { list.set(nodes.sparse_list(kLive, 7)); });
  const auto count_blocks = [&](std::size_t* result) {
    far_away([&] {
      std::set<std::uintptr_t> blocks;
      for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
        blocks.insert(reinterpret_cast<std::uintptr_t>(node) / kBlock);
      }
      *result = blocks.size();
    });
  };
  std::size_t before = 0;
  std::size_t after = 0;
  count_blocks(&before);
  compact();
  count_blocks(&after);
  const std::size_t size =
      (front_of(GetParam()) + sizeof(Node) + (GetParam() == JD_HEADER ? 8 : 0));
  const std::size_t slot = (size + 15) / 16 * 16;
  const std::size_t needed = (kLive + kBlock / slot - 1) / (kBlock / slot);
  std::printf("blocks: %zu before, %zu after, %zu needed\n", before, after, needed);
  // A few are held by stale words, or are the thread's.
  EXPECT_LE(after, needed + needed / 5 + 4);
}

// Even where the highest are the fullest: what becomes free lies together.
JD_CHILD(compaction_empties_the_highest_blocks) {
  GC_INIT();
  const Nodes nodes(JD_HOMOGENEOUS);
  constexpr std::size_t kSparse = 2000;
  constexpr std::size_t kDense = 4000;
  Cell low;
  Cell high;
  GC_disable();  // or what died would be used again
  far_away([&] {
    low.set(nodes.sparse_list(kSparse, 7));
    high.set(nodes.sparse_list(kDense, 1));
  });
  GC_enable();
  std::size_t below = 0;
  far_away([&] {
    // The newest node of the lower ones, hidden.
    const std::uintptr_t boundary = ~reinterpret_cast<std::uintptr_t>(low.get());
    compact();
    for (void* node = high.get(); node != nullptr; node = nodes.next(node)) {
      if (reinterpret_cast<std::uintptr_t>(node) < ~boundary) ++below;
    }
  });
  std::printf("%zu of %zu went down\n", below, kDense);
  // A few are held by stale words, or lie in the thread's block.
  return nodes.is_list(low.get(), kSparse) && nodes.is_list(high.get(), kDense) &&
                 below * 10 > kDense * 9
             ? 0
             : 1;
}
TEST(Compaction, EmptiesTheHighestBlocks) {
  const ChildResult r = run_child(
      "compaction_empties_the_highest_blocks",
      {{"JACKDAW_MOVE", "0"}, {"JACKDAW_POLICY", "evacuate"}, {"JACKDAW_COLLECT_EVERY", "0"}});
  EXPECT_EQ(r.status, 0) << r;
}

}  // namespace
}  // namespace jd::test

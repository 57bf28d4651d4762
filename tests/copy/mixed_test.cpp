// Mixed blocks: objects of all sizes in the order of their allocation.
#include <gtest/gtest.h>
#include <jackdaw/heap.h>

#include <thread>

#include "api_support.hpp"
#include "child.hpp"
#include "gc_test.hpp"

namespace jd::test {
namespace {

struct Node {
  const void* code;
  void* next;
  void* other;
};

jd_layout* node_layout() {
  static const std::uint64_t pointers = JD_POINTER(Node, next) | JD_POINTER(Node, other);
  static jd_layout* layout = [] {
    jd_layout_info info = {};
    info.name = "node";
    info.size = sizeof(Node);
    info.pointers = &pointers;
    info.source = JD_SELF;
    return jd_layout_define(&info);
  }();
  return layout;
}

// A word one past the last object means the hole's cursor, which was taken for an object in the
// making whose first word was anything (found by the Scheme compiler's programs).
TEST(Mixed, TheBeginningOfAHoleIsNoObject) {
  Node* volatile list = nullptr;
  void* volatile end = nullptr;
  for (int i = 0; i < 1000; ++i) {
    auto* node = static_cast<Node*>(jd_new(node_layout()));
    node->next = list;
    list = i % 100 != 0 ? node : nullptr;
    end = reinterpret_cast<char*>(node) + 32;
    if (i % 50 == 0) {
      for (int k = 0; k < 4; ++k) jd_collect(1);
    }
  }
  std::size_t length = 0;
  for (const Node* node = list; node != nullptr; node = static_cast<Node*>(node->next)) ++length;
  EXPECT_EQ(length, 99U);
  EXPECT_NE(end, nullptr);
}

JD_CHILD(dump_of_mixed_blocks) {
  GC_INIT();
  void* volatile node = jd_new(node_layout());
  GC_dump();
  return node == nullptr ? 1 : 0;
}
TEST(Mixed, BlocksAreDumped) {
  const ChildResult r = run_child("dump_of_mixed_blocks");
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_NE(r.out.find("objects of several sizes"), std::string::npos) << r;
}

TEST(Mixed, ThereAreNoneWhereTheEnvironmentSaysSo) {
  const ChildResult r = run_child("dump_of_mixed_blocks", {{"JACKDAW_MIXED_BLOCKS", "0"}});
  EXPECT_TRUE(r.ok()) << r;
  EXPECT_EQ(r.out.find("objects of several sizes"), std::string::npos) << r;
  EXPECT_NE(r.out.find("slots of 32 bytes"), std::string::npos) << r;
}

// ---- What is left of blocks ----

jd_layout* define(const char* name, std::size_t words) {
  static const std::uint64_t pointers[4] = {2};
  if (words > std::size_t{64} * std::size(pointers)) std::abort();
  jd_layout_info info = {};
  info.name = name;
  info.size = 8 * words;
  info.pointers = pointers;
  info.source = JD_SELF;
  return jd_layout_define(&info);
}

// Each makes a few objects, in a block whose rest nobody had until the next collection.
JD_CHILD(threads_that_come_and_go) {
  GC_INIT();
  jd_layout* const layout = define("element", 4);
  // Much is alive, so that collections are seldom.
  void** volatile list = nullptr;
  for (int i = 0; i < 500000; ++i) {
    auto** element = static_cast<void**>(jd_new(layout));
    element[1] = list;
    list = element;
  }
  GC_gcollect();
  const std::size_t before = GC_get_heap_size();
  for (int i = 0; i < 3000; ++i) {
    std::thread([layout] {
      for (int k = 0; k < 4; ++k) opaque(jd_new(layout));
    }).join();
  }
  const std::size_t after = GC_get_heap_size();
  std::fprintf(stderr, "%zu KiB, then %zu\n", before / 1024, after / 1024);
  return after <= before + before / 4 ? 0 : 2;
}
TEST(Mixed, ThreadsThatEndLeaveTheRestOfABlockToOthers) {
  JD_SKIP_IF_MCC("what is left of a block stays unused");
  if (allocations_are_dear()) GTEST_SKIP() << "many allocations";
  const ChildResult r = run_child("threads_that_come_and_go");
  EXPECT_TRUE(r.ok()) << r;
}

// One that fits into few gaps took the others from all that come after it.
JD_CHILD(a_long_object_among_short_ones) {
  GC_INIT();
  jd_layout* const brief = define("short", 6);
  jd_layout* const lasting = define("long", 240);
  constexpr int kCount = 200000;
  GC_disable();
  // Every twelfth stays: gaps of half a KiB.
  void** volatile list = nullptr;
  for (int i = 0; i < kCount; ++i) {
    auto** element = static_cast<void**>(jd_new(brief));
    if (i % 12 != 0) continue;
    element[1] = list;
    list = element;
  }
  GC_enable();
  GC_gcollect();
  GC_disable();
  const std::size_t before = GC_get_heap_size();
  opaque(jd_new(lasting));
  for (int i = 0; i < kCount / 2; ++i) opaque(jd_new(brief));
  const std::size_t after = GC_get_heap_size();
  std::fprintf(stderr, "%zu KiB, then %zu\n", before / 1024, after / 1024);
  return after <= before + before / 10 ? 0 : 2;
}
TEST(Mixed, ALongObjectLeavesGapsToShortOnes) {
  JD_SKIP_IF_MCC("gaps stay unused");
  if (allocations_are_dear()) GTEST_SKIP() << "many allocations";
  // Else there are no gaps.
  const ChildResult r =
      run_child("a_long_object_among_short_ones", {{"JACKDAW_POLICY", "non-moving"}});
  EXPECT_TRUE(r.ok()) << r;
}

}  // namespace
}  // namespace jd::test

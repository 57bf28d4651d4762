// Mixed blocks: objects of all sizes in the order of their allocation.
#include <gtest/gtest.h>
#include <jackdaw/heap.h>

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

}  // namespace
}  // namespace jd::test

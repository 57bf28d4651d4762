// include/jackdaw/heap.hpp: layouts out of lists of members, and handles.
#include <jackdaw/heap.hpp>

#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api_support.hpp"

// The example at the header's top, line by line (examples_test.sh).
struct Node {
  jd::ref<Node> left;
  jd::ref<Node> right;
  long value;
  using jd_members = jd::pointers<&Node::left, &Node::right>;
};

Node* tree(int depth) {
  if (depth == 0) return nullptr;
  Node* left = tree(depth - 1);  // held by its being a local variable
  return jd::make<Node>(left, tree(depth - 1), 1L);
}

namespace {
long sum(const Node* node) {
  return node == nullptr ? 0 : node->value + sum(node->left) + sum(node->right);
}

TEST(Face, ExampleOfTheHeader) {
  std::vector<jd::root<Node>> trees = {tree(3), tree(4)};
  EXPECT_EQ(sum(trees[0]), 7);
  EXPECT_EQ(sum(trees[1]), 15);
  jd_collect(1);
  EXPECT_EQ(sum(trees[0]), 7);
  EXPECT_EQ(sum(trees[1]), 15);
}

// ---- Types ----

// What a layout can say of a type, one of each.
struct Part {
  int number;
  void* pointer;
  using jd_members = jd::pointers<&Part::pointer>;
};
struct Base {
  long first;
  jd::ref<Node> node;
  using jd_members = jd::pointers<&Base::node>;
};
struct Rich : Base {
  char name[13];
  Node* plain;
  jd::ref<Node> several[3];
  int numbers[5];
  Part parts[2];
  jd::weak<Node> weak;
  jd::ephemeron<Node, Node> pair;
  Node* matrix[2][2];
};

struct Foreign {
  Foreign* next;
  int value = 42;
  std::uint64_t unset;
};

struct Described : jd::described<Described> {
  explicit Described(int number) : value(number) {}
  Described() {}  // NOLINT(modernize-use-equals-default): it sets nothing
  jd::ref<Described> next;
  int value;
};

struct Number {
  long number;
};
struct DescribedLate : Number, jd::described<DescribedLate> {
  jd::ref<Node> next;
};

struct Row {
  explicit Row(long number) : value(number) {}
  long value;
};
// The same without a header.
struct Slots {
  explicit Slots(long number) : value(number) {}
  long value;
};
struct Bytes {
  std::uint32_t length;
};
struct Traced {
  Traced* next;
  std::uint64_t tag;
};
// A class with virtual functions: its first word is the compiler's. (A virtual destructor would not
// be trivial.)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class Shape {
 public:
  virtual int corners() const { return 0; }
  jd::ref<Shape> next;
  using jd_members = jd::pointers<&Shape::next>;
};
class Triangle : public Shape {
 public:
  int corners() const override { return 3; }
  jd::ref<Node> node;
  using jd_members = jd::pointers<&Triangle::next, &Triangle::node>;
};
#pragma GCC diagnostic pop

}  // namespace

template <>
struct jd::members<Rich> : jd::pointers<&Rich::node, &Rich::plain, &Rich::several, &Rich::parts,
                                        &Rich::weak, &Rich::pair, &Rich::matrix> {
  static constexpr const char* name = "a rich type";
};
template <>
struct jd::members<Foreign> : jd::pointers<&Foreign::next> {
  static constexpr jd_source source = JD_HEADER;
};
template <>
struct jd::members<Described> : jd::pointers<&Described::next> {
  static constexpr jd_source source = JD_SELF;
};
template <>
struct jd::members<DescribedLate> : jd::pointers<&DescribedLate::next> {
  static constexpr jd_source source = JD_SELF;
};
template <>
struct jd::members<Row> : jd::pointers<> {
  using element = jd::ref<Node>;
  static constexpr jd_source source = JD_HEADER;
};
template <>
struct jd::members<Slots> : jd::pointers<> {
  using element = jd::ref<Node>;
};
template <>
struct jd::members<Bytes> : jd::pointers<> {
  using element = char;
  static constexpr jd_source source = JD_HEADER;
};
template <>
struct jd::members<Traced> : jd::pointers<> {
  static void trace(Traced* object, jd_tracer* tracer) { jd_trace_slot(tracer, &object->next); }
};

namespace jd::test {
namespace {

::Node* leaf(long value) { return make<::Node>(nullptr, nullptr, value); }

TEST(Face, LayoutsAreDefinedOnceAndNamed) {
  EXPECT_EQ(layout_of<::Node>(), layout_of<::Node>());
  EXPECT_STREQ(layout_of<::Node>()->name, "Node");
  EXPECT_STREQ(layout_of<Rich>()->name, "a rich type");
  EXPECT_NE(std::strstr(layout_of<Foreign>()->name, "Foreign"), nullptr);
  EXPECT_EQ(layout_of<::Node>()->source,
            static_cast<unsigned>(is_mcc() ? JD_HEADER : JD_HOMOGENEOUS));
  EXPECT_EQ(layout_of<Foreign>()->source, static_cast<unsigned>(JD_HEADER));
  EXPECT_EQ(jd_layout_of(make<::Node>()), layout_of<::Node>());
  EXPECT_EQ(jd_size_of(make<Foreign>()), sizeof(Foreign));
}

TEST(Face, EveryListedMemberHoldsAndFollows) {
  root<Rich> rich;
  far_away([&] {
    // Others in between, so that blocks are sparse.
    const auto next = [] {
      for (int i = 0; i < 300; ++i) static_cast<void>(leaf(0));
      static long value = 0;
      return leaf(++value);
    };
    rich = make<Rich>();
    for (int i = 0; i < 300; ++i) static_cast<void>(make<Rich>());
    rich->node = next();
    rich->plain = next();
    for (auto& each : rich->several) each = next();
    for (Part& part : rich->parts) part.pointer = next();
    rich->weak = weak<::Node>(rich->plain);
    rich->pair = ephemeron<::Node, ::Node>(rich->plain, next());
    for (auto& row : rich->matrix) {
      for (auto& each : row) each = next();
    }
    rich->first = 11;
    std::memcpy(rich->name, "twelve bytes", 13);
    for (int i = 0; i < 5; ++i) rich->numbers[i] = i;
  });
  for (int round = 0; round < 3; ++round) {
    compact();
    EXPECT_EQ(rich->node->value, 1);
    EXPECT_EQ(rich->plain->value, 2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rich->several[i]->value, 3 + i);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(static_cast<::Node*>(rich->parts[i].pointer)->value, 6 + i);
    }
    EXPECT_EQ(rich->weak.get(), rich->plain);
    EXPECT_EQ(rich->pair.key(), rich->plain);
    EXPECT_EQ(rich->pair.value()->value, 8);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(rich->matrix[i / 2][i % 2]->value, 9 + i);
    EXPECT_EQ(rich->first, 11);
    EXPECT_STREQ(rich->name, "twelve bytes");
    for (int i = 0; i < 5; ++i) EXPECT_EQ(rich->numbers[i], i);
  }
}

// What is not in the list is no pointer.
TEST(Face, OtherMembersHoldNothing) {
  WeakWatch watch(400);
  root<Foreign> list;
  far_away([&] {
    for (int i = 0; i < 400; ++i) {
      auto* dying = leaf(i);
      watch.add(dying);
      Foreign* next = list;
      list = make<Foreign>(next, i, reinterpret_cast<std::uint64_t>(dying));
    }
  });
  EXPECT_TRUE(watch.most_dead());
  int expected = 399;
  for (const Foreign* at = list; at != nullptr; at = at->next) EXPECT_EQ(at->value, expected--);
}

TEST(Face, MembersThatNobodySetsAreZero) {
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 100; ++i) {
      auto* foreign = make<Foreign>();
      ASSERT_EQ(foreign->next, nullptr);
      ASSERT_EQ(foreign->value, 42);
      ASSERT_EQ(foreign->unset, 0U);
      foreign->unset = ~std::uint64_t{0};
      auto* node = make<::Node>();
      ASSERT_EQ(node->left.get(), nullptr);
      ASSERT_EQ(node->value, 0);
      node->value = -1;
      auto* described = make<Described>();
      ASSERT_EQ(described->next.get(), nullptr);
      ASSERT_EQ(described->value, 0);
      described->value = -1;
    }
    if (round % 10 == 0) compact();
  }
}

TEST(Face, DescribedObjectsLeadToTheirLayout) {
  root<Described> list;
  far_away([&] {
    for (int i = 0; i < 500; ++i) {
      auto* next = make<Described>(i);
      ASSERT_EQ(jd_layout_of(next), layout_of<Described>());
      next->next = list.get();
      list = next;
      static_cast<void>(make<Described>(-1));
      // Assignment leaves the first word alone.
      Described local(7);
      local.next = nullptr;
      *make<Described>() = local;
    }
  });
  compact();
  int expected = 499;
  for (Described* at = list; at != nullptr; at = at->next) {
    ASSERT_EQ(at->value, expected--);
    ASSERT_EQ(jd_layout_of(at), layout_of<Described>());
  }
  EXPECT_EQ(expected, -1);
}

TEST(Face, VirtualFunctions) {
  root<Shape> list;
  far_away([&] {
    for (int i = 0; i < 300; ++i) {
      Shape* next = list;
      if (i % 2 == 0) {
        list = make<Shape>();
      } else {
        auto* triangle = make<Triangle>();
        triangle->node = leaf(i);
        list = triangle;
      }
      list->next = next;
      for (int k = 0; k < 4; ++k) static_cast<void>(make<Triangle>());
    }
  });
  compact();
  int i = 299;
  for (Shape* at = list; at != nullptr; at = at->next, --i) {
    ASSERT_EQ(at->corners(), i % 2 == 0 ? 0 : 3);
    if (i % 2 != 0) {
      ASSERT_EQ(static_cast<Triangle*>(at)->node->value, i);
    }
  }
}

TEST(Face, Arrays) {
  root<Row> row;
  root<Bytes> bytes;
  far_away([&] {
    row = make_array<Row>(300, 17);
    bytes = make_array<Bytes>(1000);
    for (int i = 0; i < 300; ++i) {
      ASSERT_EQ(elements(row.get())[i].get(), nullptr);
      elements(row.get())[i] = leaf(i);
    }
    bytes->length = 1000;
    std::memset(elements(bytes.get()), 'x', 1000);
  });
  compact();
  EXPECT_EQ(row->value, 17);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(elements(row.get())[i]->value, i);
  EXPECT_EQ(std::string(elements(bytes.get()), 1000), std::string(1000, 'x'));
  EXPECT_EQ(jd_size_of(row), sizeof(Row) + 300 * 8);
}

TEST(Face, ArraysWithoutAHeader) {
  root<Slots> slots;
  far_away([&] {
    slots = make_array<Slots>(100, 17);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(elements(slots.get())[i].get(), nullptr);
      elements(slots.get())[i] = leaf(i);
    }
  });
  compact();
  EXPECT_EQ(slots->value, 17);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(elements(slots.get())[i]->value, i);
  EXPECT_GE(jd_size_of(slots), sizeof(Slots) + 100 * 8);
}

TEST(Face, TraceProcedure) {
  root<Traced> list;
  far_away([&] {
    for (std::uint64_t i = 0; i < 500; ++i) {
      Traced* next = list;
      list = make<Traced>(next, i);
      static_cast<void>(make<Traced>());
    }
  });
  compact();
  std::uint64_t expected = 500;
  for (Traced* at = list; at != nullptr; at = at->next) ASSERT_EQ(at->tag, --expected);
  EXPECT_EQ(expected, 0U);
}

// A word on the stack that is a declared root means the object that it points to, and never one
// that ends there: that one may move away (the verifier looks).
TEST(Face, RootsOnTheStackHoldNoObjectBefore) {
  std::vector<root<Traced>> objects;
  far_away([&] {
    for (std::uint64_t i = 0; i < 200; ++i) objects.emplace_back(make<Traced>(nullptr, i));
  });
  // Every second object stays where it is.
  std::vector<jd::pinned<Traced>> pinned;
  far_away([&] {
    for (std::size_t i = 1; i < objects.size(); i += 2) pinned.emplace_back(objects[i].get());
  });
  root<Traced> on_stack[100];
  far_away([&] {
    for (std::size_t i = 0; i < std::size(on_stack); ++i) on_stack[i] = objects[2 * i + 1];
  });
  compact();
  for (std::size_t i = 0; i < std::size(on_stack); ++i) {
    EXPECT_EQ(on_stack[i]->tag, 2 * i + 1);
    EXPECT_EQ(objects[2 * i]->tag, 2 * i);
  }
}

// ---- Handles ----

TEST(Face, RootsFollowInContainers) {
  std::vector<root<::Node>> nodes;
  std::map<int, root<::Node>> by_number;
  far_away([&] {
    // The vector grows: its roots are registered where they are now.
    for (int i = 0; i < 300; ++i) {
      nodes.emplace_back(leaf(i));
      by_number[i] = leaf(1000 + i);
      for (int k = 0; k < 5; ++k) static_cast<void>(leaf(-1));
    }
  });
  compact();
  nodes.erase(nodes.begin(), nodes.begin() + 100);
  std::swap(nodes[0], nodes[1]);
  compact();
  EXPECT_EQ(nodes[0]->value, 101);
  EXPECT_EQ(nodes[1]->value, 100);
  for (std::size_t i = 2; i < 200; ++i) ASSERT_EQ(nodes[i]->value, static_cast<long>(i) + 100);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(by_number[i]->value, 1000 + i);
}

TEST(Face, RootsAreCopiedMovedAndDropped) {
  WeakWatch watch(300);
  far_away([&] {
    std::vector<root<::Node>> first;
    for (int i = 0; i < 300; ++i) {
      first.emplace_back(leaf(i));
      watch.add(first.back());
    }
    const std::vector<root<::Node>> second = first;
    first.clear();
    compact();
    EXPECT_EQ(watch.alive(), 300U);
    root<::Node> one = second[7];
    root<::Node> moved = std::move(one);
    EXPECT_EQ(one.get(), nullptr);  // NOLINT(bugprone-use-after-move): it says so
    one = std::move(moved);
    EXPECT_EQ(moved.get(), nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(one->value, 7);
    moved = one;
    EXPECT_EQ((*moved).value, 7);
    one = nullptr;
    EXPECT_EQ(one.get(), nullptr);
  });
  EXPECT_TRUE(watch.most_dead());
}

TEST(Face, PinnedStays) {
  std::vector<pinned<::Node>> pins;
  std::vector<std::uintptr_t> places;
  far_away([&] {
    for (int i = 0; i < 200; ++i) {
      for (int k = 0; k < 10; ++k) static_cast<void>(leaf(-1));
      pins.emplace_back(leaf(i));
      places.push_back(~reinterpret_cast<std::uintptr_t>(pins.back().get()));
    }
  });
  pinned<::Node> none;
  pinned<::Node> copy = pins[5];
  copy = pins[6];
  none = std::move(copy);
  EXPECT_EQ(copy.get(), nullptr);  // NOLINT(bugprone-use-after-move): it says so
  EXPECT_EQ(none->value, 6);
  compact();
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(~reinterpret_cast<std::uintptr_t>(pins[i].get()), places[i]);
    ASSERT_EQ(pins[i]->value, static_cast<long>(i));
  }
  // Each was unpinned as often as it was pinned: or this ends the program.
  none = pinned<::Node>();
  pins.clear();
  for (std::size_t i = 0; i < 200; ++i) {
    auto* node = reinterpret_cast<::Node*>(~places[i]);
    if (jd_size_of(node) != 0) {
      EXPECT_NE(jd_pin(node), 0);
      jd_unpin(node);
    }
  }
}

std::atomic<int> finalized_nodes;
void finalize_node(::Node* node) { finalized_nodes += node->value == 5 ? 1 : 1000; }

TEST(Face, Finalizers) {
  finalized_nodes = 0;
  far_away([&] {
    for (int i = 0; i < 300; ++i) jd::finalize<&finalize_node>(leaf(5));
  });
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_GE(finalized_nodes, 285);
  EXPECT_LE(finalized_nodes, 300);
}

void finalize_const_node(const ::Node* node) { finalized_nodes += node->value == 5 ? 1 : 1000; }

// Regression: only ref and root could be of const objects; the others did not compile.
TEST(Face, HandlesOfConstObjects) {
  const ::Node* const object = leaf(7);
  const ref<const ::Node> pointer = object;
  const root<const ::Node> held = object;
  const pinned<const ::Node> pin(object);
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): that it can be copied
  const pinned<const ::Node> another = pin;
  const weak<const ::Node> reference(object);
  ephemeron<const ::Node, const ::Node> pair(object, leaf(8));
  compact();
  for (const ::Node* same :
       {pointer.get(), held.get(), pin.get(), another.get(), reference.get(), pair.key()}) {
    ASSERT_EQ(same, object);
    ASSERT_EQ(same->value, 7);
  }
  EXPECT_EQ(pair.value()->value, 8);
  pair.set_value(object);
  EXPECT_EQ(pair.value(), object);
  const Row* const row = make_array<Row>(2, 1);
  const auto* const first = elements(row);
  EXPECT_EQ(static_cast<const void*>(first), row + 1);
  finalized_nodes = 0;
  far_away([&] {
    for (int i = 0; i < 300; ++i) {
      jd::finalize<&finalize_const_node>(static_cast<const ::Node*>(leaf(5)));
    }
  });
  for (int attempt = 0; attempt < 4; ++attempt) {
    compact();
    far_away([] { GC_invoke_finalizers(); });
  }
  EXPECT_GE(finalized_nodes, 285);
  EXPECT_LE(finalized_nodes, 300);
}

TEST(Face, NullHandles) {
  const root<::Node> no_root;
  EXPECT_EQ(no_root.get(), nullptr);
  const pinned<::Node> no_pin(nullptr);
  EXPECT_EQ(no_pin.get(), nullptr);
  auto* rich = make<Rich>();
  EXPECT_EQ(rich->weak.get(), nullptr);
  EXPECT_EQ(rich->pair.key(), nullptr);
  EXPECT_EQ(rich->pair.value(), nullptr);
}

TEST(Face, Containers) {
  std::vector<::Node*, allocator<::Node*>> nodes;
  std::map<int, ::Node*, std::less<>, allocator<std::pair<const int, ::Node*>>> by_number;
  std::vector<int, allocator<int>> numbers;
  std::basic_string<char, std::char_traits<char>, allocator<char>> text;
  for (int i = 0; i < 500; ++i) {
    nodes.push_back(leaf(i));
    by_number[i] = leaf(i + 1000);
    numbers.push_back(i);
    text += static_cast<char>('a' + i % 26);
    for (int k = 0; k < 3; ++k) static_cast<void>(leaf(-1));
  }
  compact();
  for (int i = 0; i < 500; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(nodes[at]->value, i);
    ASSERT_EQ(by_number[i]->value, i + 1000);
    ASSERT_EQ(numbers[at], i);
    ASSERT_EQ(text[at], 'a' + i % 26);
  }
  EXPECT_THROW(static_cast<void>(allocator<::Node>().allocate(SIZE_MAX / 8)), std::bad_alloc);
}

TEST(Face, OutOfMemoryThrows) {
  GC_set_warn_proc([](char*, GC_word) {});
  GC_set_oom_fn([](std::size_t) -> void* { return nullptr; });
  EXPECT_THROW(static_cast<void>(make_array<Row>(SIZE_MAX / 16, 1)), std::bad_alloc);
}

TEST(FaceDeathTest, DescribedComesFirst) {
  EXPECT_DEATH(static_cast<void>(make<DescribedLate>()),
               "DescribedLate: its base class jd::described is to come first");
}

// A ref costs what a pointer does.
static_assert(sizeof(ref<::Node>) == sizeof(void*) && sizeof(weak<::Node>) == sizeof(void*));
static_assert(std::is_trivially_copyable_v<ref<::Node>> &&
              std::is_trivially_default_constructible_v<ref<::Node>>);
static_assert(sizeof(root<::Node>) == sizeof(void*) && sizeof(pinned<::Node>) == sizeof(void*));

}  // namespace
}  // namespace jd::test

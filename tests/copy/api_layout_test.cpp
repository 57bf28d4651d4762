// Layouts: what objects of each shape are, what the collector finds in them.
#include <csignal>
#include <cstring>
#include <deque>
#include <set>
#include <string>

#include "api_support.hpp"
#include "child.hpp"

namespace jd::test {
namespace {

// Thousands of layouts that share blocks.
TEST(Layout, ThereMayBeMany) {
  std::vector<jd_layout*> layouts;
  Cell list;
  for (std::size_t i = 0; i < 3000; ++i) {
    const jd_source source = i % 2 == 0 ? JD_SELF : JD_HEADER;
    layouts.push_back(define_node("one of many", source, i % 7));
    ASSERT_NE(layouts.back(), nullptr) << i;
  }
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    char* object = static_cast<char*>(jd_new(layouts[i]));
    *reinterpret_cast<void**>(object + front_of(i % 2 == 0 ? JD_SELF : JD_HEADER)) = list.get();
    list.set(object);
  }
  compact();
  void* object = list.get();
  for (std::size_t i = layouts.size(); i-- > 0;) {
    const jd_source source = i % 2 == 0 ? JD_SELF : JD_HEADER;
    ASSERT_EQ(jd_layout_of(object), layouts[i]) << i;
    ASSERT_EQ(jd_size_of(object), front_of(source) + sizeof(Node) + 8 * (i % 7));
    object = *reinterpret_cast<void**>(static_cast<char*>(object) + front_of(source));
  }
  EXPECT_EQ(object, nullptr);
}

// ---- What an address is ----

class Layout : public EachSource {};
JD_EACH_SOURCE(Layout);

TEST_P(Layout, IsFoundFromEveryByteOfAnObject) {
  const Nodes nodes(GetParam(), 3);
  char* object = static_cast<char*>(nodes.make());
  const std::size_t size = front_of(GetParam()) + sizeof(Node) + 24;
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(jd_layout_of(object + i), nodes.layout()) << i;
  EXPECT_EQ(nodes.layout()->self, nodes.layout());
  EXPECT_STREQ(nodes.layout()->name, "node");
}

TEST_P(Layout, SizeIsThatOfTheFirstByteOnly) {
  const Nodes nodes(GetParam(), 3);
  char* object = static_cast<char*>(nodes.make());
  const std::size_t size = front_of(GetParam()) + sizeof(Node) + 24;
  EXPECT_EQ(jd_size_of(object), size);
  for (std::size_t i = 1; i < size; ++i) EXPECT_EQ(jd_size_of(object + i), 0U) << i;
  // A header word is not the program's.
  if (GetParam() == JD_HEADER) {
    EXPECT_EQ(jd_size_of(object - 8), 0U);
  }
}

TEST_P(Layout, SizesAreRoundedUpToWords) {
  for (std::size_t size = 8; size < 200; size += 13) {
    const jd_layout_info info = info_of("sized", GetParam(), size);
    const jd_layout* layout = jd_layout_define(&info);
    ASSERT_NE(layout, nullptr);
    void* object = jd_new(layout);
    EXPECT_EQ(jd_size_of(object), (size + 7) / 8 * 8);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object) %
                  (GetParam() == JD_HOMOGENEOUS && !is_mcc() ? 16 : 8),
              0U);
  }
}

TEST(Layout, OfWhatIsNoTypedObject) {
  static int variable = 0;
  int local = 0;
  void* malloced = std::malloc(100);
  void* untyped = GC_malloc(100);
  void* large = GC_malloc(1 << 20);
  for (void* p :
       {static_cast<void*>(nullptr), static_cast<void*>(&variable), static_cast<void*>(&local),
        malloced, untyped, large, static_cast<void*>(static_cast<char*>(large) + 70000),
        reinterpret_cast<void*>(8), reinterpret_cast<void*>(~std::uintptr_t{0}),
        reinterpret_cast<void*>(~std::uintptr_t{7})}) {
    EXPECT_EQ(jd_layout_of(p), nullptr) << p;
  }
  for (void* p : {static_cast<void*>(nullptr), static_cast<void*>(&variable),
                  static_cast<void*>(&local), malloced}) {
    EXPECT_EQ(jd_size_of(p), 0U) << p;
  }
  // An object of libgc's functions has a size, too.
  EXPECT_EQ(jd_size_of(untyped), GC_size(untyped));
  EXPECT_EQ(jd_size_of(static_cast<char*>(untyped) + 8), 0U);
  EXPECT_EQ(jd_size_of(large), GC_size(large));
  std::free(malloced);
}

TEST(Layout, OfAWeakReferenceIsItsOwn) {
  jd_weak* weak = jd_weak_new(nullptr);
  EXPECT_NE(jd_layout_of(weak), nullptr);
  EXPECT_EQ(jd_size_of(weak), 8U);
}

// ---- Shapes ----

// Objects of `words` words of which every third is a pointer.
class Comb {
 public:
  Comb(jd_source source, std::size_t words) : first_(source == JD_SELF ? 1 : 0), words_(words) {
    std::vector<std::uint64_t> bits((words + 63) / 64);
    for (std::size_t i = first_; i < words; i += 3) bits[i / 64] |= std::uint64_t{1} << (i % 64);
    const jd_layout_info info = info_of("comb", source, 8 * words, bits.data());
    layout_ = jd_layout_define(&info);
  }
  [[nodiscard]] bool defined() const { return layout_ != nullptr; }
  // Words that are no pointers hold patterns which are nobody's addresses.
  [[nodiscard]] void* make(const Nodes& nodes) const {
    auto* object = static_cast<std::uint64_t*>(jd_new(layout_));
    for (std::size_t i = first_; i < words_; ++i) {
      EXPECT_EQ(object[i], 0U);
      object[i] = (i - first_) % 3 == 0 ? reinterpret_cast<std::uint64_t>(nodes.make(i)) : ~i;
    }
    return object;
  }
  void check(void* made, const Nodes& nodes) const {
    const auto* object = static_cast<std::uint64_t*>(made);
    for (std::size_t i = first_; i < words_; ++i) {
      if ((i - first_) % 3 == 0) {
        ASSERT_EQ(nodes.value(reinterpret_cast<void*>(object[i])), i);
      } else {
        ASSERT_EQ(object[i], ~i);
      }
    }
    EXPECT_EQ(jd_size_of(made), 8 * words_);
  }

 private:
  std::size_t first_;
  std::size_t words_;
  const jd_layout* layout_ = nullptr;
};

class Shapes : public EachSource {};
JD_EACH_SOURCE(Shapes);

// From a word to what does not fit into one bitmap word, a slot, a block, a megabyte.
TEST_P(Shapes, BitmapsOfAnyLength) {
  const Nodes nodes(JD_HOMOGENEOUS);
  for (const std::size_t words :
       {2,   3,   5,   31,   61,   62,   63,   64,   65,   100,  127,
        128, 129, 500, 1000, 1023, 1024, 1025, 1500, 2048, 5000, 140000}) {
    if (words > 1500 && allocations_are_dear()) break;
    const Comb comb(GetParam(), words);
    ASSERT_TRUE(comb.defined()) << words;
    const Cell cell;
    const Cell second;
    far_away([&] {
      const_cast<Cell&>(cell).set(comb.make(nodes));
      const_cast<Cell&>(second).set(comb.make(nodes));
    });
    collect();
    compact();
    far_away([&] {
      SCOPED_TRACE(words);
      comb.check(cell.get(), nodes);
      comb.check(second.get(), nodes);
    });
  }
}

TEST_P(Shapes, AllWordsArePointers) {
  for (const std::size_t words : {2, 3, 4, 62, 64, 70, 1500}) {
    const std::size_t front = front_of(GetParam()) / 8;
    std::vector<std::uint64_t> bits((words + 63) / 64);
    for (std::size_t i = front; i < words; ++i) bits[i / 64] |= std::uint64_t{1} << (i % 64);
    const jd_layout_info info = info_of("all", GetParam(), 8 * words, bits.data());
    const jd_layout* layout = jd_layout_define(&info);
    const Nodes nodes(JD_HEADER);
    Cell cell;
    far_away([&] {
      auto** object = static_cast<void**>(jd_new(layout));
      cell.set(object);
      for (std::size_t i = front; i < words; ++i) object[i] = nodes.make(i);
    });
    compact();
    auto** object = static_cast<void**>(cell.get());
    for (std::size_t i = front; i < words; ++i) ASSERT_EQ(nodes.value(object[i]), i) << words;
  }
}

// Words beside the run hold addresses, too, but nothing else: they stay as they are.
TEST_P(Shapes, PointersThatAreOneRun) {
  constexpr std::size_t kWords = 7;
  struct Run {
    std::size_t begin = 0;
    std::size_t end = 0;
    Cell cell;
    std::uintptr_t made[kWords] = {};  // complements of the addresses
  };
  const std::size_t front = front_of(GetParam()) / 8;
  const Nodes nodes(JD_HOMOGENEOUS);
  WeakWatch beside(kWords * kWords * kWords);
  std::deque<Run> runs;
  for (std::size_t begin = front; begin < kWords; ++begin) {
    for (std::size_t end = begin + 1; end <= kWords; ++end) {
      const std::uint64_t bits = (std::uint64_t{1} << end) - (std::uint64_t{1} << begin);
      const jd_layout_info info = info_of("run", GetParam(), 8 * kWords, &bits);
      const jd_layout* layout = jd_layout_define(&info);
      ASSERT_NE(layout, nullptr);
      Run& run = runs.emplace_back();
      run.begin = begin;
      run.end = end;
      far_away([&] {
        auto** object = static_cast<void**>(jd_new(layout));
        run.cell.set(object);
        for (std::size_t i = front; i < kWords; ++i) {
          object[i] = nodes.make(i);
          run.made[i] = ~reinterpret_cast<std::uintptr_t>(object[i]);
          if (i < begin || i >= end) beside.add(object[i]);
        }
      });
    }
  }
  compact();
  for (const Run& run : runs) {
    SCOPED_TRACE(testing::Message() << run.begin << " to " << run.end);
    auto** object = static_cast<void**>(run.cell.get());
    for (std::size_t i = front; i < kWords; ++i) {
      if (i >= run.begin && i < run.end) {
        ASSERT_EQ(nodes.value(object[i]), i);
      } else {
        ASSERT_EQ(~reinterpret_cast<std::uintptr_t>(object[i]), run.made[i]);
      }
    }
  }
  EXPECT_TRUE(beside.most_dead());
}

JD_CHILD(count_overwritten) {
  GC_INIT();
  static const std::uint64_t all = 1;
  jd_layout_info info = info_of("array", JD_SELF, 32);
  info.element_size = 8;
  info.element_pointers = &all;
  info.count_offset = 8;
  auto* object = static_cast<std::uint64_t*>(jd_new_array(jd_layout_define(&info), 3));
  object[1] = std::uint64_t{1} << 50;
  jd_collect(0);
  keep_here(object);
  return 0;
}
JD_CHILD(first_word_overwritten) {
  GC_INIT();
  auto* object = static_cast<std::uint64_t*>(jd_new(define_node("self", JD_SELF)));
  static std::uint64_t nothing[4] = {};
  object[0] = reinterpret_cast<std::uint64_t>(nothing);
  jd_collect(0);
  keep_here(object);
  return 0;
}
JD_CHILD(header_overwritten) {
  GC_INIT();
  auto* object = static_cast<std::uint64_t*>(jd_new(define_node("header", JD_HEADER)));
  object[-1] = 42;
  jd_collect(0);
  keep_here(object);
  return 0;
}
TEST(Layout, OverwrittenWordsEndTheProgramWithAMessage) {
  for (const char* child : {"count_overwritten", "first_word_overwritten", "header_overwritten"}) {
    const ChildResult r = run_child(child);
    EXPECT_EQ(r.signal, SIGABRT) << child << r;
    EXPECT_NE(r.err.find("typed heap"), std::string::npos) << child << r;
  }
}

// ---- Trace procedures ----

// A stack of references: the first word counts those that are in use.
struct Stack {
  std::uint64_t count;
  void* entries[30];
};
void trace_stack(void* object, std::size_t size, jd_tracer* tracer) {
  // Asserts nothing: it runs in a stopped world.
  auto* stack = reinterpret_cast<Stack*>(static_cast<char*>(object) + (size - sizeof(Stack)));
  for (std::uint64_t i = 0; i < stack->count; ++i) jd_trace_slot(tracer, &stack->entries[i]);
}

TEST_P(Shapes, TraceProcedure) {
  jd_layout_info info = info_of("stack", GetParam(), front_of(GetParam()) + sizeof(Stack));
  info.trace = trace_stack;
  const jd_layout* layout = jd_layout_define(&info);
  ASSERT_NE(layout, nullptr);
  const Nodes nodes(JD_HOMOGENEOUS);
  Cell cell;
  WeakWatch dropped(2000);
  far_away([&] {
    for (int k = 0; k < 200; ++k) {
      auto* object = static_cast<char*>(jd_new(layout));
      auto* stack = reinterpret_cast<Stack*>(object + front_of(GetParam()));
      stack->entries[0] = cell.get();
      stack->count = 1;
      cell.set(object);
      for (std::uint64_t i = 1; i < 20; ++i) {
        stack->entries[i] = nodes.make(i);
        stack->count = i + 1;
      }
      for (int i = 10; i < 20; ++i) dropped.add(stack->entries[i]);
      // Beyond the count nothing is held.
      stack->count = 10;
    }
  });
  EXPECT_TRUE(dropped.most_dead());
  compact();
  std::size_t stacks = 0;
  for (void* object = cell.get(); object != nullptr; ++stacks) {
    auto* stack = reinterpret_cast<Stack*>(static_cast<char*>(object) + front_of(GetParam()));
    for (std::uint64_t i = 1; i < 10; ++i) ASSERT_EQ(nodes.value(stack->entries[i]), i);
    object = stack->entries[0];
  }
  EXPECT_EQ(stacks, 200U);
}

int trace_garbage(std::ptrdiff_t offset) {
  static std::ptrdiff_t where;
  where = offset;
  GC_INIT();
  jd_layout_info info = info_of("told garbage", JD_HEADER, 64);
  info.trace = [](void* object, std::size_t, jd_tracer* tracer) {
    jd_trace_slot(tracer, static_cast<char*>(object) + where);
  };
  const jd_layout* layout = jd_layout_define(&info);
  void* object = jd_new(layout);
  jd_collect(1);
  keep_here(object);
  return 0;
}
JD_CHILD(trace_before) { return trace_garbage(-8); }
JD_CHILD(trace_behind) { return trace_garbage(64); }
JD_CHILD(trace_end) { return trace_garbage(60); }
JD_CHILD(trace_odd) { return trace_garbage(3); }
JD_CHILD(trace_far) { return trace_garbage(std::ptrdiff_t{1} << 46); }
TEST(Trace, WordsOutsideOfTheObjectEndTheProgram) {
  for (const char* child :
       {"trace_before", "trace_behind", "trace_end", "trace_odd", "trace_far"}) {
    const ChildResult r = run_child(child);
    EXPECT_EQ(r.signal, SIGABRT) << child << r;
    EXPECT_NE(r.err.find("told garbage"), std::string::npos) << child << r;
  }
}

// ---- JD_SELF ----

// A program's own class: a record that begins with the layout's address. An instance's first word
// leads to it.
struct Class {
  const jd_layout* layout;
  const char* name;
  int generation;
};
struct Instance {
  const Class* own_class;
  Instance* next;
  std::uint64_t value;
};

TEST(Self, FirstWordMayLeadToARecordOfTheProgram) {
  const std::uint64_t next = JD_POINTER(Instance, next);
  const jd_layout_info info = info_of("instance", JD_SELF, sizeof(Instance), &next);
  const jd_layout* layout = jd_layout_define(&info);
  // They last as long as the program: dead objects lead to them, too.
  static Class classes[2];
  classes[0] = {layout, "even", 1};
  classes[1] = {layout, "odd", 2};
  Cell list;
  far_away([&] {
    for (std::uint64_t i = 0; i < 3000; ++i) {
      auto* instance = static_cast<Instance*>(jd_new(layout));
      EXPECT_EQ(static_cast<const void*>(instance->own_class), layout);
      instance->own_class = &classes[i % 2];
      instance->value = i;
      if (i % 3 == 0) {
        instance->next = static_cast<Instance*>(list.get());
        list.set(instance);
      }
    }
  });
  compact();
  std::uint64_t count = 0;
  for (auto* instance = static_cast<Instance*>(list.get()); instance != nullptr;
       instance = instance->next, ++count) {
    ASSERT_EQ(instance->value, 2997 - 3 * count);
    ASSERT_STREQ(instance->own_class->name, instance->value % 2 == 0 ? "even" : "odd");
    ASSERT_EQ(jd_layout_of(instance), layout);
    ASSERT_EQ(jd_size_of(instance), sizeof(Instance));
  }
  EXPECT_EQ(count, 1000U);
}

}  // namespace
}  // namespace jd::test

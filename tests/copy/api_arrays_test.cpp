// Layouts with a variable part: arrays of elements.
#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "api_support.hpp"
#include "child.hpp"

namespace jd::test {
namespace {

// Elements of `size` bytes; every other word of one, from the first on, is a pointer, if any is.
class Arrays {
 public:
  Arrays(jd_source source, std::size_t element, bool pointers, std::size_t fixed = 16)
      : source_(source),
        front_(source == JD_SELF ? 16 : 0),
        fixed_(fixed),
        element_(element),
        pointers_(pointers) {
    static constexpr std::uint64_t kEveryOther = 0x5;
    const std::uint64_t bits = kEveryOther & ((std::uint64_t{1} << (element / 8)) - 1);
    jd_layout_info info = info_of("array", source, front_ + fixed);
    info.element_size = element;
    info.element_pointers = pointers ? &bits : nullptr;
    info.count_offset = source == JD_SELF ? 8 : 0;
    layout_ = jd_layout_define(&info);
  }
  [[nodiscard]] const jd_layout* layout() const { return layout_; }
  [[nodiscard]] std::size_t size(std::size_t count) const {
    return (front_ + fixed_ + count * element_ + 7) / 8 * 8;
  }

  [[nodiscard]] void* make(std::size_t count, const Nodes& nodes) const {
    auto* object = static_cast<char*>(jd_new_array(layout_, count));
    if (object == nullptr) return nullptr;
    char* body = object + front_;
    for (std::size_t i = 0; i < fixed_ + count * element_; ++i) {
      if (body[i] != 0) ADD_FAILURE() << "byte " << i << " is not zero";
    }
    fill_pattern(body, fixed_, 1);
    if (!pointers_) {
      fill_pattern(body + fixed_, count * element_, 2);
      return object;
    }
    auto* words = reinterpret_cast<std::uint64_t*>(body + fixed_);
    const std::size_t step = element_ / 8;
    for (std::size_t i = 0; i < count * step; ++i) {
      words[i] = i % step % 2 == 0 ? reinterpret_cast<std::uint64_t>(nodes.make(i)) : ~i;
    }
    return object;
  }
  void check(void* made, std::size_t count, const Nodes& nodes) const {
    auto* body = static_cast<char*>(made) + front_;
    ASSERT_EQ(jd_layout_of(made), layout_);
    if (source_ != JD_HOMOGENEOUS || is_mcc()) {
      ASSERT_EQ(jd_size_of(made), size(count));
    } else {
      // Some elements more, all zero: of these sizes a slot wastes a fifth at most.
      ASSERT_GE(jd_size_of(made), size(count));
      ASSERT_LE(jd_size_of(made), 16 + size(count) + size(count) / 4);
      for (std::size_t i = size(count); i < jd_size_of(made); ++i) ASSERT_EQ(body[i], 0) << i;
    }
    ASSERT_TRUE(holds_pattern(body, fixed_, 1));
    if (!pointers_) {
      ASSERT_TRUE(holds_pattern(body + fixed_, count * element_, 2));
      return;
    }
    const auto* words = reinterpret_cast<std::uint64_t*>(body + fixed_);
    const std::size_t step = element_ / 8;
    for (std::size_t i = 0; i < count * step; ++i) {
      if (i % step % 2 == 0) {
        ASSERT_EQ(nodes.value(reinterpret_cast<void*>(words[i])), i);
      } else {
        ASSERT_EQ(words[i], ~i);
      }
    }
  }

 private:
  jd_source source_;
  std::size_t front_;
  std::size_t fixed_;
  std::size_t element_;
  bool pointers_;
  const jd_layout* layout_;
};

class ArraysOf : public EachSource {};
JD_EACH_SOURCE(ArraysOf);

// Counting down from its end, a program may have no other pointer to an array.
TEST_P(ArraysOf, AreHeldByTheirEnds) {
  constexpr std::size_t kCount = 200;
  for (const std::size_t elements : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const Arrays arrays(GetParam(), 8, false, 8);
    WeakWatch watch(kCount);
    void* ends[kCount] = {};
    far_away([&] {
      for (void*& end : ends) {
        auto* array = static_cast<char*>(jd_new_array(arrays.layout(), elements));
        watch.add(array);
        end = array + jd_size_of(array);
        // The neighbour, whose beginning that is.
        static_cast<void>(jd_new_array(arrays.layout(), elements));
      }
    });
    opaque(static_cast<void*>(ends));
    compact();
    EXPECT_EQ(watch.alive(), kCount) << elements;
    opaque(static_cast<void*>(ends));
  }
}

TEST_P(ArraysOf, ElementsOfEachSize) {
  const Nodes nodes(JD_HOMOGENEOUS);
  for (const bool pointers : {false, true}) {
    for (const std::size_t element : {1, 2, 4, 8, 16, 24}) {
      if (pointers && element < 8) continue;
      const Arrays arrays(GetParam(), element, pointers);
      ASSERT_NE(arrays.layout(), nullptr);
      std::vector<std::unique_ptr<Cell>> cells;
      const std::size_t counts[] = {0, 1, 2, 3, 7, 8, 9, 64, 65, 300, 1000, 5000};
      for (const std::size_t count : counts) {
        cells.push_back(std::make_unique<Cell>());
        far_away([&] { cells.back()->set(arrays.make(count, nodes)); });
      }
      compact();
      far_away([&] {
        for (std::size_t i = 0; i < cells.size(); ++i) {
          SCOPED_TRACE(testing::Message()
                       << counts[i] << " elements of " << element << (pointers ? " p" : ""));
          arrays.check(cells[i]->get(), counts[i], nodes);
        }
      });
    }
  }
}

TEST_P(ArraysOf, LargeOnes) {
  const Nodes nodes(JD_HOMOGENEOUS);
  const Arrays pointers(GetParam(), 8, true);
  const Arrays triples(GetParam(), 24, true);
  const Arrays bytes(GetParam(), 1, false);
  Cell cells[6];
  const std::size_t many = allocations_are_dear() ? 3000 : 140000;
  far_away([&] {
    cells[0].set(pointers.make(1200, nodes));
    cells[1].set(pointers.make(many, nodes));
    cells[2].set(triples.make(500, nodes));
    cells[3].set(triples.make(many / 3, nodes));
    cells[4].set(bytes.make(9000, nodes));
    cells[5].set(bytes.make(3000000, nodes));
  });
  collect();
  compact();
  far_away([&] {
    pointers.check(cells[0].get(), 1200, nodes);
    pointers.check(cells[1].get(), many, nodes);
    triples.check(cells[2].get(), 500, nodes);
    triples.check(cells[3].get(), many / 3, nodes);
    bytes.check(cells[4].get(), 9000, nodes);
    bytes.check(cells[5].get(), 3000000, nodes);
  });
}

TEST_P(ArraysOf, WithoutElements) {
  const Nodes nodes(JD_HOMOGENEOUS);
  const Arrays arrays(GetParam(), 8, true);
  void* object = jd_new(arrays.layout());
  EXPECT_EQ(jd_size_of(object), arrays.size(0));
  EXPECT_EQ(jd_size_of(jd_new_array(arrays.layout(), 0)), arrays.size(0));
}

// A header alone: then the object has no byte, and only its address. Without that either, it has
// room for what was not asked for.
TEST_P(ArraysOf, WithoutAFixedPart) {
  if (GetParam() == JD_SELF) GTEST_SKIP() << "always has one";
  const Nodes nodes(JD_HOMOGENEOUS);
  const Arrays arrays(GetParam(), 8, true, 0);
  ASSERT_NE(arrays.layout(), nullptr);
  Cell cell;
  far_away([&] { cell.set(arrays.make(5, nodes)); });
  void* empty = jd_new(arrays.layout());
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(jd_layout_of(empty), arrays.layout());
  static void* others[100];  // a root
  for (void*& other : others) {
    other = jd_new_array(arrays.layout(), 0);
    ASSERT_NE(other, nullptr);
  }
  EXPECT_EQ(std::set<void*>(std::begin(others), std::end(others)).size(), std::size(others));
  compact();
  arrays.check(cell.get(), 5, nodes);
  keep_here(empty);
}

TEST_P(ArraysOf, MoreElementsThanMemoryHasRoomFor) {
  GC_set_oom_fn([](std::size_t) -> void* { return nullptr; });
  GC_set_warn_proc([](char*, GC_word) {});
  for (const std::size_t element : {1, 4, 8, 24}) {
    const Arrays arrays(GetParam(), element, false);
    for (const std::size_t count :
         {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 8, SIZE_MAX / 8 + 1, SIZE_MAX / 24,
          SIZE_MAX / 24 + 1, (SIZE_MAX - 16) / element, (SIZE_MAX - 24) / element,
          (SIZE_MAX - 40) / element, std::size_t{1} << 48, std::size_t{1} << 60}) {
      EXPECT_EQ(jd_new_array(arrays.layout(), count), nullptr) << count << " of " << element;
    }
  }
  EXPECT_NE(jd_new(define_node("still works", GetParam())), nullptr);
}

TEST_P(ArraysOf, OutOfMemoryFunctionIsAsked) {
  static std::size_t asked = 0;
  asked = 0;
  GC_set_warn_proc([](char*, GC_word) {});
  GC_set_oom_fn([](std::size_t bytes) -> void* {
    asked = bytes;
    return nullptr;
  });
  const Arrays arrays(GetParam(), 8, false);
  testing::internal::CaptureStderr();
  EXPECT_EQ(jd_new_array(arrays.layout(), SIZE_MAX / 8), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_GT(asked, SIZE_MAX / 2);
  EXPECT_NE(said.find(arrays.layout()->name), std::string::npos) << said;
}

JD_CHILD(elements_without) {
  GC_INIT();
  jd_new_array(define_node("no elements here", JD_HEADER), 3);
  return 0;
}
TEST(Arrays, OfALayoutWithoutElementsEndTheProgram) {
  const ChildResult r = run_child("elements_without");
  EXPECT_EQ(r.signal, SIGABRT) << r;
  EXPECT_NE(r.err.find("layout no elements here has no elements, and 3 were asked for"),
            std::string::npos)
      << r;
}

// The size of an array's memory comes with it.
TEST_P(ArraysOf, TraceProcedureOfAnArray) {
  jd_layout_info info = info_of("traced array", GetParam(), GetParam() == JD_SELF ? 16 : 0);
  info.element_size = 8;
  info.count_offset = GetParam() == JD_SELF ? 8 : 0;
  // Every other element, from the last on.
  info.trace = [](void* object, std::size_t size, jd_tracer* tracer) {
    auto** words = static_cast<void**>(object);
    for (std::size_t i = size / 8; i >= 4; i -= 2) jd_trace_slot(tracer, &words[i - 1]);
  };
  const jd_layout* layout = jd_layout_define(&info);
  ASSERT_NE(layout, nullptr);
  const Nodes nodes(JD_HOMOGENEOUS);
  Cell cell;
  far_away([&] {
    auto** object = static_cast<void**>(jd_new_array(layout, 3000));
    cell.set(object);
    for (std::size_t i = jd_size_of(object) / 8; i >= 4; i -= 2) object[i - 1] = nodes.make(i);
  });
  compact();
  auto** object = static_cast<void**>(cell.get());
  for (std::size_t i = jd_size_of(object) / 8; i >= 4; i -= 2) {
    ASSERT_EQ(nodes.value(object[i - 1]), i);
  }
}

// A vector of pairs and of strings with headers, which are replaced at random.
JD_CHILD(steady_typed_data) {
  GC_INIT();
  static constexpr std::uint64_t kBoth = 3;
  jd_layout_info pair_info = info_of("pair", JD_HEADER, 32);
  pair_info.pointers = &kBoth;
  jd_layout_info string_info = info_of("string", JD_HEADER, 8);
  string_info.element_size = 1;
  const jd_layout* const pair = jd_layout_define(&pair_info);
  const jd_layout* const string = jd_layout_define(&string_info);
  static constexpr std::uint64_t kPointer = 1;
  jd_layout_info vector_info = info_of("vector", JD_SELF, 16);
  vector_info.element_size = sizeof(void*);
  vector_info.element_pointers = &kPointer;
  vector_info.count_offset = 8;
  static std::size_t told;
  GC_set_on_heap_resize([](GC_word size) { told = size; });
  constexpr std::size_t kObjects = 40000;
  constexpr std::size_t kRounds = 400;
  Cell vector(jd_new_array(jd_layout_define(&vector_info), kObjects));
  std::mt19937_64 random(1);
  std::size_t early = 0;
  for (std::size_t i = 0; i < kRounds * kObjects; ++i) {
    if (i == kRounds / 8 * kObjects) early = GC_get_heap_size();
    const std::size_t k = random() % kObjects;
    void* object = k % 2 == 0 ? jd_new(pair) : jd_new_array(string, random() % 300);
    static_cast<void**>(vector.get())[2 + k] = object;
  }
  std::printf("%f\n", static_cast<double>(GC_get_heap_size()) / static_cast<double>(early));
  if (told < GC_get_heap_size()) return 2;
  return 0;
}

// Each moving collection added blocks for its copies, which the program then filled with what died,
// and which nobody told it of (2).
TEST(Arrays, SteadyDataNeedsNoLargerHeapWithEachMovingCollection) {
  if (allocations_are_dear()) GTEST_SKIP() << "millions of allocations";
  const ChildResult r = run_child("steady_typed_data");
  ASSERT_TRUE(r.ok()) << r;
  EXPECT_LE(std::stod(r.out), 1.25);
}

}  // namespace
}  // namespace jd::test

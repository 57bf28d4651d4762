// include/jackdaw/heap.hpp: what an array's elements may be.
#include <jackdaw/heap.hpp>

#include "api_support.hpp"

namespace jd::test {
namespace {

struct Leaf {
  long value;
  using jd_members = jd::pointers<>;
};

// Elements of several words.
struct Listed {
  jd::ref<Leaf> first;
  long number;
  jd::ref<Leaf> second;
  using jd_members = jd::pointers<&Listed::first, &Listed::second>;
};
template <class Element>
struct RowOf {
  long value;
  struct List : jd::pointers<> {
    using element = Element;
    static constexpr jd_source source = JD_HEADER;
  };
  using jd_members = List;
};
// Of elements in which some words are pointers; `words` of each, `gap` words that are none.
template <class Element>
void expect_elements_held(std::size_t words, std::size_t gap = SIZE_MAX) {
  constexpr std::size_t kElements = 100;
  root<RowOf<Element>> row;
  const auto slot = [&](std::size_t element, std::size_t word) {
    return reinterpret_cast<Leaf**>(row.get() + 1) + element * words + word;
  };
  const auto number = [&](std::size_t element, std::size_t word) {
    return static_cast<long>(element * words + word);
  };
  far_away([&] {
    row = make_array<RowOf<Element>>(kElements);
    for (std::size_t i = 0; i < kElements; ++i) {
      for (std::size_t w = 0; w < words; ++w) {
        if (w != gap) *slot(i, w) = make<Leaf>(number(i, w));
      }
    }
  });
  for (int i = 0; i < 3; ++i) compact();
  for (std::size_t i = 0; i < kElements; ++i) {
    for (std::size_t w = 0; w < words; ++w) {
      if (w == gap) continue;
      ASSERT_EQ((*slot(i, w))->value, number(i, w));
    }
  }
}
// Regression: arrays and what is const were taken for numbers.
TEST(Face, ElementsMayBeWhateverMembersMay) {
  expect_elements_held<ref<Leaf>[2]>(2);
  expect_elements_held<Leaf* [2]>(2);
  expect_elements_held<ref<Leaf>[2][3]>(6);
  expect_elements_held<const ref<Leaf>>(1);
  expect_elements_held<Leaf* const>(1);
  expect_elements_held<Listed>(3, 1);
  expect_elements_held<const Listed>(3, 1);
  expect_elements_held<Listed[1]>(3, 1);
}

}  // namespace
}  // namespace jd::test

// Without the rings an object's first pointer is followed first, however the object says what its
// pointers are: of what a program makes depth first, the marker's way is then the memory's.
// Run with one marker, without the rings and the verifier.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "api_support.hpp"
#include "gc/gc_typed.h"

namespace jd::test {
namespace {

constexpr std::size_t kLeaves = 6;

// The leaves whose turn has come, by their numbers.
std::array<std::uint64_t, 64> followed;
std::size_t followed_count;

struct Leaf {
  std::uint64_t number;
};

jd_layout* define_leaf() {
  jd_layout_info info = info_of("leaf", JD_HOMOGENEOUS, sizeof(Leaf));
  info.trace = [](void* object, std::size_t, jd_tracer*) {
    if (followed_count < followed.size()) {
      followed[followed_count++] = static_cast<Leaf*>(object)->number;
    }
  };
  return jd_layout_define(&info);
}

// Makes leaves in another order than that of the words they are put into.
void fill(void** words) {
  const jd_layout* leaf = define_leaf();
  for (const std::size_t i : {3, 0, 5, 1, 4, 2}) {
    words[i] = jd_new(leaf);
    static_cast<Leaf*>(words[i])->number = i;
  }
}

testing::AssertionResult are_followed_in_order() {
  followed_count = 0;
  jd_collect(0);
  if (followed_count != kLeaves) {
    return testing::AssertionFailure() << followed_count << " leaves were followed";
  }
  for (std::size_t i = 0; i < kLeaves; ++i) {
    if (followed[i] != i) {
      return testing::AssertionFailure() << "leaf " << followed[i] << " came as number " << i;
    }
  }
  return testing::AssertionSuccess();
}

class Order : public EachSource {};
JD_EACH_SOURCE(Order);

// An object of so many words whose last kLeaves are pointers.
void* make_parent(jd_layout_info info, std::size_t words) {
  const jd_layout* layout = jd_layout_define(&info);
  void* parent = jd_new(layout);
  fill(static_cast<void**>(parent) + (words - kLeaves));
  return parent;
}

TEST_P(Order, OfABitmap) {
  constexpr std::size_t kWords = 8;
  const std::uint64_t bits = std::uint64_t{(1 << kLeaves) - 1} << (kWords - kLeaves);
  Cell parent(make_parent(info_of("parent", GetParam(), 8 * kWords, &bits), kWords));
  EXPECT_TRUE(are_followed_in_order());
}

TEST_P(Order, OfALongBitmap) {
  constexpr std::size_t kWords = 130;
  const std::uint64_t bits[3] = {0, std::uint64_t{0xf} << 60, 3};
  Cell parent(make_parent(info_of("parent", GetParam(), 8 * kWords, bits), kWords));
  EXPECT_TRUE(are_followed_in_order());
}

TEST_P(Order, OfATraceProcedure) {
  constexpr std::size_t kWords = 8;
  jd_layout_info info = info_of("parent", GetParam(), 8 * kWords);
  info.trace = [](void* object, std::size_t, jd_tracer* tracer) {
    for (std::size_t i = kWords - kLeaves; i < kWords; ++i) {
      jd_trace_slot(tracer, static_cast<void**>(object) + i);
    }
  };
  Cell parent(make_parent(info, kWords));
  EXPECT_TRUE(are_followed_in_order());
}

// libgc's descriptors.
TEST(Described, OfBitmapsOfAnyLength) {
  for (const std::size_t words : {std::size_t{8}, std::size_t{130}}) {
    std::vector<GC_word> bits(words / 64 + 1);
    for (std::size_t i = words - kLeaves; i < words; ++i) bits[i / 64] |= GC_word{1} << (i % 64);
    auto* parent = static_cast<void**>(
        GC_malloc_explicitly_typed(8 * words, GC_make_descriptor(bits.data(), words)));
    Cell cell(parent);
    fill(parent + (words - kLeaves));
    EXPECT_TRUE(are_followed_in_order()) << words << " words";
  }
}

}  // namespace
}  // namespace jd::test

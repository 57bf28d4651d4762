// Without the rings an object's first pointer is followed first, however the object says what its
// pointers are: of what a program makes depth first, the marker's way is then the memory's.
// Run with one marker, without the rings and the verifier.
#include <array>
#include <cstdint>
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

testing::AssertionResult are_followed_in_order() {
  clear_stack();
  far_away([] {
    clear_stack();
    followed_count = 0;
    jd_collect(0);
  });
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

// An object of so many words, the last of which are pointers, each with a gap behind it.
constexpr std::size_t kStep = 2;
std::size_t word_of(std::size_t leaf, std::size_t words) {
  return words - kStep * (kLeaves - leaf);
}
std::vector<std::uint64_t> bits_of(std::size_t words) {
  std::vector<std::uint64_t> bits(words / 64 + 1);
  for (std::size_t i = 0; i < kLeaves; ++i) {
    const std::size_t word = word_of(i, words);
    bits[word / 64] |= std::uint64_t{1} << (word % 64);
  }
  return bits;
}

// Makes the leaves in another order than that of the words they are put into.
void fill(void** parent, std::size_t words) {
  const jd_layout* leaf = define_leaf();
  for (const std::size_t i : {3, 0, 5, 1, 4, 2}) {
    void*& word = parent[word_of(i, words)];
    word = jd_new(leaf);
    static_cast<Leaf*>(word)->number = i;
  }
}

testing::AssertionResult typed_is_followed_in_order(const jd_layout_info& info) {
  Cell parent;
  far_away([&] {
    parent.set(jd_new(jd_layout_define(&info)));
    fill(static_cast<void**>(parent.get()), info.size / 8);
  });
  return are_followed_in_order();
}

TEST_P(Order, OfABitmap) {
  constexpr std::size_t kWords = 14;
  const std::vector<std::uint64_t> bits = bits_of(kWords);
  EXPECT_TRUE(typed_is_followed_in_order(info_of("parent", GetParam(), 8 * kWords, bits.data())));
}

TEST_P(Order, OfALongBitmap) {
  constexpr std::size_t kWords = 130;
  const std::vector<std::uint64_t> bits = bits_of(kWords);
  EXPECT_TRUE(typed_is_followed_in_order(info_of("parent", GetParam(), 8 * kWords, bits.data())));
}

TEST_P(Order, OfATraceProcedure) {
  constexpr std::size_t kWords = 14;
  jd_layout_info info = info_of("parent", GetParam(), 8 * kWords);
  info.trace = [](void* object, std::size_t, jd_tracer* tracer) {
    for (std::size_t i = 0; i < kLeaves; ++i) {
      jd_trace_slot(tracer, static_cast<void**>(object) + word_of(i, kWords));
    }
  };
  EXPECT_TRUE(typed_is_followed_in_order(info));
}

// libgc's descriptors.
testing::AssertionResult described_is_followed_in_order(std::size_t words) {
  Cell parent;
  far_away([&] {
    const std::vector<std::uint64_t> bits = bits_of(words);
    parent.set(GC_malloc_explicitly_typed(8 * words, GC_make_descriptor(bits.data(), words)));
    fill(static_cast<void**>(parent.get()), words);
  });
  return are_followed_in_order();
}
TEST(Described, OfABitmap) { EXPECT_TRUE(described_is_followed_in_order(14)); }
TEST(Described, OfALongBitmap) { EXPECT_TRUE(described_is_followed_in_order(130)); }

}  // namespace
}  // namespace jd::test

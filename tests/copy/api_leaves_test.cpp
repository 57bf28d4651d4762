// Objects without pointers, of all sizes: what holds them, and where they lie.
#include <set>

#include "api_support.hpp"

namespace jd::test {
namespace {

constexpr std::size_t kLength = 1000;
constexpr std::size_t kMostWords = 24;

// Layouts of 1 to kMostWords words behind what stands in front.
class LeafLayouts {
 public:
  explicit LeafLayouts(jd_source source) : front_(front_of(source)) {
    for (std::size_t words = 1; words <= kMostWords; ++words) {
      const jd_layout_info info = info_of("leaf", source, front_ + 8 * words);
      layouts_[words - 1] = jd_layout_define(&info);
    }
  }
  [[nodiscard]] static std::size_t words_of(std::size_t number) { return number % kMostWords + 1; }
  [[nodiscard]] std::size_t size_of(std::size_t number) const {
    return front_ + 8 * words_of(number);
  }
  // Each of its words tells the number.
  [[nodiscard]] char* make(std::size_t number) const {
    auto* leaf = static_cast<char*>(jd_new(layouts_[words_of(number) - 1]));
    for (std::size_t i = 0; i < words_of(number); ++i) word(leaf, i) = number + i;
    return leaf;
  }
  [[nodiscard]] bool is(char* leaf, std::size_t number) const {
    if (jd_layout_of(leaf) != layouts_[words_of(number) - 1]) return false;
    for (std::size_t i = 0; i < words_of(number); ++i) {
      if (word(leaf, i) != number + i) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t& word(char* leaf, std::size_t i) const {
    return *reinterpret_cast<std::uint64_t*>(leaf + front_ + 8 * i);
  }
  std::size_t front_;
  jd_layout* layouts_[kMostWords];
};

// A list of nodes that each refer to a leaf, by an address that offset(number) is into it; there
// are others between them that die.
template <class Offset>
void* list_with_leaves(const Nodes& nodes, const LeafLayouts& leaves, Offset offset) {
  void* list = nullptr;
  for (std::size_t i = 0; i < kLength; ++i) {
    void* node = nodes.make(i, list);
    list = node;
    nodes.node(node)->other = reinterpret_cast<Node*>(leaves.make(i) + offset(i));
    static_cast<void>(leaves.make(i + 1));
    static_cast<void>(nodes.make());
  }
  return list;
}

class Leaves : public EachSource {
 protected:
  const Nodes nodes{GetParam()};
  const LeafLayouts leaves{GetParam()};

  // Round after round, while others come and go.
  template <class Offset>
  void check_list(Offset offset) const {
    Cell list;
    far_away([&] { list.set(list_with_leaves(nodes, leaves, offset)); });
    for (int round = 0; round < 4; ++round) {
      compact();
      far_away([&] {
        std::size_t i = kLength;
        for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
          --i;
          ASSERT_EQ(nodes.value(node), i);
          ASSERT_TRUE(leaves.is(static_cast<char*>(nodes.other(node)) - offset(i), i)) << i;
        }
        ASSERT_EQ(i, 0U);
        for (std::size_t k = 0; k < kLength; ++k) static_cast<void>(leaves.make(k));
      });
      if (round % 2 == 0) collect();
    }
  }
};
JD_EACH_SOURCE(Leaves);

TEST_P(Leaves, AreHeldByTheirAddress) {
  check_list([](std::size_t) { return std::size_t{0}; });
}

TEST_P(Leaves, AreHeldFromWithin) {
  check_list([this](std::size_t i) { return i * 7 % leaves.size_of(i); });
}

TEST_P(Leaves, AreHeldByTheStack) {
  // Made since the last collection, and met there for the first time.
  for (std::size_t i = 0; i < 50; ++i) {
    char* volatile within = leaves.make(i) + i * 5 % leaves.size_of(i);
    far_away([&] {
      for (std::size_t k = 0; k < 20; ++k) static_cast<void>(leaves.make(k));
    });
    compact();
    ASSERT_TRUE(leaves.is(within - i * 5 % leaves.size_of(i), i)) << i;
  }
}

TEST_P(Leaves, DieWhereNothingRefersToThem) {
  WeakWatch watch(kLength);
  far_away([&] {
    for (std::size_t i = 0; i < kLength; ++i) watch.add(leaves.make(i));
  });
  EXPECT_TRUE(watch.most_dead());
}

// The marker does not look into blocks that hold no pointers. (JD_MCC is as its paper has it.)
TEST_P(Leaves, LieApart) {
  constexpr unsigned kBlockShift = 14;
  std::set<std::uintptr_t> of_nodes;
  std::size_t shared = 0;
  Cell list;
  far_away([&] {
    list.set(list_with_leaves(nodes, leaves, [](std::size_t) { return std::size_t{0}; }));
  });
  far_away([&] {
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      of_nodes.insert(reinterpret_cast<std::uintptr_t>(node) >> kBlockShift);
    }
    for (void* node = list.get(); node != nullptr; node = nodes.next(node)) {
      shared += of_nodes.count(reinterpret_cast<std::uintptr_t>(nodes.other(node)) >> kBlockShift);
    }
  });
  if (is_mcc()) {
    EXPECT_GT(shared, kLength / 2);
  } else {
    EXPECT_EQ(shared, 0U);
  }
}

}  // namespace
}  // namespace jd::test

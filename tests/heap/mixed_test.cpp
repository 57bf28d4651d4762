// Mixed blocks, beside a model that knows what each granule belongs to (heap.req.starts).
#include "heap/mixed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "heap/layout.hpp"

namespace {

using namespace jd::heap;

struct Object {
  unsigned first;
  unsigned granules;
};

// The block's granules: what they belong to.
enum class Is { Gap, Hole, Object };

class MixedBlock {
 public:
  explicit MixedBlock(unsigned seed) : random_(seed) {
    static const bool reserved = reserve_space(64u << 20) && grow(64);
    EXPECT_TRUE(reserved);
    static const unsigned kind = [] {
      const unsigned added = add_kind(kTagPerObject, false, true);
      kinds[added].layout_from = LayoutFrom::Header;
      return added;
    }();
    number = make_mixed_block(static_cast<KindNumber>(kind));
    EXPECT_NE(number, kNoBlock);
    // What other objects left there.
    std::memset(jd::base::as_pointer(block_address(number)), 0xdb, kBlockSize);
    space.extras[number].owner = &hole_;
    hole_.block = number;
    hole_.starts = starts_of(number);
    granules_.fill(Is::Gap);
  }
  ~MixedBlock() {
    space.extras[number].owner = nullptr;
    hole_.cursor = nullptr;
  }
  MixedBlock(const MixedBlock&) = delete;
  MixedBlock& operator=(const MixedBlock&) = delete;

  // Fills most gaps with objects, and leaves the last one a hole, or none.
  void allocate() {
    Granules gap{0, 0};
    while (gap.to < kMixedGranules && find_gap(number, gap.to, kLeastGap, &gap)) {
      if (below(4) == 0) continue;
      leave_hole();
      enter_hole(gap);
      while (room() > 0 && below(50) != 0) {
        allocate_object(1 + below(std::min(room(), 12u)));
      }
    }
    if (below(2) == 0) leave_hole();
  }

  // The objects that stay, at random: a share of `alive` in 8.
  void mark(unsigned alive) {
    Block& block = space.blocks[number];
    for (std::uint64_t& word : block.marks) word = 0;
    std::vector<Object> stay;
    for (const Object& object : objects_) {
      // A word into the middle sets a bit of its own (Marker::pointers_at_granule).
      if (object.granules > 1 && below(8) == 0) Place{&block, object.first + 1}.set_mark();
      if (below(8) >= alive) {
        set(object, Is::Gap);
        continue;
      }
      stay.push_back(object);
    }
    if (!stay.empty()) learn_starts(number);
    for (const Object& object : stay) {
      Place place{};
      const unsigned offset = below(object.granules * static_cast<unsigned>(kGranule));
      ASSERT_TRUE(find_mixed(jd::base::as_word(at(object.first)) + offset, &place));
      ASSERT_EQ(place.slot, object.first);
      place.set_mark();
    }
    objects_ = stay;
  }

  void expect_starts() const {
    std::vector<bool> starts(kMixedGranules);
    for (const Object& object : objects_) starts[object.first] = true;
    for (unsigned g = 0; g < kMixedGranules; ++g) {
      if (granules_[g] == Is::Hole) continue;
      ASSERT_EQ(space.blocks[number].is_allocated(g), starts[g]) << g;
    }
  }

  // Each by its first byte and its last.
  void expect_objects() const {
    for (const Object& object : objects_) {
      const Word first = jd::base::as_word(at(object.first));
      Place place{};
      ASSERT_TRUE(find_mixed(first, &place));
      ASSERT_EQ(place.slot, object.first);
      ASSERT_TRUE(find_mixed(first + object.granules * kGranule - 1, &place));
      ASSERT_EQ(place.slot, object.first);
    }
  }

  // While a thread goes on, one gap's beginning may be read with another's end.
  void expect_objects_between_gaps() {
    std::vector<Granules> gaps;
    for (Granules gap{0, 0}; gap.to < kMixedGranules && find_gap(number, gap.to, 1, &gap);) {
      gaps.push_back(gap);
    }
    if (gaps.empty()) return;
    const MixedHole hole = hole_;
    const unsigned first = below(static_cast<unsigned>(gaps.size()));
    const unsigned last = first + below(static_cast<unsigned>(gaps.size()) - first);
    hole_.cursor = at(gaps[first].from);
    hole_.end = at(gaps[last].to);
    expect_objects();
    hole_ = hole;
  }

  void expect_gaps() const {
    Granules gap{0, 0};
    for (unsigned g = 0; g < kMixedGranules;) {
      if (granules_[g] != Is::Gap) {
        ++g;
        continue;
      }
      unsigned end = g;
      while (end < kMixedGranules && granules_[end] == Is::Gap) ++end;
      ASSERT_TRUE(find_gap(number, gap.to, 1, &gap)) << g;
      ASSERT_EQ(gap.from, g);
      ASSERT_EQ(gap.to, end);
      g = end;
    }
    ASSERT_FALSE(gap.to < kMixedGranules && find_gap(number, gap.to, 1, &gap)) << gap.from;
  }

  [[nodiscard]] unsigned count(Is what) const {
    return static_cast<unsigned>(std::count(granules_.begin(), granules_.end(), what));
  }

  [[nodiscard]] unsigned count_in_gaps_of(unsigned least) const {
    unsigned all = 0;
    unsigned length = 0;
    for (unsigned g = 0; g <= kMixedGranules; ++g) {
      if (g < kMixedGranules && granules_[g] == Is::Gap) {
        ++length;
        continue;
      }
      if (length >= least) all += length;
      length = 0;
    }
    return all;
  }

  BlockNumber number;

 private:
  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

  void set(const Object& object, Is what) {
    std::fill_n(granules_.begin() + object.first, object.granules, what);
  }

  char* at(unsigned granule) const {
    return jd::base::as_pointer(block_address(number) + granule * kGranule);
  }
  [[nodiscard]] unsigned room() const {
    return static_cast<unsigned>((hole_.end - hole_.cursor) / static_cast<long>(kGranule));
  }
  [[nodiscard]] unsigned cursor() const {
    return static_cast<unsigned>((hole_.cursor - at(0)) / static_cast<long>(kGranule));
  }

  // As alloc/mixed.cpp does it.
  void enter_hole(Granules gap) {
    set({gap.from, gap.count()}, Is::Hole);
    hole_.limit = hole_.cursor = at(gap.from);
    hole_.end = at(gap.to);
    take_gap(number, gap.from);
    clear_start_bytes(number, gap);
  }
  void leave_hole() {
    if (hole_.cursor == nullptr) return;
    if (room() > 0) {
      set({cursor(), room()}, Is::Gap);
      give_gap(number, cursor());
    }
    hole_.cursor = nullptr;
  }
  void allocate_object(unsigned granules) {
    const Object object{cursor(), granules};
    hole_.starts[jd::base::as_word(hole_.cursor) / kGranule] = 1;
    hole_.cursor += granules * kGranule;
    set(object, Is::Object);
    objects_.push_back(object);
  }

  std::mt19937_64 random_;
  MixedHole hole_{};
  std::array<Is, kMixedGranules> granules_{};
  std::vector<Object> objects_;
};

TEST(MixedBlock, IsWhatAModelSays) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    MixedBlock block(seed);
    for (unsigned round = 0; round < 25; ++round) {
      SCOPED_TRACE(round);
      block.allocate();
      const unsigned used = block.count(Is::Object);
      ASSERT_EQ(used_granules(block.number), used);
      ASSERT_NO_FATAL_FAILURE(block.expect_objects());
      ASSERT_NO_FATAL_FAILURE(block.expect_objects_between_gaps());
      learn_starts(block.number);
      ASSERT_NO_FATAL_FAILURE(block.expect_starts());
      ASSERT_NO_FATAL_FAILURE(block.expect_objects());
      ASSERT_NO_FATAL_FAILURE(block.expect_objects_between_gaps());
      // None, a few, most and all stay, too.
      ASSERT_NO_FATAL_FAILURE(block.mark(round % 9));
      ASSERT_EQ(used_granules(block.number), used);
      ASSERT_EQ(live_granules(block.number), block.count(Is::Object));
      unsigned free = 0;
      ASSERT_EQ(sweep_mixed(block.number, &free), block.count(Is::Object));
      ASSERT_EQ(free, block.count_in_gaps_of(kLeastGap));
      ASSERT_NO_FATAL_FAILURE(block.expect_gaps());
      ASSERT_NO_FATAL_FAILURE(block.expect_starts());
    }
  }
}

}  // namespace

// Size classes: the sizes of slots, each twice.
//
// Slot sizes go in steps of one granule up to 256 bytes, an eighth of a doubling up to 1 KiB (but
// 816 for 832: 20 to a block instead of 19), and above that they are the sizes that divide a block,
// so that little of a block is wasted (but for 16-byte slots, see kBitWords).
//
// Each size has a *loose* class, for requests that leave at least the slot's last word unused, and
// a *full* one, for requests that use it. Only the end of an object in a full slot is the beginning
// of the next slot. So only there can a pointer one past the end of an object look like one to its
// successor, and only there does the marker have to hold both (docs/design/heap.md, "Past the
// end"). Where pointers to ends hold nothing anyway, one class for each size is enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/block.hpp"

namespace jd::heap {

namespace detail {

inline constexpr std::array<std::uint16_t, 44> kSizes = {
    16,  32,   48,   64,   80,   96,   112,  128,  144,  160,  176,  192,  208,  224,  240,
    256, 288,  320,  352,  384,  416,  448,  480,  512,  576,  640,  704,  768,  816,  896,
    960, 1024, 1168, 1360, 1488, 1632, 1808, 2048, 2336, 2720, 3264, 4096, 5456, 8192,
};
constexpr bool sizes_ascend_by_granules() {
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    if (kSizes[i] % kGranule != 0 || (i != 0 && kSizes[i] <= kSizes[i - 1])) return false;
  }
  return true;
}
static_assert(sizes_ascend_by_granules());

}  // namespace detail

// The loose classes come first.
inline constexpr unsigned kFirstFullClass = detail::kSizes.size();
inline constexpr unsigned kSizeClasses = 2 * kFirstFullClass;
// Those of spans (heap/spans.hpp) are numbered behind them.
inline constexpr unsigned kSpanClasses = 12;
inline constexpr unsigned kListedClasses = kSizeClasses + kSpanClasses;

constexpr std::uint16_t slot_size_of(unsigned size_class) {
  return detail::kSizes[size_class % kFirstFullClass];
}
constexpr bool is_full_class(unsigned size_class) { return size_class >= kFirstFullClass; }

// The class of a request, by its words; a request of nothing gets the smallest slot.
using ClassTable = std::array<std::uint8_t, kMaxSmall / sizeof(Word) + 1>;

// What a request that uses its slot's last word gets.
enum class Ends : std::uint8_t {
  Apart,     // the full class, and any other request the loose one
  Together,  // what any other of its size gets: the full class
};

namespace detail {

constexpr ClassTable make_class_table(Ends ends) {
  ClassTable table{};
  unsigned size = 0;
  for (std::size_t words = 0; words < table.size(); ++words) {
    while (kSizes[size] < words * sizeof(Word)) ++size;
    const bool full = ends == Ends::Together || kSizes[size] == words * sizeof(Word);
    table[words] = static_cast<std::uint8_t>(full ? size + kFirstFullClass : size);
  }
  return table;
}

// Requests of three granules to 504 bytes get slots of these sizes in small heaps; where ends are
// kept apart, loose ones.
inline constexpr std::array<std::uint16_t, 11> kCoarseSizes = {48,  64,  80,  96,  128, 160,
                                                               192, 256, 320, 384, 512};

constexpr ClassTable make_coarse_class_table(Ends ends) {
  ClassTable table = make_class_table(ends);
  constexpr std::size_t kFirstWords = 2 * kGranule / sizeof(Word) + 1;
  unsigned coarse = 0;
  for (std::size_t words = kFirstWords; words < kCoarseSizes.back() / sizeof(Word); ++words) {
    const std::size_t used = words + (ends == Ends::Apart ? 1 : 0);
    while (kCoarseSizes[coarse] < used * sizeof(Word)) ++coarse;
    table[words] = table[kCoarseSizes[coarse] / sizeof(Word) - (ends == Ends::Apart ? 1 : 0)];
  }
  return table;
}

}  // namespace detail

inline constexpr ClassTable kClassOfWords = detail::make_class_table(Ends::Apart);
inline constexpr ClassTable kJoinedClassOfWords = detail::make_class_table(Ends::Together);

// For small heaps: fewer classes, so that fewer blocks have only a few objects
// (docs/design/alloc.md, "Small heaps"). Every class is good for every request that the tables
// above have it for, too.
inline constexpr ClassTable kCoarseClassOfWords = detail::make_coarse_class_table(Ends::Apart);
inline constexpr ClassTable kCoarseJoinedClassOfWords =
    detail::make_coarse_class_table(Ends::Together);

// Pre: bytes <= kMaxSmall.
constexpr unsigned class_for(std::size_t bytes) {
  return kClassOfWords[(bytes + sizeof(Word) - 1) / sizeof(Word)];
}

constexpr unsigned slots_in_block(unsigned size_class) {
  return static_cast<unsigned>(base::min_of(kBlockSize / slot_size_of(size_class), kMaxSlots));
}

// Bytes at an object's end that stay unused, which are its loose slot's last word: the marker takes
// an address past such a slot's end for that of the next object alone.
constexpr std::size_t unused_at_end(const Block& block) {
  return block.state == BlockState::LargeHead || is_full_class(block.size_class) ? 0 : sizeof(Word);
}

static_assert(detail::kSizes.back() == kMaxSmall);
static_assert(class_for(0) == 0 && class_for(8) == 0 && class_for(17) == 1 && class_for(24) == 1);
static_assert(class_for(9) == kFirstFullClass && class_for(16) == kFirstFullClass);
static_assert(kCoarseClassOfWords[4] == class_for(32) && kCoarseClassOfWords[5] == class_for(40));
static_assert(kCoarseClassOfWords[6] == class_for(56) && kCoarseClassOfWords[62] == class_for(504));
static_assert(kCoarseClassOfWords[63] == class_for(504) &&
              kCoarseClassOfWords[64] == class_for(512));
static_assert(kJoinedClassOfWords[5] == class_for(48) && kJoinedClassOfWords[6] == class_for(48));
static_assert(kCoarseJoinedClassOfWords[5] == class_for(48) &&
              kCoarseJoinedClassOfWords[7] == class_for(64) &&
              kCoarseJoinedClassOfWords[63] == class_for(512));

}  // namespace jd::heap

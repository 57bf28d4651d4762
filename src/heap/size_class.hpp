// Slot sizes. Steps of one granule up to 256 bytes, an eighth of a doubling up to 1 KiB, and above
// that the sizes that divide a block, so that no class wastes more than an eighth of a slot or of a
// block (but for 16-byte slots, see kBitWords).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "heap/block.hpp"

namespace jd::heap {

inline constexpr std::uint16_t kSlotSizes[] = {
    16,  32,  48,  64,  80,  96,  112,  128,  144,  160,  176,  192,  208,  224,  240,
    256, 288, 320, 352, 384, 416, 448,  480,  512,  576,  640,  704,  768,  816,  896,
    960, 1024, 1168, 1360, 1488, 1632, 1808, 2048, 2336, 2720, 3264, 4096, 5456, 8192,
};
inline constexpr unsigned kSizeClasses = sizeof kSlotSizes / sizeof kSlotSizes[0];

namespace detail {

constexpr auto make_class_table() {
  std::array<std::uint8_t, kMaxSmall / kGranule + 1> table{};
  unsigned size_class = 0;
  for (std::size_t granules = 0; granules < table.size(); ++granules) {
    while (kSlotSizes[size_class] < granules * kGranule) ++size_class;
    table[granules] = static_cast<std::uint8_t>(size_class);
  }
  return table;
}

}  // namespace detail

// Indexed by the granules of a request; a request of nothing gets the smallest slot.
inline constexpr auto kClassOfGranules = detail::make_class_table();

// Pre: bytes <= kMaxSmall.
constexpr unsigned class_for(std::size_t bytes) {
  return kClassOfGranules[(bytes + kGranule - 1) / kGranule];
}

constexpr unsigned slots_in_block(unsigned size_class) {
  return static_cast<unsigned>(
      base::min_of(kBlockSize / kSlotSizes[size_class], kMaxSlots));
}

static_assert(kSlotSizes[kSizeClasses - 1] == kMaxSmall);
static_assert(class_for(0) == 0 && class_for(16) == 0 && class_for(17) == 1);

}  // namespace jd::heap

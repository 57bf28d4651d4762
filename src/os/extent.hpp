// A part of the address space: a stack, a mapping, a library's data.
#pragma once

#include <cstddef>

namespace jd::os {

// From `low` up to `high`, which does not belong to it. Both null: there is none, or it is not
// known.
struct Extent {
  char* low = nullptr;
  char* high = nullptr;

  [[nodiscard]] constexpr bool contains(const void* p) const {
    return p >= static_cast<const void*>(low) && p < static_cast<const void*>(high);
  }
};

// Does one of them? They are in the order of their addresses, and no two overlap.
inline bool one_contains(const Extent* extents, std::size_t count, const void* p) {
  std::size_t low = 0;
  for (std::size_t high = count; low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    if (extents[middle].high <= p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && extents[low].contains(p);
}

}  // namespace jd::os

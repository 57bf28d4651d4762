// A part of the address space: a stack, a mapping, a library's data.
#pragma once

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

}  // namespace jd::os

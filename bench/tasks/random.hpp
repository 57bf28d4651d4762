// Numbers that look random and are a function of their argument alone.
#pragma once

#include <cstdint>

namespace bench {

// The finalizer of splitmix64.
inline std::uint64_t mix(std::uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

// In [0, 1).
inline double mixed_fraction(std::uint64_t x) {
  return static_cast<double>(mix(x) >> 11) * 0x1p-53;
}

}  // namespace bench

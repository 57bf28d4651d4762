// Numbers that look random, for choices that need no better: victims, delays.
#pragma once

#include <cstdint>

namespace jd::base {

// The next of a sequence that its state, which is never 0, determines. xorshift (Marsaglia 2003).
inline std::uint64_t next_random(std::uint64_t* state) {
  std::uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

}  // namespace jd::base

// Which library an address lay in, for those that the program unloads: another may be mapped where
// one was (malloc.req.leaks).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::serve {

struct Library {
  char* base;  // what places in the file are counted from
  char* low;
  char* high;
  std::uint64_t last_seen;    // the number of the look
  std::uint64_t unloaded_at;  // what unloadings() said from then on; 0 while it is loaded
  char path[1];
};

// How often libraries were found to be unloaded. Any thread may ask.
std::uint64_t unloadings();

// Looks at what is loaded now, if that has changed since the last look: before and after each
// dlclose. Takes the loader's lock. Pre: the heap's lock is not held.
void look_at_libraries();

// The library that the address lay in when unloadings() said `when`; null if that is loaded still,
// or was never seen. Pre: the heap's lock is held.
const Library* unloaded_library(const void* address, std::uint64_t when);

}  // namespace jd::serve

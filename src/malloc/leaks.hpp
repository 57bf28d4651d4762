// Leak-check mode: where each object was allocated, and which are lost (malloc.req.leaks).
#pragma once

#include <cstddef>

namespace jd::serve::leaks {

// Has the backtrace of the call whose return address is `caller` noted in the object's spare word.
void tag(void* object, std::size_t bytes, const void* caller);

// From now on backtraces can be taken. Pre: no lock is held; libc is whole.
void begin();
// Collects without reclaiming anything, and writes down into the log what is unreachable.
void report();

}  // namespace jd::serve::leaks

// What the heap holds, for mallinfo and malloc_stats, and malloc_trim (malloc.req.figures).
#pragma once

#include <cstddef>

namespace jd::serve {

struct Figures {
  std::size_t resident;  // of the heap, without what went back to the system
  std::size_t in_use;    // of that, objects, and slots that threads are about to hand out
  std::size_t idle;      // free blocks: what malloc_trim would give back without a collection
};
// As of some moment. Looks at each block.
Figures figures();

// Collects, where that is allowed, and gives all free blocks back to the system. True if some went
// there. In mode leak-check nothing is ever reclaimed, and so the report is not changed by it.
bool trim();

// A few lines on standard error.
void tell_figures();

}  // namespace jd::serve

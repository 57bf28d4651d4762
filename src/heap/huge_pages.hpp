// Asks the system for huge pages, step by step as blocks come into use, and only while they come
// quickly (docs/design/heap.md, "Huge pages").
#pragma once

#include "heap/space.hpp"
#include "os/memory.hpp"

namespace jd::heap {

// Heaps up to this size have none: the waste of at most one page is under a tenth.
inline constexpr BlockNumber kHugePagesFrom = 32 * base::kMiB >> kBlockShift;
inline constexpr BlockNumber kHugePageBlocks = os::kHugePage >> kBlockShift;

// The first block that nobody has asked for a huge page for; kNoBlock if nobody will. Under the
// heap's lock.
extern BlockNumber next_without_huge_page;

// Until then nobody asks.
void start_huge_pages();

// Pre: the blocks are about to be used, some of them for the first time: `end` is beyond that one.
void ask_for_huge_pages(BlockNumber first, BlockNumber end, bool filled);

// Blocks are about to be used together, and to their last pages or maybe not.
inline void note_use_for_huge_pages(BlockNumber first, BlockNumber end, bool filled) {
  if (__builtin_expect(end > next_without_huge_page && next_without_huge_page != kNoBlock, 0)) {
    ask_for_huge_pages(first, end, filled);
  }
}

}  // namespace jd::heap

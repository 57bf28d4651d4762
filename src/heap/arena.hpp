// Memory for the collector's own structures (thread caches, tables): zeroed, never scanned, apart
// from the heap. Pre of every function: the heap's lock is held.
#pragma once

#include <cstddef>

namespace jd::heap {

// Zeroed memory for a small structure, aligned to a cache line, for the life of the process; users
// keep their own lists of what they no longer need. Null when the system has no more.
void* arena_take(std::size_t bytes);

// Zeroed whole pages that can be given back, for tables that grow; null likewise.
void* table_take(std::size_t bytes);
void table_give(void* p, std::size_t bytes);

}  // namespace jd::heap

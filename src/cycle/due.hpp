// When the next collection is due: by bdwgc's rule, which its clients are tuned to, as soon as so
// much was allocated since the last one as the free-space divisor allows for the words that a
// collection has to look at; but not before a least (docs/design/cycle.md, "Pacing").
//
// Pre of each function: the heap's lock is held.
#pragma once

#include <cstddef>

#include "alloc/collecting.hpp"

namespace jd::cycle {

bool collection_is_due();
// When so many bytes were allocated since the last one. How many threads take part is as of the
// last alloc::totals().
std::size_t due_after();
std::size_t due_after_by(const alloc::Shares& shares);
// What of the allocated bytes counts against that.
std::size_t charged_bytes();

// A collection in steps is due, which is to begin early.
bool steps_are_due();
// Is so much allocated that free blocks are not to be used up before the next collection?
bool is_far_past_due();

bool several_threads_allocate(const alloc::Shares& shares);

// A collection is over: says when the next one is due.
void plan_due(std::size_t live_bytes, std::size_t live_atomic_bytes, std::size_t root_bytes);

}  // namespace jd::cycle

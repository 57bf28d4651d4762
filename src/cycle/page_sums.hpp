// The verifier's own look at watched pages (cycle.req.partial): a sum of what each held when it was
// watched, which a page that passes for unwritten must still have. Under the heap's lock, in a
// stopped world.
#pragma once

#include "base/bits.hpp"
#include "os/write_watch.hpp"

namespace jd::cycle {

// Whole blocks, which are watched from now on. Without memory for their sums nothing is known of
// them.
void sum_watched(char* low, char* high);
// Nothing is watched any more.
void forget_sums();
// Notes which pages were written since then, and ends the process where one that was not has
// another sum. False if the watch has ended.
bool verify_unwritten(const os::WatchedPages& pages);
// Did the page that this address of the heap lies in pass for unwritten when that was last noted?
// True also of one that there is no memory to note anything of.
[[nodiscard]] bool is_unwritten(base::Word address);

}  // namespace jd::cycle

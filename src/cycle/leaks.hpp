// Leak finding (GC_find_leak): for programs that free by hand, and want to know what they forgot.
#pragma once

namespace jd::cycle {

// Says which objects nothing reaches that were not freed, the first of them one by one. They are
// reclaimed afterwards, so each is told once. Pre: the world is stopped; everything reachable is
// marked, and nothing swept yet.
void report_leaks();

}  // namespace jd::cycle

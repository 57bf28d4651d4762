// Leak finding (GC_find_leak): for programs that free by hand, and want to know what they forgot.
#pragma once

#include <atomic>

namespace jd::cycle {

// Says which objects nothing reaches that were not freed, the first of them one by one. They are
// reclaimed afterwards, so each is told once. Pre: the world is stopped; everything reachable is
// marked, and nothing swept yet.
void report_leaks();
// Whether any were found, or objects whose guards were overwritten. Set in a stopped world, read
// anywhere (relaxed: after the collection that set it).
extern std::atomic<bool> faults_reported;

}  // namespace jd::cycle

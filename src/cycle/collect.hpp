// One collection, step by step.
#pragma once

namespace jd::cycle {

// Collects. Pre: the heap's lock is held, and no thread's hole of the caller's is half changed.
// Finalizers become due but do not run. False if stop_function (may be null) asked to abandon it:
// it is asked before the world stops, when it stands, when the roots were looked at and when
// everything is marked.
bool collect_locked(int (*stop_function)() = nullptr);

// As bdwgc's unmapping collection: afterwards no free page is kept.
void return_free_memory();

}  // namespace jd::cycle

// A task that has used up its stack says so before it dies.
//
// Requirement (docs/design/task.md): task.req.overflow.
#pragma once

#include "task/worker.hpp"

namespace jd::task {

// Once in a process, before the first worker.
void watch_for_overflows();
// Memory for the worker's alternate signal stack, and its use by the calling thread.
void prepare_for_overflow(Worker* worker);
void begin_to_watch(Worker* worker);
void end_watching();

}  // namespace jd::task

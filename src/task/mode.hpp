// Which modes this process can have.
//
// Requirement (docs/design/task.md): task.req.fall-back.
#pragma once

#include "jackdaw/task.h"

namespace jd::task {

bool mode_is_possible(jd_task_mode mode);

// Is the run-time of AddressSanitizer, ThreadSanitizer or MemorySanitizer loaded?
bool is_sanitized();
// Tells of one that can't make anything of this build of the library.
void warn_of_blind_tools();

}  // namespace jd::task

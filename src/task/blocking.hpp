// Blocking sections: another worker has the place of one that waits for long.
#pragma once

#include "task/worker.hpp"

namespace jd::task {

void call_blocking(void (*function)(void*), void* argument);
// Where there are workers too many, since others came back from blocking, the calling one waits
// until it is needed. False if the runtime stops.
bool make_room();

}  // namespace jd::task

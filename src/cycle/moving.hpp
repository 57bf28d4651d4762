// A collection's part that moves typed objects (copy/evacuate.hpp), with the roots that it must
// know.
#pragma once

#include <cstddef>

namespace jd::cycle {

// The next collection moves all that it may. Pre: the heap's lock is held.
void wish_to_compact();

// After marking, before the sweep, in a stopped world. False if nothing is moved; otherwise the
// sweep must be followed by copy::end_moving.
bool move_objects(char* stack_top);

// Instead of marking, where the policy is MCC's: copies and marks everything. False if there was no
// memory to do so: then nothing was done. After the sweep: copy::mcc::end.
bool copy_everything(char* stack_top, std::size_t* root_bytes);

}  // namespace jd::cycle

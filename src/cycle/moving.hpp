// A collection's part that moves typed objects (copy/evacuate.hpp), with the roots that it must
// know.
#pragma once

namespace jd::cycle {

// Pre of both: the heap's lock is held. The next collection moves all that it may.
void wish_to_compact();

// After marking, before the sweep, in a stopped world. False if nothing is moved; else the sweep
// must be followed by copy::end_moving.
bool move_objects(char* stack_top);

}  // namespace jd::cycle

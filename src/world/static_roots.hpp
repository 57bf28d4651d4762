// What is loaded, as of the last update_static_roots: what a thread's own roots are found by.
// roots.hpp has what the rooms above need. Pre of every function: the heap's lock is held.
#pragma once

#include <cstdint>

#include "heap/growable.hpp"
#include "os/modules.hpp"

namespace jd::world {

// Do libraries' data not count (GC_no_dls)?
bool ignoring_libraries();

// The thread-local storage of what is loaded.
const heap::Growable<os::ThreadLocalModule>& thread_local_modules();
// Another number after each change of what is loaded; never 0.
std::uint64_t loaded_generation();
// What is known is not what is loaded: parts of it may be unmapped.
bool loaded_is_doubtful();

// Is the address in static data or a range that the program named, and not excluded?
bool is_static_root(const void* p);

}  // namespace jd::world

// How much memory this process may have.
#pragma once

#include <cstddef>

#include "os/groups.hpp"

namespace jd::os {

// Bytes of physical memory that this process may use: the machine's, its cgroup's or that of a
// cgroup above, whichever is least. Never 0.
std::size_t memory_limit(const GroupFiles& files = {});
// The same, after the first time. False if it can't be told any more, as where the process has
// changed its root, or has no file to open left.
[[nodiscard]] bool memory_limit_now(std::size_t* limit, const GroupFiles& files = {});
// Bytes of physical memory that the machine has.
std::size_t machine_memory();
// Bytes of address space that this process may still map (RLIMIT_AS less what is in use), or
// SIZE_MAX when there is no limit.
std::size_t address_space_left(const char* own_memory = "/proc/self/statm");

// Can pages be in swap now? True if that can't be told.
bool has_swap();

}  // namespace jd::os

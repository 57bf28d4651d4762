// The address ranges that this library has reserved or mapped for itself, and not released.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/extent.hpp"

namespace jd::os {

// For memory.cpp. Any thread. False if there was no memory to write it down.
[[nodiscard]] bool add_own_range(Extent range);
void remove_own_range(Extent range);

// Around a fork, so that the child finds the table whole and free. Pre of the first: the heap's
// lock is held, and let go of last.
void hold_own_ranges();
void let_go_of_own_ranges();
void reset_own_ranges_in_child();

// Copies at most `capacity` of them, in no order; returns how many there are.
std::size_t copy_own_ranges(Extent* to, std::size_t capacity);
// Changes with every addition and removal.
std::uint64_t own_ranges_version();

// The writable data of the object that this library was linked into.
Extent own_data();

}  // namespace jd::os

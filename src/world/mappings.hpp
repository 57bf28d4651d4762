// Roots of a program that knows nothing of a collector: everything that it has mapped
// (world.req.mappings). In place of the loaded libraries' data and thread-local storage, which are
// mapped, too.
#pragma once

#include "world/roots.hpp"

namespace jd::world {

// Roots are read off the process's mappings from now on. Once, before the first collection.
void use_mappings();
bool using_mappings();

// Pre of these: the world is stopped, the heap's lock is held.
// Looks at what is mapped now. Null, or why that is not known, in words.
[[nodiscard]] const char* read_mappings();
inline constexpr const char* kNoList = "/proc/self/maps can't be read";
// What was read, less our own memory and the stacks of threads that are on their own stack: those
// are visit_thread_stacks' to visit, from the stack pointer on.
void visit_mappings(RootVisitor* visitor, char* own_stack_top);
void visit_thread_stacks(RootVisitor* visitor, char* own_stack_top);

}  // namespace jd::world

// Code addresses and the names that the dynamic linker knows.
#pragma once

#include "base/text.hpp"

namespace jd::os {

// The definition of a function that a library loaded after this one has. Null if there is none.
// Takes the loader's lock.
void* next_function(const char* name);
// The one that a program's call of that name comes to.
void* global_function(const char* name);

// Is the function, which may be null, one of libc's?
bool is_libcs(const void* function);

// Has the unwinder loaded, which allocates. Before take_backtrace. Returns a function of the
// unwinder's; null if none is to be found.
const void* prepare_backtraces();
// Return addresses of the callers, the innermost first; returns how many there are.
int take_backtrace(void** addresses, int most);

// Adds "file+0x12 (function+0x3)" for a place in code, as far as it is known. Takes the loader's
// lock.
void describe_code(const void* address, base::Text* text);

}  // namespace jd::os

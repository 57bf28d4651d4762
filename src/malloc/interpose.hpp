// Functions of libc that the library stands before, so that the collector knows of every thread and
// can stop it, and sees what else only the kernel would be told.
#pragma once

namespace jd::serve {

// Looks up libc's own definitions, before the program's own constructors.
void find_libc_functions();

}  // namespace jd::serve

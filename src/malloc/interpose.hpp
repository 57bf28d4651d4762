// Functions of libc that the library stands before, so that the collector knows of every thread and
// can stop it, and sees what else only the kernel would be told.
#pragma once

namespace jd::serve {

// Looks up libc's own definitions. Before the program's first thread.
void find_libc_functions();

}  // namespace jd::serve

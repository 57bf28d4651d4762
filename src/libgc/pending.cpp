// Exports a function for each name in pending.def: it says that it is not written yet, and aborts.
//
// Real prototypes are of no use here, and would get in the way: a caller's arguments are ignored
// and nothing is returned. So the headers of the ABI are not included.
#include "os/log.hpp"

// tests/abi/ compiles this file with a list of its own, to test it when the real list is empty.
#ifndef JD_PENDING_LIST
#define JD_PENDING_LIST "libgc/pending.def"
#endif

#define JD_PENDING(name)                                                     \
  extern "C" [[noreturn, gnu::visibility("default")]] void name() {          \
    jd::os::fatal(#name, " is not supported yet (see docs/guide/libgc.md)"); \
  }
#include JD_PENDING_LIST

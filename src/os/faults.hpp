// Memory faults (SIGSEGV): a look at each, before whoever handles them otherwise has it.
#pragma once

#include <cstddef>

namespace jd::os {

struct Fault {
  const char* address;      // that the program wanted; null if the kernel tells none
  const char* stack_top;    // the stack pointer then; null on machines where it can't be told
  bool address_is_missing;  // as where the kernel found no room for a signal's frame
};

// Has `look`, which must be async-signal-safe, see every fault from here on: on the thread's
// alternate stack if it has one. What the program had set up for faults before that comes after it,
// with the same mask and flags, but on the alternate stack in any case; if it had nothing, the
// default action, at the instruction that faulted. A handler that the program installs later
// replaces all of this. Once in a process; false if the system refuses.
bool watch_faults(void (*look)(const Fault& fault));

// Gives the calling thread an alternate signal stack, unless it has one; null takes it away again.
void use_alternate_stack(void* memory, std::size_t size);

}  // namespace jd::os

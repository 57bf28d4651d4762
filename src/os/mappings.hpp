// What is mapped in this process, by /proc: for programs whose roots may be anywhere
// (world.req.mappings).
#pragma once

namespace jd::os {

// A mapping that can be read and may hold what the program wrote.
struct Mapping {
  char* low;
  char* high;
  bool main_stack;      // the stack that the kernel made
  bool read_only_file;  // only what was written to, if that can be told
  bool made_code;       // executable, and of no file: the process has made the code itself
  bool shared_memory;   // a shared mapping of a file that is only in memory
  bool swapped;         // pages of it may be in swap: only visit_mappings_and_swap knows of none
};

class MappingVisitor {
 public:
  // False ends the visit.
  virtual bool mapping(const Mapping& mapping) = 0;

 protected:
  ~MappingVisitor() = default;
};

// Visits, in the order of their addresses, every private mapping that can be written, and those
// that can only be read unless they are a file's code: a program may have written such memory
// before it protected it, as the loader does. So also shared memory, which the program may have
// mapped in several places; but no shared mappings of other files, and no devices. No lock is
// taken, nothing is allocated, and little stack is used; for a stopped world. One visit at a time.
// False if the list could not be read to its end, or the visitor ended it.
[[nodiscard]] bool visit_mappings(MappingVisitor* visitor);
// The same by the list that tells what is in swap, for which the kernel looks at every page that
// the process has.
[[nodiscard]] bool visit_mappings_and_swap(MappingVisitor* visitor,
                                           const char* smaps = "/proc/thread-self/smaps");
// Can the list be opened now?
[[nodiscard]] bool mappings_are_known();

}  // namespace jd::os

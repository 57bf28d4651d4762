// What is mapped in this process, by /proc: for programs whose roots may be anywhere
// (world.req.mappings).
#pragma once

#include "os/files.hpp"

namespace jd::os {

// A private mapping that can be read and may hold what the program wrote.
struct Mapping {
  char* low;
  char* high;
  bool main_stack;      // the stack that the kernel made
  bool read_only_file;  // only what was written to, if that can be told
  bool made_code;       // executable, and of no file: the process has made the code itself
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
// that can only be read unless they are code: a program may have written such memory before it
// protected it, as the loader does. Shared mappings and devices are left out. No lock is taken,
// nothing is allocated, and little stack is used; for a stopped world. One visit at a time. False
// if the list could not be read to its end, or the visitor ended it.
[[nodiscard]] bool visit_mappings(MappingVisitor* visitor);
// The same by the list that tells what is in swap, for which the kernel looks at every page that
// the process has.
[[nodiscard]] bool visit_mappings_and_swap(MappingVisitor* visitor,
                                           const char* smaps = "/proc/thread-self/smaps");
// Can the list be opened now?
[[nodiscard]] bool mappings_are_known();

class PageVisitor {
 public:
  virtual void pages(char* low, char* high) = 0;

 protected:
  ~PageVisitor() = default;
};

// Whatever can be read of a range: each page is tried, which waits for whoever serves its faults.
void visit_readable(char* low, char* high, PageVisitor* visitor);

// The kernel's tables of this process's pages, for whoever asks often: they stay open from one
// question to the next. Zeroes: closed. For static memory: nothing closes them by themselves. A
// child of a fork, which may come at any time, lets go of its parent's. One thread at a time.
class PageMap {
 public:
  // -1 if the system refuses. Keeps errno.
  int opened();
  // Keeps errno.
  void close();
  // Do they tell of this process's pages, and not of its parent's?
  [[nodiscard]] bool is_own() const;

 private:
  int process_;  // that opened them
  int file_plus_one_;
};

// Which pages of a range this process has written to, by the kernel's own tables. Pages that were
// never touched, and those of a file's that are as they are in the file, hold none of the process's
// pointers. At the end of its lifetime errno is what it was at the beginning.
class WrittenPages {
 public:
  // The kernel's answers go into static memory: one visit at a time, by the collector.
  WrittenPages();
  // They go there, aligned for words; the more there is, the fewer questions.
  WrittenPages(void* answers, std::size_t size);
  WrittenPages(PageMap* map, void* answers, std::size_t size);
  // Visits such parts of [low, high); where the kernel does not tell, whatever can be read of it.
  void visit(char* low, char* high, PageVisitor* visitor) const;
  // For where the kernel does not tell, and the caller looks after what is in swap: visits what can
  // be read and is in memory. No other page is touched.
  void visit_in_memory(char* low, char* high, PageVisitor* visitor) const;
  // Does the kernel tell?
  [[nodiscard]] bool known() const { return pagemap_.is_open(); }
  // Whether ranges may be scanned, or each page is asked for, as on older kernels. For tests.
  static void allow_scans(bool allowed);

 private:
  class Found;
  bool visit_scanned(char* low, char* high, Found* found) const;
  char* visit_each(char* low, char* high, Found* found) const;
  char* visit_present(char* low, char* high, Found* found) const;

  KeptErrno kept_;  // the system may refuse
  RandomReader pagemap_;
  void* answers_;
  std::size_t size_;
};

}  // namespace jd::os

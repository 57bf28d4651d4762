// Which pages of a range this process has written to, or has in its tables.
#pragma once

#include <cstddef>

#include "os/files.hpp"
#include "os/kept_errno.hpp"

namespace jd::os {

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
  // Visits the parts that this process has in its tables, whosever they are: of memory that is
  // shared. Nothing where the kernel does not tell.
  void visit_own(char* low, char* high, PageVisitor* visitor) const;
  // For where the kernel does not tell, and the caller looks after what is in swap: visits what can
  // be read and is in memory. No other page is touched.
  void visit_in_memory(char* low, char* high, PageVisitor* visitor) const;
  // Does the kernel tell?
  [[nodiscard]] bool known() const { return pagemap_.is_open(); }
  // Whether ranges may be scanned, or each page is asked for, as on older kernels. For tests.
  static void allow_scans(bool allowed);

 private:
  class Found;
  // What is looked for: written pages, or all in the tables, be it that the kernel is just moving
  // them. (Shared memory in swap is in none.)
  enum class Wanted : unsigned char { Written, Own };
  bool visit_scanned(char* low, char* high, Wanted wanted, Found* found) const;
  char* visit_each(char* low, char* high, Wanted wanted, Found* found) const;
  char* visit_present(char* low, char* high, Found* found) const;

  KeptErrno kept_;  // the system may refuse
  RandomReader pagemap_;
  void* answers_;
  std::size_t size_;
};

}  // namespace jd::os

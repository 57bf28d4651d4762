// Which pages a process has written to, for a collector that looks at old objects only where they
// changed.
//
// The kernel write-protects the pages that are watched, and lifts that itself at the first write
// (userfaultfd's asynchronous write-protection and PAGEMAP_SCAN, both of Linux 6.7): no signal, no
// system call that fails because it writes to such a page, nothing on a thread's stack. (bdwgc
// protects pages by mprotect and a signal handler where the kernel has no soft-dirty bits.)
#pragma once

#include <cstddef>

#include "os/extent.hpp"
#include "os/files.hpp"
#include "os/written_pages.hpp"

namespace jd::os {

// One thread at a time. It ends where whoever closes all files closes its own, and is not there in
// the child of a fork: then nothing is known of any page.
class WriteWatch {
 public:
  constexpr WriteWatch() = default;

  // Prepares to watch a range of anonymous private memory; no page is watched yet. Null, or why the
  // system refuses, for people.
  [[nodiscard]] const char* start(char* low, std::size_t size);
  // Started, by this process?
  [[nodiscard]] bool is_on() const;
  void stop();

 private:
  [[nodiscard]] bool lift_all() const;

  int file_ = -1;
  int process_ = 0;
  Extent range_ = {};  // that is registered
};

// The pages of a watch that is on; for a short while, since it keeps a file open, and errno. Pre,
// of both functions: whole pages of what is watched.
class WatchedPages {
 public:
  WatchedPages();

  // From now on it will be known of those pages of [low, high) that exist whether they were
  // written. False if the system refuses, or the watch has ended.
  [[nodiscard]] bool watch(char* low, char* high) const;
  // Visits those pages of [low, high) that exist and were written since they were last watched, or
  // never were. False, maybe in the midst of it, if the watch has ended.
  [[nodiscard]] bool visit_written(char* low, char* high, PageVisitor* visitor) const;

 private:
  KeptErrno kept_;  // the system may refuse
  RandomReader tables_;
};

}  // namespace jd::os

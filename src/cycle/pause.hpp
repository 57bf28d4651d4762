// Stopping the world for a collection, or for a step of one, and telling the program's callbacks of
// it. Pre, of each function: the heap's lock is held.
#pragma once

#include <cstdint>

#include "gc/gc.h"
#include "heap/space.hpp"

namespace jd::cycle {

void tell(GC_EventType event);
void tell_threads(GC_EventType event);

// False in a child of vfork(): it is its parent's turn, once the child has executed another
// program. (For a program that is linked with libgc that is its own matter, as with bdwgc.)
bool is_in_own_process();

// What is looked at before any callback, since programs take locks in theirs, which only a whole
// collection lets go of: does the system say where the roots are, and is it this process's turn?
// False: there is no collection now.
bool may_look_for_roots();

// For its lifetime, the time counts as that of collections.
class MeasuredCollecting {
 public:
  MeasuredCollecting();
  ~MeasuredCollecting();
  MeasuredCollecting(const MeasuredCollecting&) = delete;
  MeasuredCollecting& operator=(const MeasuredCollecting&) = delete;

 private:
  std::uint64_t began_;
};

// The world stands from begin to end, which are told of as bdwgc does.
class Pause {
 public:
  // KnownLibraries: at a moment at which those that are known are the loaded ones.
  enum class At { AnyTime, KnownLibraries };

  void begin(At at);
  // The world stands. (It does not if some thread can't be stopped: world::try_to_stop_world.)
  [[nodiscard]] bool stands() const { return stands_; }
  // It does, and the program allows a collection (Settings::may_collect).
  [[nodiscard]] bool is_wanted() const { return wanted_; }
  // Where they are not, nothing may be reclaimed. Of KnownLibraries.
  [[nodiscard]] bool roots_are_known() const { return why_unknown_ == nullptr; }
  // The world runs again, and it was noted how long it stood.
  void end();
  // Warns if it was for want of roots that nothing was reclaimed.
  void complain() const;

  // When it began, and when the world stood.
  [[nodiscard]] std::uint64_t began() const { return began_; }
  [[nodiscard]] std::uint64_t stood() const { return stopped_; }

 private:
  bool stands_ = false;
  bool wanted_ = false;
  const char* why_unknown_ = nullptr;
  std::uint64_t began_ = 0;
  std::uint64_t stopped_ = 0;
  heap::BlockNumber committed_ = 0;
};

}  // namespace jd::cycle

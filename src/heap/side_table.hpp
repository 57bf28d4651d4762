// A table beside the heap's records: an entry for each block, or for each 2^kShift neighbours, in
// address space for as many as there can ever be, which is committed as the heap grows. An entry is
// zero at first. Under the heap's lock, or in a stopped world.
#pragma once

#include <cstddef>

#include "heap/space.hpp"
#include "os/memory.hpp"

namespace jd::heap {

template <class T, unsigned kShift = 0>
class SideTable {
 public:
  // Has it cover all committed blocks. False if the system refuses; then it covers what it did.
  [[nodiscard]] bool cover() {
    if (covered_ >= space.committed) return true;
    if (entries_ == nullptr) {
      entries_ = static_cast<T*>(os::reserve(bytes_for(space.reserved), os::page_size()));
      if (entries_ == nullptr) return false;
    }
    const std::size_t have = bytes_for(covered_);
    const std::size_t wanted = bytes_for(space.committed);
    if (wanted > have && !os::commit(reinterpret_cast<char*>(entries_) + have, wanted - have)) {
      return false;
    }
    covered_ = space.committed;
    return true;
  }
  // Blocks below this number have entries.
  [[nodiscard]] BlockNumber covered() const { return covered_; }

  T& operator[](BlockNumber number) { return entries_[number >> kShift]; }
  // By number; up to the page's end where those of the covered blocks end.
  [[nodiscard]] T* entries() const { return entries_; }

  // Gives the pages back to the system until they are needed again: all entries are zero.
  void discard() {
    if (covered_ != 0) os::discard(entries_, bytes_for(covered_));
  }

 private:
  static std::size_t bytes_for(BlockNumber blocks) {
    const std::size_t count = base::div_up(std::size_t{blocks}, std::size_t{1} << kShift);
    return base::align_up(count * sizeof(T), os::page_size());
  }

  T* entries_ = nullptr;
  BlockNumber covered_ = 0;
};

}  // namespace jd::heap

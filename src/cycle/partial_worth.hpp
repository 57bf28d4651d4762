// Whether partial collections pay. Where a program writes all over its heap, each page costs a
// fault after every collection, and a partial one looks at all of them again: then full ones alone
// are cheaper.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "mark/marker.hpp"

namespace jd::cycle {

class PartialWorth {
 public:
  // What a program's first write to a watched page takes, in a virtual machine: 0.3 to 1.1 us were
  // measured.
  static constexpr std::uint64_t kFaultNs = 700;
  // Where fewer pages have changed there is little to lose, 4 MiB of them. A guess.
  static constexpr std::size_t kLeastPages = 1024;
  // After a partial collection that did not pay so many full ones come with nothing watched: 1, and
  // twice as many and one more each time. A guess.
  static constexpr unsigned kMostWaiting = 31;

  // A collection has marked for so many ns: a full one; or a partial one, which found this to have
  // changed.
  void note_full(std::uint64_t ns) {
    full_ns_ = ns;
    if (waiting_ != 0) --waiting_;
  }
  void note_partial(std::uint64_t ns, const mark::Changed& changed) {
    const std::uint64_t took = ns + changed.watched * kFaultNs;
    if (changed.pages < kLeastPages || took < full_ns_ / 4 * 3) {
      waits_ = 0;
      return;
    }
    waits_ = base::min_of(2 * waits_ + 1, kMostWaiting);
    waiting_ = waits_;
  }
  // Is the next collection to be a partial one, and what may change until then to be watched?
  [[nodiscard]] bool pays() const { return waiting_ == 0; }

 private:
  std::uint64_t full_ns_ = 0;
  unsigned waits_ = 0;    // after the last one that did not pay
  unsigned waiting_ = 0;  // of these are still to come
};

}  // namespace jd::cycle

// Whether partial collections pay. Where a program writes all over its heap, each page costs a
// fault after every collection, and a partial one looks at all of them again: then full ones alone
// are cheaper.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::cycle {

class PartialWorth {
 public:
  // What the kernel takes to lift a page's protection: 0.3 us were measured in a virtual machine.
  static constexpr std::uint64_t kFaultNs = 300;
  // Where fewer pages were written there is little to lose, 4 MiB of them. A guess.
  static constexpr std::size_t kLeastPages = 1024;
  // After a partial collection that did not pay so many full ones come with nothing watched: 1, and
  // twice as many and one more each time. A guess.
  static constexpr unsigned kMostWaiting = 31;

  // A collection has marked for so many ns; so many objects are alive now. A full one:
  void note_full(std::uint64_t ns, std::size_t objects) {
    full_ns_ = ns;
    full_objects_ = objects;
    if (waiting_ != 0) --waiting_;
  }
  // A partial one, which found so many pages written.
  void note_partial(std::uint64_t ns, std::size_t written_pages, std::size_t objects) {
    const std::uint64_t took = ns + written_pages * kFaultNs;
    if (written_pages < kLeastPages || took < of_full(objects) / 4 * 3) {
      waits_ = 0;
      return;
    }
    waits_ = base::min_of(2 * waits_ + 1, kMostWaiting);
    waiting_ = waits_;
  }
  // Is the next collection to be a partial one, and what may change until then to be watched?
  [[nodiscard]] bool pays() const { return waiting_ == 0; }

 private:
  // What the last full one would take for so many objects.
  [[nodiscard]] std::uint64_t of_full(std::size_t objects) const {
    // In 64ths, so that no product overflows.
    return full_ns_ * 64 / base::max_of(full_objects_, std::size_t{1}) * objects / 64;
  }

  std::uint64_t full_ns_ = 0;
  std::size_t full_objects_ = 0;
  unsigned waits_ = 0;    // after the last one that did not pay
  unsigned waiting_ = 0;  // of these are still to come
};

}  // namespace jd::cycle

// When a table of finalizers or links is a reason to collect (docs/design/cycle.md, "Finalizers and
// links").
//
// Pre of each function: the heap's lock is held.
#pragma once

#include <cstddef>

#include "base/bits.hpp"

namespace jd::cycle {

// Collects because a table of finalizers or links has grown, if the price is not out of proportion.
void collect_for_grown_table();

// When a table of finalizers or links has grown so much that it is a reason to collect: by half
// since it last was one, but not below 4096 entries. (bdwgc: when it is full, also not below
// 4096.) Variants: docs/design/cycle-measured.md, "Growth by half, and a divisor of 3".
class TableLimit {
 public:
  static constexpr std::size_t kLeast = 4096;

  // Pre: another entry is about to be added to a table of so many.
  template <class Table>
  void before_adding_to(const Table& table) {
    if (table.count() < limit_) return;
    collect_for_grown_table();
    limit_ = base::max_of(table.count() + table.count() / 2, kLeast);
  }

 private:
  std::size_t limit_ = kLeast;
};

}  // namespace jd::cycle

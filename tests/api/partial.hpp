// What tests of partial collections share.
#pragma once

#include <cstring>

#include "gc_test.hpp"

namespace jd::test::partial {

inline bool enable() {
  GC_enable_incremental();
  return GC_is_incremental_mode() != 0;
}

#define JD_NEEDS_MODE()                                                                           \
  do {                                                                                            \
    JD_OURS_ONLY("its partial collections are steps of a collection");                            \
    if (!enable()) GTEST_SKIP() << "this system has no partial collections (Linux 6.7 has them)"; \
  } while (0)

// Whole, also where it is done in steps.
inline void collect_partially() {
  clear_stack();
  GC_start_incremental_collection();
  while (GC_collect_a_little() != 0) clear_stack();
}

inline constexpr std::size_t kCount = 1000;

// Has the places of dead objects of 48 bytes.
inline void take_free_places() {
  far_away([] {
    for (std::size_t k = 0; k < 3 * kCount; ++k) std::memset(GC_malloc_atomic(48), 0x55, 48);
  });
}

// Objects that the last collection marked, in a table that it marked as well.
struct Old {
  Root<void*> table{static_cast<void**>(GC_malloc(kCount * sizeof(void*)))};
  Watch watch;

  explicit Old(std::size_t size = 32) {
    far_away([&] {
      for (std::size_t i = 0; i < kCount; ++i) {
        table.get()[i] = GC_malloc(size);
        watch.add(table.get()[i]);
      }
    });
    collect();
  }
  void drop() { std::memset(table.get(), 0, kCount * sizeof(void*)); }
};

// Lists of one length, in a table.
class SameLists {
 public:
  SameLists(std::size_t lists, std::size_t length) : lists_(lists), length_(length) {
    for (std::size_t i = 0; i < lists; ++i) table_.get()[i] = make_list(length);
  }
  [[nodiscard]] bool are_intact() const {
    for (std::size_t i = 0; i < lists_; ++i) {
      if (list_length(table_.get()[i]) != length_) return false;
    }
    return true;
  }

 private:
  std::size_t lists_;
  std::size_t length_;
  Root<void*> table_{static_cast<void**>(GC_malloc(lists_ * sizeof(void*)))};
};

}  // namespace jd::test::partial

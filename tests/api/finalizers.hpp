// What tests of finalizers count with.
#pragma once

#include <atomic>
#include <cstddef>

#include "gc_test.hpp"

namespace jd::test {

inline std::atomic<std::size_t> finalized{0};

inline void count_finalized(void*, void*) { finalized.fetch_add(1); }

// Collects until so many finalizers have run, in vain a few times at most.
inline bool finalizes(std::size_t count) {
  for (int i = 0; i < 20 && finalized.load() < count; ++i) collect_all();
  return finalized.load() >= count;
}

inline void make_finalizable(std::size_t count) {
  far_away([&] {
    for (std::size_t i = 0; i < count; ++i) {
      GC_register_finalizer_no_order(GC_malloc(40), count_finalized, nullptr, nullptr, nullptr);
    }
  });
}

}  // namespace jd::test

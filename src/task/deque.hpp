// The conventional deque of tasks (Chase & Lev 2005, as Lê and others wrote it down for weak memory
// models in 2013): its owner pushes and pops at the bottom, thieves take from the top.
//
// Differs from them in that it does not grow: who finds it full has another place for the task, or
// runs it. And where they have fences there are sequentially consistent operations, which
// ThreadSanitizer understands.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "jackdaw/task.h"

namespace jd::task {

class Deque {
 public:
  // Deeper than recursion that halves its work ever gets, and enough for thieves where one loop
  // forks all tasks. What walks through a graph has more.
  static constexpr std::size_t kCapacity = 8192;

  // By the owner. False if it is full.
  [[nodiscard]] bool push(jd_task* task) {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
    // Acquire: pairs with the thief's exchange in steal(), so that the slot it read is free.
    const std::int64_t top = top_.load(std::memory_order_acquire);
    if (bottom - top >= static_cast<std::int64_t>(kCapacity)) return false;
    slot(bottom).store(task, std::memory_order_relaxed);
    // Release: a thief that sees the new bottom sees the task.
    bottom_.store(bottom + 1, std::memory_order_release);
    return true;
  }

  // By the owner: the newest task, or null.
  jd_task* pop() {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed) - 1;
    // The fence of the protocol: this store comes before the load of top_, as in steal() the load
    // of top_ before that of bottom_; so the two do not both take the last task unseen.
    bottom_.exchange(bottom, std::memory_order_seq_cst);
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    jd_task* task = nullptr;
    if (top <= bottom) {
      task = slot(bottom).load(std::memory_order_relaxed);
      if (top != bottom) return task;
      // The last one: whoever moves top_ has it.
      if (!top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst)) task = nullptr;
    }
    // Release: as in push(), for a thief that reads this value and an old top_.
    bottom_.store(bottom + 1, std::memory_order_release);
    return task;
  }

  // By anybody: the oldest task; null if there is none, or another thread was faster.
  jd_task* steal() {
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    const std::int64_t bottom = bottom_.load(std::memory_order_seq_cst);
    if (top >= bottom) return nullptr;
    // May be overwritten by now; then top_ has moved, and the exchange fails.
    jd_task* task = slot(top).load(std::memory_order_relaxed);
    if (!top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst)) return nullptr;
    return task;
  }

  // A glance from outside.
  bool looks_empty() const {
    return top_.load(std::memory_order_relaxed) >= bottom_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic_ref<jd_task*> slot(std::int64_t index) {
    return std::atomic_ref(slots_[static_cast<std::size_t>(index) % kCapacity]);
  }

  // Moved by thieves, and by the owner when it takes the last task.
  alignas(base::kLine) std::atomic<std::int64_t> top_{0};
  // Moved by the owner.
  alignas(base::kLine) std::atomic<std::int64_t> bottom_{0};
  // Not initialised: none is read before it was written, and most are never touched.
  alignas(base::kLine) jd_task* slots_[kCapacity];
};

}  // namespace jd::task

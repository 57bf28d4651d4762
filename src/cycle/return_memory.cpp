#include "cycle/return_memory.hpp"

#include <atomic>

#include "copy/roles.hpp"
#include "cycle/incremental.hpp"
#include "cycle/measured.hpp"
#include "heap/kept_marks.hpp"
#include "heap/mixed.hpp"
#include "heap/resident.hpp"
#include "heap/snapshot.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"
#include "os/lock.hpp"

namespace jd::cycle {
namespace {

// Free blocks of this age are to be returned. Set under the lock; taken by whoever returns them, as
// soon as that is free (relaxed: the blocks are looked at under the lock).
constexpr unsigned kNothingToReturn = ~0u;
std::atomic<unsigned> age_to_return{kNothingToReturn};

}  // namespace

void return_free_memory_later(unsigned least_age) {
  // Whoever takes what is there at this moment returns the blocks when we have let go of the lock.
  if (least_age >= age_to_return.load(std::memory_order_relaxed)) return;
  age_to_return.store(least_age, std::memory_order_relaxed);
}

bool memory_waits_to_be_returned() {
  return age_to_return.load(std::memory_order_relaxed) != kNothingToReturn;
}

void return_free_memory() {
  // About half a millisecond of the system's work, for which others wait.
  constexpr std::size_t kStep = 8 * base::kMiB;
  const unsigned least_age = age_to_return.exchange(kNothingToReturn, std::memory_order_relaxed);
  if (least_age == kNothingToReturn) return;
  std::size_t returned = kStep;
  heap::DiscardPosition position;
  while (returned >= kStep) {
    const os::LockGuard guard(heap::heap_lock);
    const std::uint64_t begin = os::now_ns();
    returned = heap::discard_idle(least_age, kStep, &position);
    measured.collecting_total += os::now_ns() - begin;
  }
}

void return_table_memory() {
  // What is queued is on one of them.
  incremental::abandon();
  heap::discard_snapshot();
  heap::discard_kept_marks();
  mark::marker.discard_tables();
  mark::team.discard_tables();
  copy::discard_roles();
  heap::discard_stale_records();
  heap::discard_unused_gaps();
}

}  // namespace jd::cycle

#include "base/sharing.hpp"

#if defined(JD_COUNT_SHARING)

#include <atomic>

#include "base/bits.hpp"

namespace jd::base {
namespace {

enum Event : unsigned {
  kLock,
  kLockWait,
  kAtomic,
  kBlockAtomic,
  kMarkingLock,
  kMarkingAtomic,
  kEvents
};

// A thread's counts, on a line of their own.
struct alignas(kLine) Row {
  std::uint64_t counts[kEvents];
};

// Threads beyond these share the last row, and may then lose counts.
constexpr unsigned kMostRows = 1024;
Row rows[kMostRows];
std::atomic<unsigned> used_rows{0};
// The calling thread's row plus one; 0: it has none yet.
constinit thread_local unsigned own_row = 0;

Word marking_low = 0;
std::size_t marking_size = 0;

bool is_of_marking(const void* address) { return as_word(address) - marking_low < marking_size; }

void note(Event event) {
  if (own_row == 0) {
    const unsigned fresh = used_rows.fetch_add(1, std::memory_order_relaxed);
    own_row = min_of(fresh, kMostRows - 1) + 1;
  }
  std::uint64_t& count = rows[own_row - 1].counts[event];
  __atomic_store_n(&count, __atomic_load_n(&count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

}  // namespace

void note_marking_object(const void* object, std::size_t size) {
  marking_low = as_word(object);
  marking_size = size;
}

void note_lock(const void* lock) { note(is_of_marking(lock) ? kMarkingLock : kLock); }

void note_lock_wait(const void* lock) {
  if (!is_of_marking(lock)) note(kLockWait);
}

void note_atomic(const void* word) { note(is_of_marking(word) ? kMarkingAtomic : kAtomic); }

void note_block_atomic() { note(kBlockAtomic); }

SharingCounts sharing_counts() {
  SharingCounts sum{};
  sum.threads = min_of(used_rows.load(std::memory_order_relaxed), kMostRows);
  for (unsigned i = 0; i < sum.threads; ++i) {
    const auto count = [i](Event event) {
      return __atomic_load_n(&rows[i].counts[event], __ATOMIC_RELAXED);
    };
    sum.lock_acquisitions += count(kLock);
    sum.lock_waits += count(kLockWait);
    sum.shared_atomics += count(kAtomic);
    sum.block_atomics += count(kBlockAtomic);
    sum.marking_locks += count(kMarkingLock);
    sum.marking_atomics += count(kMarkingAtomic);
    sum.most_sharing = max_of(sum.most_sharing, count(kLock) + count(kAtomic));
  }
  return sum;
}

}  // namespace jd::base

#endif

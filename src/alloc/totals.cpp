#include "alloc/totals.hpp"

#include <atomic>

#include "alloc/collecting.hpp"
#include "alloc/refill.hpp"
#include "base/sharing.hpp"

namespace jd::alloc {
namespace {

// Bytes of all holes and large objects so far, and that with what was reported as of the last
// collection. Written under the lock; GC_get_total_bytes and the like read them without (relaxed,
// but for the order in add_taken).
std::size_t allocated_total = 0;
std::size_t total_at_gc = 0;
// Bytes freed before the last collection. Under the lock; a callback's reading may be one old.
std::size_t freed_before_gc = 0;
// Bytes freed since, but for what is in the caches' counters, and those that programs say they
// allocated. Any thread adds, without a lock (relaxed; statistics); the collector moves the first
// away.
std::atomic<std::size_t> freed_now{0};
std::atomic<std::size_t> reported_allocated{0};
// Between the last two collections, in bytes. Under the lock.
struct {
  std::size_t allocated;
  std::size_t freed;
} last_period;

}  // namespace

// In this order, for whoever reads without the lock: for a moment too little, never twice.
void add_taken(ThreadCache* from) {
  const std::size_t taken = __atomic_load_n(&from->taken, __ATOMIC_RELAXED);
  const std::size_t more = taken - from->counted;
  __atomic_store_n(&from->counted, taken, __ATOMIC_RELAXED);
  __atomic_store_n(&allocated_total, allocated_total + more, __ATOMIC_RELEASE);
  const std::size_t uncollectable = __atomic_load_n(&from->uncollectable, __ATOMIC_RELAXED);
  if (const std::size_t grown = uncollectable - from->uncollectable_counted; grown != 0) {
    __atomic_store_n(&from->uncollectable_counted, uncollectable, __ATOMIC_RELAXED);
    add_uncollectable_by_strangers(grown);
  }
  const std::size_t freed = __atomic_load_n(&from->freed, __ATOMIC_RELAXED);
  const std::size_t more_freed = freed - from->freed_counted;
  if (more_freed == 0) return;
  __atomic_store_n(&from->freed_counted, freed, __ATOMIC_RELAXED);
  freed_now.fetch_add(more_freed, std::memory_order_relaxed);
}

void add_large_taken(std::size_t bytes) {
  __atomic_store_n(&allocated_total, allocated_total + bytes, __ATOMIC_RELAXED);
}

void give_back_taken(std::size_t bytes) {
  // Holes that were taken before the last collection count there.
  const std::size_t total = allocated_total - bytes;
  __atomic_store_n(&total_at_gc, base::min_of(total_at_gc, total + reported_allocated),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&allocated_total, total, __ATOMIC_RELAXED);
}

bool program_frees_by_hand() {
  constexpr std::size_t kFreedShare = 4;  // a guess
  const Totals now = totals_unsynchronised();
  return now.freed_since_gc + last_period.freed >
         (now.allocated_since_gc + last_period.allocated) / kFreedShare;
}

void start_new_totals() {
  const Totals ended = totals_unsynchronised();
  last_period = {ended.allocated_since_gc, ended.freed_since_gc};
  __atomic_store_n(&total_at_gc, allocated_total + reported_allocated, __ATOMIC_RELAXED);
  freed_before_gc += freed_now.exchange(0);
  begin_period();
  for (ThreadCache* c = caches; c != nullptr; c = c->next) c->taken_at_gc = c->counted;
}

void settle_totals() {
  for (ThreadCache* c = caches; c != nullptr; c = c->next) add_taken(c);
}

Shares shares_since_gc() {
  Shares shares{};
  for (const ThreadCache* c = caches; c != nullptr; c = c->next) {
    const std::size_t taken = c->counted - c->taken_at_gc;
    shares.all += taken;
    shares.largest = base::max_of(shares.largest, taken);
  }
  return shares;
}

std::size_t left_in_holes() {
  std::size_t left = 0;
  for (const ThreadCache* c = caches; c != nullptr; c = c->next) {
    if (!c->has_blocks) continue;
    c->for_each_row([&left](HoleRow* row, KindNumber) {
      row->for_each_used([&left](const Hole& hole) {
        // Its thread may be changing it: the two may be of different blocks.
        const Word cursor = base::as_word(__atomic_load_n(&hole.cursor, __ATOMIC_RELAXED));
        const Word end = base::as_word(__atomic_load_n(&hole.end, __ATOMIC_RELAXED));
        if (cursor < end) left += base::min_of(end - cursor, Word{heap::kBlockSize});
      });
    });
  }
  return left;
}

Totals totals() {
  settle_totals();
  return totals_unsynchronised();
}

Totals totals_unsynchronised() {
  const std::size_t freed = freed_now.load(std::memory_order_relaxed) +
                            __atomic_load_n(&cache->freed, __ATOMIC_RELAXED) -
                            __atomic_load_n(&cache->freed_counted, __ATOMIC_RELAXED);
  const std::size_t others = __atomic_load_n(&allocated_total, __ATOMIC_ACQUIRE);
  const std::size_t total = others + reported_allocated.load(std::memory_order_relaxed) +
                            __atomic_load_n(&cache->taken, __ATOMIC_RELAXED) -
                            __atomic_load_n(&cache->counted, __ATOMIC_RELAXED);
  const std::size_t before = base::min_of(total, __atomic_load_n(&total_at_gc, __ATOMIC_RELAXED));
  return {before, total - before, freed, freed_before_gc + freed};
}

void add_allocated(std::size_t bytes) {
  base::note_atomic(&reported_allocated);
  reported_allocated.fetch_add(bytes, std::memory_order_relaxed);
}
void add_freed_by_strangers(std::size_t bytes) {
  base::note_atomic(&freed_now);
  freed_now.fetch_add(bytes, std::memory_order_relaxed);
}

void add_uncollectable_by_strangers(std::size_t bytes) {
  base::note_atomic(uncollectable_bytes);
  __atomic_fetch_add(uncollectable_bytes, bytes, __ATOMIC_RELAXED);
}

namespace {
std::size_t uncollectable_in_cache() { return cache->uncollectable - cache->uncollectable_counted; }
}  // namespace

// What this thread frees may still be missing in the count of the thread that allocated it.
std::size_t uncollectable_now() {
  const std::size_t sum =
      __atomic_load_n(uncollectable_bytes, __ATOMIC_RELAXED) + uncollectable_in_cache();
  return static_cast<std::ptrdiff_t>(sum) < 0 ? 0 : sum;
}
void set_uncollectable(std::size_t bytes) {
  __atomic_store_n(uncollectable_bytes, bytes - uncollectable_in_cache(), __ATOMIC_RELAXED);
}

}  // namespace jd::alloc

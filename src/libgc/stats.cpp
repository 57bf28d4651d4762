// What the collector measured.
#include <string.h>

#include <atomic>

#include "alloc/totals.hpp"
#include "cycle/measured.hpp"
#include "heap/resident.hpp"
#include "heap/runs.hpp"
#include "heap/walk.hpp"
#include "libgc/support.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

// The largest total told so far. Any thread's, at any time (relaxed; a statistic).
std::atomic<size_t> told_total{0};

// Bytes allocated in all, as programs get to know it: never less than before. A hole counts as
// allocated when it is taken, and what is left of it is taken off again when it is given back.
size_t total_bytes(const alloc::Totals& totals) {
  const size_t total = totals.allocated_before_gc + totals.allocated_since_gc;
  size_t told = told_total.load(std::memory_order_relaxed);
  while (told < total) {
    if (told_total.compare_exchange_weak(told, total, std::memory_order_relaxed)) return total;
  }
  return told;
}

GC_prof_stats_s prof_stats(const alloc::Totals& totals) {
  GC_prof_stats_s stats{};
  stats.heapsize_full = heap::resident_bytes() + heap::returned_bytes();
  stats.free_bytes_full = heap::bytes_of(heap::free_blocks());
  stats.unmapped_bytes = heap::returned_bytes();
  stats.bytes_allocd_since_gc = totals.allocated_since_gc;
  stats.allocd_bytes_before_gc = total_bytes(totals) - totals.allocated_since_gc;
  stats.non_gc_bytes = alloc::uncollectable_now();
  stats.gc_no = GC_gc_no;
  stats.markers_m1 = static_cast<GC_word>(GC_get_parallel());
  stats.bytes_reclaimed_since_gc = cycle::measured.reclaimed_bytes;
  stats.reclaimed_bytes_before_gc = cycle::measured.reclaimed_before;
  stats.expl_freed_bytes_since_gc = totals.freed_since_gc;
  stats.obtained_from_os_bytes = heap::peak_resident_bytes();
  return stats;
}

size_t copy_stats(const GC_prof_stats_s& stats, GC_prof_stats_s* result, size_t size) {
  if (size < sizeof stats) {
    memcpy(result, &stats, size);
    return size;
  }
  // The usual case. Of known length it is some stores; of any, a third of what the call took.
  *result = stats;
  // Fields of later versions than this.
  if (size > sizeof stats) memset(result + 1, 0xff, size - sizeof stats);
  return sizeof stats;
}

}  // namespace

extern "C" {

GC_word GC_get_gc_no() { return __atomic_load_n(&GC_gc_no, __ATOMIC_RELAXED); }
size_t GC_get_heap_size() { return heap::resident_bytes(); }
size_t GC_get_free_bytes() { return heap::free_resident_bytes(); }
size_t GC_get_unmapped_bytes() { return heap::returned_bytes(); }
size_t GC_get_bytes_since_gc() { return alloc::totals_unsynchronised().allocated_since_gc; }
size_t GC_get_expl_freed_bytes_since_gc() { return alloc::totals_unsynchronised().freed_since_gc; }
size_t GC_get_total_bytes() { return total_bytes(alloc::totals_unsynchronised()); }
size_t GC_get_obtained_from_os_bytes() { return heap::peak_resident_bytes(); }

void GC_get_heap_usage_safe(GC_word* heap_size, GC_word* free_bytes, GC_word* unmapped_bytes,
                            GC_word* bytes_since_gc, GC_word* all_bytes) {
  LockGuard guard(heap_lock);
  const alloc::Totals totals = alloc::totals();
  if (heap_size != nullptr) *heap_size = heap::resident_bytes();
  if (free_bytes != nullptr) *free_bytes = heap::free_resident_bytes();
  if (unmapped_bytes != nullptr) *unmapped_bytes = heap::returned_bytes();
  if (bytes_since_gc != nullptr) *bytes_since_gc = totals.allocated_since_gc;
  if (all_bytes != nullptr) *all_bytes = total_bytes(totals);
}

size_t GC_get_prof_stats(GC_prof_stats_s* result, size_t size) {
  LockGuard guard(heap_lock);
  return copy_stats(prof_stats(alloc::totals()), result, size);
}
GC_API size_t GC_get_prof_stats_unsafe(GC_prof_stats_s* result, size_t size) {
  return copy_stats(prof_stats(alloc::totals_unsynchronised()), result, size);
}

size_t GC_get_size_map_at(int request) {
  if (request < 0 || static_cast<size_t>(request) > heap::kMaxSmall) return SIZE_MAX;
  return alloc::usable_size_for(static_cast<size_t>(request));
}

size_t GC_get_memory_use() {
  LockGuard guard(heap_lock);
  // Block 0 is never used; before the start there is not even that.
  if (heap::space.committed == 0) return 0;
  const size_t blocks = heap::space.committed - 1 - heap::free_blocks();
  return blocks * heap::kBlockSize;
}

void GC_enumerate_reachable_objects_inner(GC_reachable_object_proc function, void* data) {
  heap::for_each_block([&](heap::BlockNumber, heap::Block& block) {
    if (block.state == heap::BlockState::Free) return;
    const auto tell = [&](unsigned slot) {
      const heap::Place place{&block, slot};
      if (counts_as_marked(place)) {
        function(base::as_pointer(place.address()), place.size(), data);
      }
    };
    if (heap::is_uncollectable(block.kind)) {
      heap::for_each_bit(block.allocated, block.slots, tell);
    } else {
      heap::for_each_marked(block, tell);
    }
  });
}
}

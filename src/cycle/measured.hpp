// What was measured (cycle.req.measured), since the start unless a comment says otherwise. Written
// by the collector under the heap's lock. Times are in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jd::cycle {

struct Measurements {
  std::uint64_t collections = 0;
  std::uint64_t partial_collections = 0;  // of these
  std::uint64_t pause_total = 0;
  std::uint64_t pause_longest = 0;
  std::uint64_t pause_last = 0;
  std::uint64_t stop_last = 0;  // from the first signal to the last answer
  std::uint64_t stop_total = 0;
  std::uint64_t stop_longest = 0;
  std::uint64_t mark_total = 0;
  std::uint64_t mark_last = 0;
  std::uint64_t sweep_total = 0;  // from the records; clearing and hole finding happen elsewhere
  std::uint64_t sweep_last = 0;
  std::uint64_t marked_objects = 0;  // by all collections together
  std::size_t live_objects = 0;      // as of the last collection
  std::size_t live_bytes = 0;
  std::size_t live_atomic_bytes = 0;
  std::size_t live_typed_bytes = 0;
  std::size_t reclaimed_bytes = 0;   // by the last collection
  std::size_t reclaimed_before = 0;  // by all before it
  std::size_t root_bytes = 0;        // scanned by the last collection
  std::uint64_t root_total = 0;      // ns in which all collections scanned roots, of mark_total
  std::uint64_t stack_total = 0;     // and threads' stacks, of root_total
  std::size_t mark_stack_overflows = 0;
  // Collections as a whole, and returning memory: more than the pauses, in which the world stands.
  std::uint64_t collecting_total = 0;
  // Full collections, with all their steps, those beside the program included.
  std::uint64_t full_total = 0;
  std::uint64_t full_total_before = 0;  // that when GC_start_performance_measurement was called
  bool measuring_performance = false;
};
extern Measurements measured;

}  // namespace jd::cycle

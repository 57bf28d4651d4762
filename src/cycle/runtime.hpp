// The runtime's life: starting it, collecting, growing the heap, and what was measured.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"

namespace jd::cycle {

// Reads the environment, makes the heap. Any number of calls, from any thread; no lock held.
void start_without_registering();
// The same, and registers the calling thread. Without memory for that, the program ends.
void start();
bool started();

// A full collection, with finalizers afterwards as the settings have it. False if collecting is
// disabled, or nothing was collected (collect_locked says why that may be, and when stop_function
// is asked). Pre: the lock is not held.
bool collect_now(int (*stop_function)());
// As above; afterwards all free memory goes back to the system.
void collect_and_return_memory(int (*stop_function)());
// Collections, three at most, that move all typed objects that may move where that makes blocks
// free; afterwards all free memory, and what tables need no more, goes back to the system.
void compact();
// A collection if one is due, unless the program's stop function asks to abandon it. Pre: the lock
// is not held.
void collect_if_due();

// Commits that many bytes more, rounded down to blocks, of which it is one at least. False if the
// heap may not grow so far.
// Pre: the lock is held.
bool expand(std::size_t bytes);

// Measured (cycle.req.measured), since the start unless a comment says otherwise. Written by the
// collector under the lock. Times are in nanoseconds.
struct Measurements {
  std::uint64_t collections = 0;
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
  std::uint64_t full_time_since = 0;  // that when GC_start_performance_measurement was called
  bool measuring_performance = false;
};
extern Measurements measured;

}  // namespace jd::cycle

// The backtraces of a program's allocations, once each (malloc.req.leaks).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace jd::serve {

// The calls that led to an allocation, the newest first; never removed.
struct Backtrace {
  std::size_t number;  // from 1 on
  std::uint64_t hash;
  // What unloadings() said when it was added, and when its frames were last known to lie in the
  // libraries that they lay in then.
  std::uint64_t added_at;
  std::atomic<std::uint64_t> right_at;
  // Found by the report, in the stopped world.
  std::size_t objects;
  std::size_t bytes;
  std::size_t frames;
  void* addresses[1];  // as many as `frames` says
};

// Takes a lock only where the backtrace is new, or a library was unloaded. Null without memory.
// Pre: the heap's lock is not held; what the frames lie in is loaded.
Backtrace* find_or_add_backtrace(void* const* addresses, std::size_t count);

// Pre of these: the heap's lock is held.
std::size_t backtrace_count();
Backtrace* numbered_backtrace(std::size_t number);
// The places of the table in which they are looked for.
std::size_t backtrace_places();

}  // namespace jd::serve

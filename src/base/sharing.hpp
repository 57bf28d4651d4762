// What threads do to memory that they share, counted: acquisitions of locks, and atomic
// read-modify-write instructions. `jackdaw bench scale` makes of these counts a model of how the
// library does on more processors than there are.
//
// Only one build of the library counts (JD_COUNT_SHARING; lib/jackdaw/counting/libgc.so.1). In
// every other these functions are nothing (base.req.uncounted).
//
// Each counted thread writes its own row of a table, without atomic instructions. Signal handlers
// may count, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jd::base {

// What all threads did together, and one that did most.
struct SharingCounts {
  std::uint64_t threads;            // that did anything of it
  std::uint64_t lock_acquisitions;  // an acquisition's own atomic instructions count no more
  std::uint64_t lock_waits;         // those that waited in the kernel, or were woken in vain
  std::uint64_t shared_atomics;     // on lines that threads share
  std::uint64_t block_atomics;      // on the record of a block that the thread owns
  std::uint64_t marking_locks;      // of markers among themselves
  std::uint64_t marking_atomics;
  std::uint64_t most_sharing;  // locks and shared atomics of the thread with the most of them
};

#if defined(JD_COUNT_SHARING)

inline constexpr bool kCountsSharing = true;

// Once, at the start: locks and words within the object are the markers'.
void note_marking_object(const void* object, std::size_t size);

void note_lock(const void* lock);
void note_lock_wait(const void* lock);
void note_atomic(const void* word);
void note_block_atomic();

SharingCounts sharing_counts();

#else

inline constexpr bool kCountsSharing = false;

inline void note_marking_object(const void*, std::size_t) {}
inline void note_lock(const void*) {}
inline void note_lock_wait(const void*) {}
inline void note_atomic(const void*) {}
inline void note_block_atomic() {}
inline SharingCounts sharing_counts() { return {}; }

#endif

}  // namespace jd::base

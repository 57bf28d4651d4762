// What the malloc family is served with. The entries are in entries.cpp.
//
// Requirements: docs/design/malloc.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/cache.hpp"
#include "base/options.hpp"
#include "heap/kinds.hpp"

namespace jd::serve {

// Scanned from end to end, and not cleared: the first kind that is added.
inline constexpr heap::KindNumber kScanned = heap::kBuiltInKinds;

// Every object has a spare word behind what was asked for (malloc.req.past-end): pointers one past
// the end are to hold it, wherever they are kept. In leak-check mode the word holds the object's
// tag. It is no part of what with_spare() says, which is an odd number of words, so that only the
// loose size classes are used, each of whose slots is at least a word larger: for 24 bytes a slot
// of 32, for 25 one of 48.
constexpr std::size_t kSpare = sizeof(base::Word);
constexpr std::size_t with_spare(std::size_t bytes) {
  return base::align_up(bytes, kSpare) | kSpare;
}
// The largest request that a slot serves.
inline constexpr std::size_t kMostSmall = heap::kMaxSmall - kSpare;
static_assert(with_spare(kMostSmall) <= heap::kMaxSmall);
// The largest request that can be met at all, as in libc.
inline constexpr std::size_t kMost = PTRDIFF_MAX - 64;

// The runtime is started, and this is not leak-check mode: malloc and free may take their fast
// paths. Written once, at the start.
extern bool fast;
// Mode ignore. Written once, at the start.
extern bool ignoring;
// The part of is_ignored for that mode.
bool is_collected(const void* object);
// Whether free() is to leave the object alone: mode ignore, but for what is never collected.
inline bool is_ignored(const void* object) {
  return __builtin_expect(ignoring, 0) && heap::in_heap(base::as_word(object)) &&
         is_collected(object);
}
// Why nothing is collected any more; null if that is not so. Under the heap's lock.
extern const char* reason_not_to_collect;
// Has the program a libgc beside this one, which stops threads as well? Under the heap's lock, but
// at the start.
extern bool has_other_collector;
// Looks for one, and notes it there. Pre: nobody is loading or unloading a library.
bool look_for_other_collector();
// The program has a malloc of its own. Written once, by the start; read after that (start()).
extern bool bypassed;

base::MallocMode mode();

// The functions below begin with this: starts the runtime. False within the start itself: then
// early_memory serves. False, too, if the program has a malloc of its own: then nothing starts.
// malloc_was_called: by malloc itself; so that is ours.
bool start(bool malloc_was_called = false);
// The first question of each entry: libc's functions are to do it, as if this library were not
// there.
inline bool is_bypassed(bool malloc_was_called = false) {
  return __builtin_expect(!fast, 0) && !start(malloc_was_called) && bypassed;
}
// From a small static buffer, never freed, cleared; null when it is used up.
void* early_memory(std::size_t bytes);
bool is_early(const void* p);

// `caller`: the return address of the entry, for the backtraces of leak-check and for what hides
// pointers. Null, with errno set, when memory has run out.
void* allocate(std::size_t bytes, const void* caller);
void* allocate_clear(std::size_t bytes, const void* caller);
// Pre: a power of two.
void* allocate_aligned(std::size_t bytes, std::size_t alignment, const void* caller);
// Null also if it is no object, of which the program is told.
void* resize(void* object, std::size_t bytes, const void* caller);
// Of an object.
std::size_t usable_size(const void* object);

}  // namespace jd::serve

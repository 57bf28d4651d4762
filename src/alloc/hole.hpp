// Holes and the threads' caches of them: the fast path of allocation.
//
// A thread allocates by moving a cursor through a hole, a row of free slots in a block that it
// owns. Nothing is threaded through free memory, and memory is cleared a few KiB ahead of the
// cursor, while it is about to be used anyway (design, section 4).
//
// Requirements (docs/design/alloc.md): alloc.req.fast — the fast path is a load of the cursor, an
// addition, a comparison with the limit, a store; alloc.req.stop — a thread stopped between the
// load and the store loses nothing: its hole stays its own through every collection.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/size_class.hpp"
#include "heap/space.hpp"

namespace jd::alloc {

using heap::BlockNumber;
using heap::KindNumber;
using heap::Word;

// Written by its thread: the cursor at any time, the rest only within a NoStop section or under the
// heap's lock. Read by the collector in a stopped world. Slots in [cursor, end) have their
// allocated bits set, so that nobody else takes them.
struct Hole {
  char* cursor;  // the next slot
  char* limit;   // slots below it are ready to be handed out
  char* end;     // one past the hole's last slot
  std::uint32_t slot_size;
  BlockNumber block;  // where the hole is; kNoBlock: there is none, and cursor = end

  // The next slot, or null: then the slow path has to find one.
  void* take() {
    char* slot = cursor;
    // The cursor first: a thread stopped between the two loads keeps its hole only because the
    // slot's address is in a register. With the limit first, it could go on with the limit of a
    // hole that was given back, and a null cursor.
    std::atomic_signal_fence(std::memory_order_acquire);
    char* next = slot + slot_size;
    if (__builtin_expect(next > limit, 0)) return nullptr;
    cursor = next;
    // The limit is above it, so it is an address; callers need not look again.
    if (slot == nullptr) __builtin_unreachable();
    return slot;
  }
};
static_assert(sizeof(Hole) == 32);

// The holes of one kind, a hole for each size class.
struct HoleRow {
  Hole holes[heap::kSizeClasses];

  // The hole for a request. Pre: bytes <= heap::kMaxSmall.
  Hole& hole_for(std::size_t bytes);
};

namespace detail {

// Where in a row each request's hole is, in bytes: the class, already multiplied.
constexpr auto make_offset_table() {
  std::array<std::uint16_t, heap::kClassOfWords.size()> table{};
  for (std::size_t words = 0; words < table.size(); ++words) {
    table[words] = static_cast<std::uint16_t>(heap::kClassOfWords[words] * sizeof(Hole));
  }
  return table;
}
inline constexpr auto kHoleOffsetOfWords = make_offset_table();

}  // namespace detail

inline Hole& HoleRow::hole_for(std::size_t bytes) {
  const std::size_t words = (bytes + sizeof(Word) - 1) / sizeof(Word);
  return *reinterpret_cast<Hole*>(reinterpret_cast<char*>(holes) +
                                  detail::kHoleOffsetOfWords[words]);
}

struct ThreadCache {
  HoleRow normal;
  HoleRow atomic;
  HoleRow* rows[heap::kMaxKinds];  // the two above, and what other kinds this thread uses
  // Bytes of the holes taken since they were last added to the totals.
  std::size_t taken;
  ThreadCache* next;  // list of caches, and of free ones; under the lock
};

// The calling thread's cache; while it has none, a cache that is always empty.
extern constinit thread_local ThreadCache* cache;

// The slow path: refills the hole and allocates. Null when memory has run out, the out-of-memory
// function included.
void* allocate_slowly(std::size_t bytes, KindNumber kind);

// An object of the two kinds that nearly all are, or of any kind. See allocate.hpp for what the
// memory holds.
inline void* allocate_normal(std::size_t bytes) {
  if (__builtin_expect(bytes <= heap::kMaxSmall, 1)) {
    void* slot = cache->normal.hole_for(bytes).take();
    if (__builtin_expect(slot != nullptr, 1)) return slot;
  }
  return allocate_slowly(bytes, heap::kNormal);
}
inline void* allocate_atomic(std::size_t bytes) {
  if (__builtin_expect(bytes <= heap::kMaxSmall, 1)) {
    void* slot = cache->atomic.hole_for(bytes).take();
    if (__builtin_expect(slot != nullptr, 1)) return slot;
  }
  return allocate_slowly(bytes, heap::kAtomic);
}

}  // namespace jd::alloc

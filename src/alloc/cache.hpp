// The threads' caches of holes, and with them the fast path of allocation (alloc.req.fast).
#pragma once

#include <cstddef>

#include "alloc/hole.hpp"
#include "heap/mixed.hpp"

namespace jd::alloc {

using heap::MixedHole;

// The rows of a thread's kinds, by their numbers. Few programs have many kinds, so there is a
// table of all only for those that do: it would take 1.5 KiB of each thread. All zeroes at first.
// Written under the heap's lock; read by the thread, and by whoever looks at all holes.
class RowTable {
 public:
  constexpr HoleRow* operator[](KindNumber kind) const {
    if (kind < kFew) return few_[kind];
    return more_ == nullptr ? nullptr : more_[kind - kFew];
  }
  constexpr void set(KindNumber kind, HoleRow* row) {
    (kind < kFew ? few_[kind] : more_[kind - kFew]) = row;
  }
  // Makes room for the row of a kind. False if there is no memory for it. Pre: the lock is held.
  bool make_room(KindNumber kind);

 private:
  // A program that defines no layouts and few kinds has those of the library, about twelve, and
  // some of its own. A guess.
  static constexpr KindNumber kFew = 16;
  HoleRow* few_[kFew];
  HoleRow** more_;
};

// What a thread is just claiming of a block, for the child of a fork that comes before the hole
// says so: it would take the slots for objects, and disclaim what lies there a second time.
struct Claim {
  BlockNumber block;                      // kNoBlock: nothing
  std::uint64_t before[heap::kBitWords];  // its allocated bits, but for those that were the hole's
};

struct ThreadCache {
  HoleRow normal;
  // The thread's rows by kind; `normal` is one. Until its first pointer-free object, kAtomic's is
  // the shared row of zeroes, so that allocate_atomic needs no test. no_cache has no other row.
  RowTable rows;
  // Bytes of all holes that the thread took. Written by it alone (relaxed: only the number
  // matters), so it wraps rather than being taken from.
  std::size_t taken;
  std::size_t counted;      // of these, what is in the totals; written under the lock (relaxed)
  std::size_t taken_at_gc;  // what `taken` was at the last collection; under the lock
  // Bytes that the thread freed, and what of these is in the totals. As the two above.
  std::size_t freed;
  std::size_t freed_counted;
  // Bytes of uncollectable objects that the thread made, less those that it freed; wraps. Likewise.
  std::size_t uncollectable;
  std::size_t uncollectable_counted;
  // The period between two collections in which the thread took blocks last (take_blocks), 0 for
  // none; under the lock.
  std::uint64_t refilled_in;
  BlockNumber reserved;  // blocks in all reserves; written as a hole is
  // A hole or a reserve may have a block. Set with the first that is taken for one, under the lock;
  // cleared by the collector in a stopped world. Caches without are passed over in pauses.
  bool has_blocks;
  Claim claim;          // by the thread within NoStop sections; in blocks of kinds that disclaim
  Magazine* magazines;  // all, linked by Magazine::next; under the lock
  heap::MixedHole mixed[heap::kMixedHoles];  // alloc/mixed.hpp
  void* typed;            // the room typed's; its thread's, and nobody's once that is gone
  ThreadCache* next;      // list of caches, and of free ones; under the lock
  ThreadCache* previous;  // in the list of caches

  // Calls visit(row, kind) for each. Under the lock, or in a stopped world.
  template <class Visit>
  void for_each_row(Visit visit) const {
    for (unsigned kind = 0; kind < heap::kind_count; ++kind) {
      const auto number = static_cast<KindNumber>(kind);
      if (HoleRow* row = rows[number]) visit(row, number);
    }
  }

  // It is the one that threads without a cache have.
  [[nodiscard]] bool is_nobodys() const { return rows[heap::kNormal] == nullptr; }

  // By the cache's thread.
  void count_taken(std::size_t bytes) { __atomic_store_n(&taken, taken + bytes, __ATOMIC_RELAXED); }
  void count_freed(std::size_t bytes) { __atomic_store_n(&freed, freed + bytes, __ATOMIC_RELAXED); }
  void count_uncollectable(std::size_t bytes) {
    __atomic_store_n(&uncollectable, uncollectable + bytes, __ATOMIC_RELAXED);
  }
};

// Called when a thread leaves, before its holes go: `own`: it is the caller. Set once, by the room
// that uses ThreadCache::typed. Under the heap's lock.
extern void (*forget_typed)(ThreadCache* cache, bool own);

// All caches that threads have, linked by ThreadCache::next, and how many there are. Under the
// lock.
extern ThreadCache* caches;
extern unsigned cache_count;

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
    void* slot = cache->rows[heap::kAtomic]->hole_for(bytes).take();
    if (__builtin_expect(slot != nullptr, 1)) return slot;
  }
  return allocate_slowly(bytes, heap::kAtomic);
}

}  // namespace jd::alloc

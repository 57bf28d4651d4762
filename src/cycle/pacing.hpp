// When to collect, and how far the heap may grow: bdwgc's rules, which its clients are tuned to.
//
// A collection is due when, since the last one, as much was allocated as the free-space divisor
// allows for the words that a collection has to look at; but it happens only when the free blocks
// run out. So a heap that was made large at the start is filled before anything is collected.
#pragma once

#include <cstddef>

#include "heap/space.hpp"

namespace jd::cycle {

// Pre of each: the heap's lock is held.
bool collection_is_due();
// When so many bytes were allocated since the last one. Pre: alloc::totals() was just asked, which
// settles how many threads take part.
std::size_t due_after();
// Sets alloc::collection_waits by what there is.
void note_whether_collection_waits();

// Makes room for a run of that many blocks, by collecting or by growing: alloc::Pacer::make_room.
bool make_room(heap::BlockNumber blocks, unsigned attempt);
bool collects_first();
bool has_room();

// Collects if the heap grew meanwhile only because the program had switched that off; or takes a
// step, if it is time (incremental.hpp).
void catch_up();

// Collects because a table of finalizers or links has grown, if the price is not out of proportion.
void collect_for_grown_table();

// When a table of finalizers or links has grown so much that it is a reason to collect: by half
// since it last was one, but not below 4096 entries. (bdwgc: when it is full, also not below
// 4096.) Variants: docs/design/cycle-measured.md, "Growth by half, and a divisor of 3".
class TableLimit {
 public:
  static constexpr std::size_t kLeast = 4096;

  // Pre: another entry is about to be added to a table of so many.
  template <class Table>
  void before_adding_to(const Table& table) {
    if (table.count() < limit_) return;
    collect_for_grown_table();
    limit_ = base::max_of(table.count() + table.count() / 2, kLeast);
  }

 private:
  std::size_t limit_ = kLeast;
};

// Commits exactly so many blocks, within GC_set_max_heap_size and the memory limit, for the
// program, which wants so much to be filled before anything is collected.
bool commit_as_asked(heap::BlockNumber blocks);

// The same in a stopped world, without a word to anybody: the collection tells when it is over.
bool commit_quietly(heap::BlockNumber blocks);
void tell_of_growth(heap::BlockNumber blocks);
// Commits quietly for what a moving collection copies; as many blocks stay free after it, for as
// long as the program does not need more than it has.
bool commit_for_copies(heap::BlockNumber blocks);
// May the heap grow by so many?
bool may_grow(heap::BlockNumber blocks);

// A collection is over: the next one is due after that many bytes more.
void plan_next_collection(std::size_t live_bytes, std::size_t live_atomic_bytes,
                          std::size_t root_bytes);

}  // namespace jd::cycle

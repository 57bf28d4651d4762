// What is done where blocks are wanted: to collect, or to grow the heap. As in bdwgc, whose clients
// are tuned to that, a collection that is due (cycle/due.hpp) happens only when the free blocks run
// out: a heap that was made large at the start is filled before anything is collected.
//
// Pre of each function: the heap's lock is held.
#pragma once

#include <cstddef>

#include "heap/space.hpp"

namespace jd::cycle {

// Sets alloc::collection_waits by what there is.
void note_whether_collection_waits();

// Makes room for a run of that many blocks, by collecting or by growing: alloc::Pacer::make_room.
bool make_room(heap::BlockNumber blocks, unsigned attempt);
bool collects_first();
bool has_room();
bool found_little();
bool ends_in_vain();
// The program is told that memory has run out, and may let go of something.
void note_shortage();

// Collects if the heap grew meanwhile only because the program had switched that off; or takes a
// step, if it is time (incremental.hpp).
void catch_up();

// A collection is over, and found that.
void plan_next_collection(std::size_t live_bytes, std::size_t live_atomic_bytes,
                          std::size_t root_bytes);

}  // namespace jd::cycle

// Memory that goes back to the system. That takes long, so it is done after a collection, in steps,
// between which others get the lock.
#pragma once

namespace jd::cycle {

// Blocks that have been free for so many collections are to be returned, by whoever comes next.
// If others were asked for already, younger ones, that stays so. Pre: the heap's lock is held.
void return_free_memory_later(unsigned least_age);
// Does any wait for that? Any thread, no lock: a hint.
bool memory_waits_to_be_returned();
// Returns them. Pre: the lock is not held.
void return_free_memory();

// Tables that grew with the heap, and are empty between collections or describe free blocks, shrink
// with it. Pre: the heap's lock is held.
void return_table_memory();

}  // namespace jd::cycle

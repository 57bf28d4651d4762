// Partial collections (the generational part of bdwgc's incremental mode, which the cache-miss
// paper measures as well): what the last collection marked stays marked, and is looked at again
// only where the program has written since. So a collection's work is for what is new, and for what
// changed. Old objects that died are found by the next full one.
//
// Source: Demers, Weiser, Hayes, Boehm, Bobrow & Shenker, "Combining Generational and Conservative
// Garbage Collection: Framework and Implementations" (1990), "sticky mark bits". Differs in: the
// kernel notes what was written (os/write_watch.hpp).
//
// Requirement (docs/design/cycle.md): cycle.req.partial. Pre, of each function: the heap's lock is
// held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mark/marker.hpp"

namespace jd::cycle {

// What a collection has to look at. AsDue: a partial one does, where there are such. The last: so,
// and what is not marked at the program's limit is marked in steps (cycle/incremental.hpp).
enum class Extent { Full, AsDue, AsDueWithinLimit };

namespace partial {

// From now on there are such. Null, or why the system can't have them, for people.
const char* turn_on();
// At any time, without the lock, too.
bool is_on();

// Can the collection that is about to begin be partial?
bool is_possible();
// Can it be known what the program writes while a collection is under way (cycle/incremental.hpp)?
bool may_watch();
// Instead of clearing the marks, when the world has stopped. of_steps: of this collection, not of
// those before it.
void keep_marks(bool of_steps);
// Then, before anything is marked: queues what may have changed. False, with nothing queued and all
// marks clear, if that can't be known: then the collection is a full one.
bool queue_changed();
// How many objects collections before had marked. Of a partial collection.
std::size_t kept_objects();

// Notes what changes from now on, in whatever there is. False if that can't be.
bool watch_in_use();
// What is marked says nothing any more: the next collection is a full one.
void forget_marks();

struct Ended {
  bool was_partial;
  bool in_steps;
  bool copied;  // what it reached
  std::uint64_t mark_ns;
  std::size_t live_bytes;
};
// A collection has swept, in the stopped world, and all that is marked leads only to what is
// marked. Where that pays, changes are noted from now on, for the next one.
void end_collection(const Ended& ended);
// The mode is on, and partial collections pay.
bool pays();
// The last one that ended was partial, or in steps: a full one may free more.
bool was_partial();

}  // namespace partial
}  // namespace jd::cycle

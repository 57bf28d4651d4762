// Marking in steps, where the program wishes short pauses (GC_set_time_limit) and has the
// incremental mode: the world stands for the roots, then now and then for as long as the limit
// says, and at last for a partial collection, to which all that the steps have marked is old.
//
// Source: Boehm, Demers & Shenker, "Mostly Parallel Garbage Collection" (1991). Differs in: steps
// are taken by the threads that allocate, in a stopped world; the kernel notes what is written
// meanwhile; what is made meanwhile is not marked until the end (heap/snapshot.hpp).
//
// Requirement (docs/design/cycle.md): cycle.req.incremental. Pre, of each function: the heap's lock
// is held.
#pragma once

#include <cstdint>

namespace jd::cycle::incremental {

// Some object may be marked, and the collection has not ended.
bool is_under_way();
// Has so much been allocated since it began that another step is to come? Or, if none is under way,
// would nothing speak against the first?
bool is_behind();

// What came of it: nothing, since the program or the system does not allow it now; a step, after
// which more are to come; a collection that ended.
enum class Progress { None, Step, End };
// Pre: a collection is due, or under way. Does what is to be done now: all of it, or one step.
Progress collect_as_due();
// One step, or the beginning, or the end. Pre: is_wanted() or is_under_way().
Progress step();
// Is the next collection that allocation starts to be done in steps? Where the last ones took long
// enough.
bool is_wanted();
// Can there be such collections at all?
bool may_be_wanted();

// For the collection that begins, in the stopped world, with the threads' holes hidden: takes over
// what was marked, and says what was begun; is_under_way() is false from now on.
enum class Begun { NotAtAll, Full, Partial };
Begun end();
// Forgets what was marked. The world may run.
void abandon();

// A collection has marked for so long, all its steps together, and so much is alive.
void note(bool was_partial, std::uint64_t mark_ns, std::size_t live_bytes);
// Steps of the one that ended last, and the time for which they marked.
struct Steps {
  unsigned count = 0;
  std::uint64_t mark_ns = 0;
};
Steps last_steps();

}  // namespace jd::cycle::incremental

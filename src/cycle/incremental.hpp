// Marking in steps, where the program wishes short pauses (GC_set_time_limit) and has the
// incremental mode: the world stands for the roots, then now and then for as long as the limit
// says, and at last for a partial collection, to which all that the steps have marked is old.
//
// Source: Boehm, Demers & Shenker, "Mostly Parallel Garbage Collection" (1991). Differs in: threads
// that allocate take steps in a stopped world, where the one that marks while the program runs
// (mark/concurrent.hpp) is too slow or not there; the kernel notes what is written meanwhile; what
// is made meanwhile is not marked until the end (heap/snapshot.hpp).
//
// Requirement (docs/design/cycle.md): cycle.req.incremental. Pre, of each function: the heap's lock
// is held.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jd::cycle {
class Pause;
}

namespace jd::cycle::incremental {

// Some object may be marked, and the collection has not ended.
bool is_under_way();
// Has so much been allocated since it began that another step is to come? Or, if none is under way,
// would nothing speak against the first?
bool is_behind();

// What came of it: nothing, since the program or the system does not allow it now; a step, after
// which more are to come; a collection that ended.
enum class Progress { None, Step, End };
// One is under way: takes steps, if marking is behind; all that are left, if it is far behind.
void catch_up();
// Does what is to be done now, of a collection that is under way or due: all of it, or one step.
Progress step();
// Is the next collection that allocation starts to be done in steps, if it comes to that? Where the
// last ones took long enough. And is it to begin before it is due?
bool is_wanted();
bool begins_early();
// Can there be such collections at all?
bool may_be_wanted();

// For a collection (Extent::AsDueWithinLimit) whose pause has begun: it is to mark until the limit.
void begin_limited_pause(const Pause& pause);
// All that it begins at is queued.
void note_queued();
// For one in the stopped world, with the threads' holes hidden: takes over what was marked, and
// says what was begun; is_under_way() is false from now on.
enum class Begun { NotAtAll, Full, Partial };
Begun end();
// It has marked what it could, and looks at no limit any more. True if something is left that is to
// be marked in steps: then it is under way again, and the pause is to end.
bool goes_on(Begun now);
// Forgets what was marked. The world may run.
void abandon();

// What the program allocated during the steps of the last one.
std::size_t allocated_in_last();

// What the thread that marks beside the program does (mark/concurrent.hpp). False: nothing, until
// the next step, or nothing more.
bool mark_beside(bool leaves);

// A collection has marked for so long, all its steps together, and so much is alive.
void note(bool was_partial, std::uint64_t mark_ns, std::size_t live_bytes);
// Steps of the one that ended last, and the time for which they marked.
struct Steps {
  unsigned count = 0;
  std::uint64_t mark_ns = 0;
  std::uint64_t beside_ns = 0;  // of that, while the program ran
};
Steps last_steps();

}  // namespace jd::cycle::incremental

// What was allocated when marking in steps began (cycle/incremental.hpp), between which the program
// runs. Until the marking ends, whatever is free passes for marked, also what the program has freed
// or made free since: so no step looks at it, and what is made there is made marked. At the end,
// also if marking goes on after that with another snapshot, the marks of what is new are taken
// back, and it is marked like anything else, if something holds it. So a step that scans a pointer
// to what is new has marked nothing: the page that it lies on must still pass for written then.
//
// Pre, but for pass_for_free: the heap's lock is held.
#pragma once

#include <cstdint>

#include "heap/space.hpp"

namespace jd::heap {

// Set in a stopped world, cleared under the lock; asked by whoever makes or frees something
// (relaxed: who frees asks within a NoStop section, and who makes a block has the lock).
extern bool marking_in_steps;
inline bool is_marking_in_steps() { return __atomic_load_n(&marking_in_steps, __ATOMIC_RELAXED); }

// Pre, of both: the world is stopped, holes are hidden. The first follows start_marks or
// keep_marks; false if there is no memory. After the second, keep_marks takes back the marks of
// what is new.
[[nodiscard]] bool begin_marking_in_steps();
void end_marking_in_steps();

// Gives the memory of the snapshot back; not while it is needed.
void discard_snapshot();

// Of a word of a block's bits: what was allocated when the marking began, and was not freed since.
std::uint64_t noted_objects(const Block& block, unsigned word);
// Does such an object begin at the address? Or, of one in a run of blocks, does the address lie in
// it?
bool was_noted(Word address);

// A block, or a run, that gets objects from now on. Pre: is_marking_in_steps().
void pass_for_new(Block* block);
// An object that its thread is about to free, with or without the lock. Pre: as above.
void pass_for_free(const Place& place);

// Was anything freed or released since this was last asked?
bool take_freed_in_steps();
void note_released();

}  // namespace jd::heap

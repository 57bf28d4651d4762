// Collections that allocation starts, and that came to nothing: the program's function said no, or
// threads did not stop. When the next is tried, and who is asked then (docs/design/cycle.md, "A
// collection"). Pre, of each function: the heap's lock is held.
#pragma once

namespace jd::cycle::refusal {

// One came to nothing, or a step of one.
void note();
// Is the next try to wait until some more was allocated?
bool waits();
// The program's function has said no for too long: it is not asked again before a collection.
bool asks_no_more();
// That try comes now.
void forget_last();
// A collection has ended, whoever started it.
void forget_all();

// The program's function for the next try, or null if it is asked no more. (Collections that the
// program asks for have Settings::stop_function.)
int (*stop_function())();

}  // namespace jd::cycle::refusal

// What the kernel calls the calling thread and its process. Between the files of this room only.
#pragma once

namespace jd::world {

struct OwnIds {
  int thread = 0;
  int process = 0;
};

// A thread that asks again and again (it registers, leaves, registers) is told without a system
// call, but in a process that came about unseen by the fork handlers. Pre: the heap's lock is held.
OwnIds own_ids();

// From now on is_in_unnoticed_child tells. Pre: as above.
void recognise_children_by_page();
// Is this a child of which no handler heard, with memory of its own? False, too, if that can't be
// told. Pre: as above.
bool is_in_unnoticed_child();

// Ids that threads remember do not hold in this process. Pre: the heap's lock is held, or its
// holder is what this thread was interrupted in.
void forget_own_ids_in_child();

}  // namespace jd::world

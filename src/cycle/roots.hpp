// All that a collection begins at: what each room knows of, and what the program's own root
// function names while it is asked.
#pragma once

#include "world/roots.hpp"

namespace jd::cycle {

// Whatever holds objects, but for the program's pins and precise roots (copy/holders.hpp). Pre: the
// world is stopped; stack_top as for world::visit_thread_roots.
void visit_ambiguous_roots(world::RootVisitor* visitor, char* stack_top);
// These, too. Pre: as above.
void visit_all_roots(world::RootVisitor* visitor, char* stack_top);

// Receives the words of the program's own roots: GC_push_all and its family call these during the
// push_other_roots function. Nothing happens at other times.
void push_client_roots(const void* low, const void* high);
void push_client_stack(const void* low, const void* high);

}  // namespace jd::cycle

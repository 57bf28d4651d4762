// Disappearing links. Between the files of finalization only.
#pragma once

#include "cycle/finalization.hpp"
#include "os/extent.hpp"

namespace jd::cycle {

// Nulls the links whose objects are not marked, and forgets them.
void clear_short_links();
// Forgets the links that lie in objects that are not marked. Pre: clear_short_links() came before;
// objects were marked since.
void forget_short_links_in_dead_objects();
// Both, for long links.
void clear_long_links();
// Forgets those that lie there (world::stacks_are_gone).
void forget_links_on(const os::Extent* stacks, std::size_t count);
std::size_t count_links(LinkLength length);
// Calls visit(address) for all links' own addresses and what they mean.
void visit_link_addresses(void (*visit)(base::Word address));
void visit_links(LinkLength length, void (*visit)(void* object, void** link));

// What lies outside the heap is never unreachable; what was freed by hand always is.
bool is_reachable(base::Word object);

}  // namespace jd::cycle

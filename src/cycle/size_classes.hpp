// Which size classes requests get: few sizes in a small heap (docs/design/alloc.md, "Small heaps"),
// and two classes for each only where pointers to the ends of objects hold them
// (docs/design/heap.md, "Past the end"). A heap goes over to all sizes once, for good.
// Pre of each: the heap's lock is held.
#pragma once

#include <cstddef>

namespace jd::cycle {

// For a heap that is about to be made, by what the program has set by then.
void start_size_classes();
// The heap has so many bytes now.
void note_heap_size(std::size_t bytes);
// A collection has swept. Pre: nothing is left of what died in blocks of its own.
void reconsider_size_classes();

}  // namespace jd::cycle

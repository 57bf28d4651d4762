// How a collection marks what its roots lead to. Pre, of each function: the heap's lock is held,
// and the world stands.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jd::cycle {

// By what earlier collections took (mark/choice.hpp). A partial collection, or one that marks in
// steps, has no choice, and tells nothing of others.
enum class Marking { Whole, PartialOrInSteps };
void choose_how_to_mark(Marking marking);

// What it took to mark all that the roots lead to. Without a choice of company the collection says
// nothing of that, and was no trial of it.
struct Reaching {
  std::uint64_t ns;
  bool had_choice;
};
void note_how_marked(std::size_t objects, Reaching reaching);

// Marks what uncollectable objects and the roots name, and queues its contents.
void queue_roots(char* stack_top);

}  // namespace jd::cycle

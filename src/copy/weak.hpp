// Weak references and ephemerons: objects of two kinds whose words do not count as references.
// Ephemerons: Hayes, "Ephemerons: A New Finalization Mechanism" (1997).
//
// Differs from it: there are no queues. Each round looks at every ephemeron, and rounds go on until
// one marks nothing: quadratic where ephemerons' values lead to each other's keys in a long chain.
#pragma once

#include "heap/kinds.hpp"
#include "mark/marker.hpp"

namespace jd::copy {

using base::Word;

struct Weak {
  Word target;
};
struct Ephemeron {
  Word key;
  Word value;
};

// The kinds of the two, made when first asked for; kMaxKinds when there are no more. Pre: the
// heap's lock is held.
unsigned weak_kind();
unsigned ephemeron_kind();

// After marking, and again when more was marked: marks the values of ephemerons whose keys are
// marked, and what these lead to; then nulls what is not. Pre: the world is stopped.
void settle_weak(mark::Marker* marker);

// The same, step by step, for a collector of another sort. Calls visit(value) for ephemerons whose
// keys are live and whose values are not; false if there were none. Then nulls what is not live.
bool visit_ephemeron_values(bool (*is_live)(Word word), void (*visit)(Word* value));
void forget_dead_weak(bool (*is_live)(Word word));
bool is_weak_kind(unsigned kind);
bool is_ephemeron_kind(unsigned kind);

// Calls visit(word) for each word of a live weak reference or ephemeron.
void visit_weak_words(void (*visit)(Word* word));

}  // namespace jd::copy

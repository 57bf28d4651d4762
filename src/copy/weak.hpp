// Weak references and ephemerons: objects of two kinds whose words do not count as references.
// Ephemerons: Hayes, "Ephemerons: A New Finalization Mechanism" (1997).
//
// Differs from it: there are no queues. Each pass looks at every ephemeron, upwards and downwards
// in turn, until one marks nothing. From the second on a value is traced at once, so that a pass
// follows a chain, in which values lead to each other's keys, as long as it goes the pass's way
// through memory. Where that does not end after a few, the chain turns too often: then each
// ephemeron waits for the object that it lacks (waiting_ephemerons.hpp). Not under mcc, where
// passes go on.
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
// marked, and what these lead to. Pre: the world is stopped.
void mark_ephemerons_values(mark::Marker* marker);
// Does that, then nulls what is not marked.
void settle_weak(mark::Marker* marker);

// The same, step by step, for a collector of another sort.
struct Tracing {
  bool (*is_live)(Word word);
  void (*visit)(Word* value);  // makes what a word means live
  void (*trace)();             // and then what all visited lead to
};
// Makes the values of live ephemerons whose keys are live live. False if so many passes were not
// enough (0: any number will be made). Pre: all is traced.
bool trace_ephemerons(const Tracing& tracing, unsigned most_passes);
// Nulls what is not live; of ephemerons that are not marked themselves, the value only with its
// key, or where it is no object: finalization may bring them back.
void forget_dead_weak(bool (*is_live)(Word word));
bool is_weak_kind(unsigned kind);
bool is_ephemeron_kind(unsigned kind);
// What the object holds if it is an ephemeron, be it marked or not: its value. 0 if it is none, or
// its key is dead. Pre: forget_dead_weak() was called.
Word held_by_ephemeron(const heap::Place& object);

// Calls visit(word) for each word of a live weak reference or ephemeron.
void visit_weak_words(void (*visit)(Word* word));

}  // namespace jd::copy

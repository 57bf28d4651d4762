// What the room cycle does for allocation.
#pragma once

#include <cstddef>

#include "heap/space.hpp"

namespace jd::alloc {

using heap::BlockNumber;

// Defined by cycle. Pre of make_room: the heap's lock is held.
struct Pacer {
  // Starts the runtime; the thread is not registered. Any number of calls.
  void (*start)();
  // Makes room for a run of `blocks` blocks by collecting or growing; the lock may be released
  // meanwhile. `attempt`: how often it was called for the same allocation before. False: nothing
  // was made. For one block the caller then tries once more, and may take kept blocks
  // (Kept::MayGo); the second false is final.
  bool (*make_room)(BlockNumber blocks, unsigned attempt);
  // Is so much allocated since the last collection that one is to come first, though there are free
  // blocks? Asked often, so it does not look at what other threads have counted. Pre: as there.
  bool (*collects_first)();
  // Would make_room give a block without more collections than the program's allocation calls for?
  // Pre: as there.
  bool (*has_room)();
  // Did the last collection, a full one, find little, and was little allocated since? Then another
  // would hardly find more than what the program has let go of since. Pre: as there.
  bool (*found_little)();
  // Have small objects, one after another, got next to nothing by a collection each? Then memory
  // has run out, and this one is to be refused. Pre: as there; make_room was called.
  bool (*ends_in_vain)();
  // Collects if that was put off and is not any more, or begins a collection in steps, or goes on
  // with one, if it is time. Pre: collection_waits; the heap's lock is held, and may be released
  // meanwhile.
  void (*catch_up)();
  // A slow path begins: the place for stress collections and for finalizers that are due. The lock
  // is not held.
  void (*on_slow_path)();
  // Memory has run out: what the client's out-of-memory function returns. The lock is not held.
  void* (*out_of_memory)(std::size_t bytes);
};
extern const Pacer pacer;

// A collection waits for threads to come by: the heap had to grow where one was due, since the
// program had switched it off; or one is under way in steps, or may begin early. Threads look
// before they take blocks from the heap (they may use their reserve first). Set and cleared by
// cycle, read by allocation, all under the heap's lock.
extern bool collection_waits;

}  // namespace jd::alloc

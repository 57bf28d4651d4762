// Ephemerons that wait for objects to be marked, found again by the marks.
#pragma once

#include <cstdint>

#include "heap/growable.hpp"
#include "heap/space.hpp"

namespace jd::copy {

struct Ephemeron;

// Which of the objects that are waited for have a mark by now is seen from their blocks' mark bits,
// 64 slots at a time: no object is looked at before it is marked. Memory apart from the heap: 16
// bytes for each that waits, and 144 for each block. In a stopped world.
class Waiting {
 public:
  // The ephemeron waits for the object. False when memory has run out.
  [[nodiscard]] bool add(const heap::Place& object, Ephemeron* ephemeron);
  // All are added. False when memory has run out.
  [[nodiscard]] bool prepare();
  // Takes those out whose objects are marked, visit(ephemeron) for each, which may mark more. Those
  // in blocks that it went by already wait for the next call. False if there were none.
  template <class Visit>
  bool take_marked(Visit visit);
  void clear();

 private:
  struct Wait {
    base::Word object;
    Ephemeron* ephemeron;
  };
  struct BlockOf {
    heap::Block* block;
    std::uint64_t slots[heap::kBitWords];  // those that somebody waits for
    Wait* begin;                           // the block's
    Wait* end;
  };

  // Where the ephemerons that wait for the object begin.
  static Wait* first_of(const BlockOf& of, base::Word object);

  heap::Growable<Wait> waits_;  // by object, once prepared
  heap::Growable<BlockOf> blocks_;
};

template <class Visit>
bool Waiting::take_marked(Visit visit) {
  bool any = false;
  for (BlockOf& of : blocks_) {
    for (unsigned w = 0; w < heap::kBitWords; ++w) {
      for (std::uint64_t found = of.slots[w] & of.block->marks[w]; found != 0;
           found = of.slots[w] & of.block->marks[w]) {
        const heap::Place place{of.block, w * 64 + base::lowest_bit(found)};
        of.slots[w] &= ~(found & (0 - found));
        const base::Word object = place.address();
        any = true;
        for (Wait* wait = first_of(of, object); wait != of.end && wait->object == object; ++wait) {
          visit(wait->ephemeron);
        }
      }
    }
  }
  return any;
}

}  // namespace jd::copy

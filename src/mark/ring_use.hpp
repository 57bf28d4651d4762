// Whether the rings pay is measured while the marker works. Where objects lie in the order in which
// they are visited, many processors fetch the lines ahead by themselves, but only if the visit's
// order comes from a stack alone: in the rings a hundred objects wait, from as many places. So a
// collection begins without the rings, in turns of so many entries of the stack, and takes to them
// as soon as it has lost some tens of microseconds by that (docs/design/mark.md, "Without the
// rings").
//
// Not the other way: what the rings leave unmarked lies in pieces.
#pragma once

#include <cstdint>

namespace jd::mark {

// A marker's own, as it is.
class RingUse {
 public:
  constexpr RingUse() = default;

  // A collection begins.
  void begin();
  [[nodiscard]] bool with_rings() const { return with_rings_; }
  // What marking took since this was last called, and how many objects were new.
  void note(std::uint64_t objects, std::uint64_t ns);

  // Guesses, these four (docs/design/mark.md, "Without the rings").
  // What a collection may lose before it takes to the rings, in nanoseconds: to wait for some
  // hundred misses, or that the first lines of all arrive.
  static constexpr std::int64_t kMostLost = 50'000;
  // A collection that marks fewer with the rings tells nothing.
  static constexpr std::uint64_t kLeastObjects = 4096;
  // Collections that begin with the rings after others that soon took to them; twice as many each
  // time.
  static constexpr unsigned kMostSkipped = 63;
  // One in so many is marked with the rings, to see what they take now.
  static constexpr unsigned kRefresh = 32;

 private:
  void learn();

  // Of a collection with the rings, the last that used them; 0 before the first.
  double ns_an_object_ = 0;
  // Of this collection.
  std::uint64_t ring_objects_ = 0;
  std::uint64_t ring_ns_ = 0;
  std::uint64_t other_objects_ = 0;
  std::int64_t lost_ = 0;
  // So many of the next collections begin with the rings.
  unsigned to_skip_ = 0;
  // What that was set to last: about twice as many each time that a collection which began without
  // the rings soon took to them, and 0 when one did not.
  unsigned skipped_ = 0;
  // Collections that began without the rings since one began with them to see what they take.
  unsigned since_refresh_ = 0;
  bool with_rings_ = false;
};

}  // namespace jd::mark

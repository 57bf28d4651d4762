#include "copy/waiting_ephemerons.hpp"

#include <algorithm>

namespace jd::copy {

bool Waiting::add(const heap::Place& object, Ephemeron* ephemeron) {
  return waits_.push({object.address(), ephemeron});
}

bool Waiting::prepare() {
  std::sort(waits_.begin(), waits_.end(),
            [](const Wait& a, const Wait& b) { return a.object < b.object; });
  for (Wait& wait : waits_) {
    heap::Place place;
    if (!heap::find_place(wait.object, &place)) continue;
    if (blocks_.count() == 0 || (blocks_.end() - 1)->block != place.block) {
      if (!blocks_.push({place.block, {}, &wait, &wait})) return false;
    }
    BlockOf& of = *(blocks_.end() - 1);
    of.slots[place.slot / 64] |= std::uint64_t{1} << (place.slot % 64);
    of.end = &wait + 1;
  }
  return true;
}

Waiting::Wait* Waiting::first_of(const BlockOf& of, base::Word object) {
  return std::lower_bound(of.begin, of.end, object,
                          [](const Wait& wait, base::Word o) { return wait.object < o; });
}

void Waiting::clear() {
  waits_.clear();
  blocks_.clear();
}

}  // namespace jd::copy

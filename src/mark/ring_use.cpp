#include "mark/ring_use.hpp"

#include "base/bits.hpp"

namespace jd::mark {

void RingUse::begin() {
  learn();
  ring_objects_ = ring_ns_ = other_objects_ = 0;
  lost_ = 0;
  with_rings_ = true;
  if (ns_an_object_ == 0) return;
  if (to_skip_ != 0) {
    --to_skip_;
  } else if (++since_refresh_ == kRefresh) {
    since_refresh_ = 0;
  } else {
    with_rings_ = false;
  }
}

// From the collection that ended.
void RingUse::learn() {
  if (ring_objects_ >= kLeastObjects) {
    ns_an_object_ = static_cast<double>(ring_ns_) / static_cast<double>(ring_objects_);
  }
  if (other_objects_ == 0) return;
  // An eighth is a guess, too.
  if (other_objects_ > ring_objects_ / 8) {
    skipped_ = 0;
  } else {
    skipped_ = base::min_of(2 * skipped_ + 1, kMostSkipped);
    to_skip_ = skipped_;
  }
}

void RingUse::note(std::uint64_t objects, std::uint64_t ns) {
  if (with_rings_) {
    ring_objects_ += objects;
    ring_ns_ += ns;
    return;
  }
  other_objects_ += objects;
  const auto with_rings = static_cast<std::int64_t>(ns_an_object_ * static_cast<double>(objects));
  lost_ += static_cast<std::int64_t>(ns) - with_rings;
  with_rings_ = lost_ > kMostLost;
  // What was gained pays for no more than that.
  lost_ = base::max_of(lost_, -kMostLost);
}

}  // namespace jd::mark

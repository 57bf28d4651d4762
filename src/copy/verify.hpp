// The check of a moving collection (copy.req.sound). It shares no code with what chose, moved and
// rewrote; but the heap's look-ups (find_mixed, typed_at) and walks (for_each_stretch,
// for_each_marked) are those that the collection used, too.
#pragma once

namespace jd::copy {

// After marking, and again after moving, before the sweep: ends the program with a message if a
// pointer word of a live typed object means anything but a live object, or memory outside of the
// heap. Pre: the world is stopped.
void verify_typed_words();
// After moving: if a pinned object is not where it was.
void verify_pins();

}  // namespace jd::copy

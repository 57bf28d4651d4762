#include "copy/weak.hpp"

#include "copy/waiting_ephemerons.hpp"
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/walk.hpp"

namespace jd::copy {
namespace {

using heap::Block;

// Under the heap's lock; 0 until they exist.
unsigned weak_number = 0;
unsigned ephemeron_number = 0;

// Layouts without pointers, so that the objects move.
heap::Layout weak_layout = {};
heap::Layout ephemeron_layout = {};

unsigned make_kind(unsigned* number, heap::Layout* layout, const char* name, std::size_t bytes) {
  if (*number != 0) return *number;
  const unsigned made = heap::add_kind(0, false, true);
  if (made == heap::kMaxKinds) return made;
  layout->self = layout;
  layout->name = name;
  layout->fixed_words = static_cast<std::uint32_t>(bytes / sizeof(Word));
  // No hole has so much: jd_new, which must not make them, comes to the slow path, and is told.
  layout->bytes = UINT32_MAX;
  layout->fixed = UINT32_MAX;
  heap::kinds[made].layout_from = heap::LayoutFrom::Block;
  heap::kinds[made].layout = layout;
  *number = made;
  return made;
}

// In the heap, but freed by hand: no object any more.
bool is_no_object(Word word) {
  heap::Place place;
  return heap::in_heap(word) && !heap::find_object_in_stopped_world(word, &place);
}

// Not marked, or freed by hand. (Asked of each ephemeron in each round.)
bool is_dead(Word word) {
  heap::Place place;
  return heap::in_heap(word) &&
         (!heap::find_object_in_stopped_world(word, &place) || !place.marked());
}

template <class Object>
Object* object_at(heap::BlockNumber number, const Block& block, unsigned slot) {
  return reinterpret_cast<Object*>(heap::block_address(number) +
                                   std::size_t{slot} * block.slot_size);
}

// Calls visit(object) for each object of a kind; also for those that nothing has marked, but what
// is finalized now may bring back.
template <class Object, class Visit>
void for_each(unsigned kind, Visit visit) {
  if (kind == 0) return;
  heap::for_each_block([&](heap::BlockNumber number, Block& block) {
    if (block.state != heap::BlockState::Small || block.kind != kind) return;
    heap::for_each_bit(block.allocated, block.slots,
                       [&](unsigned slot) { visit(object_at<Object>(number, block, slot)); });
  });
}

// The same for those that are marked.
template <class Object, class Visit>
void for_each_marked(unsigned kind, Visit visit) {
  if (kind == 0) return;
  heap::for_each_block([&](heap::BlockNumber number, Block& block) {
    if (block.state != heap::BlockState::Small || block.kind != kind) return;
    heap::for_each_marked(block,
                          [&](unsigned slot) { visit(object_at<Object>(number, block, slot)); });
  });
}

// The same from the last to the first.
template <class Object, class Visit>
void for_each_marked_downwards(unsigned kind, Visit visit) {
  if (kind == 0) return;
  for (heap::BlockNumber number = heap::space.committed; number-- > 1;) {
    Block& block = heap::space.blocks[number];
    if (block.state != heap::BlockState::Small || block.kind != kind) continue;
    for (unsigned slot = block.slots; slot-- > 0;) {
      if (block.is_allocated(slot) && block.marked(slot)) {
        visit(object_at<Object>(number, block, slot));
      }
    }
  }
}

bool is_marked_or_outside(Word word) { return !is_dead(word); }

// Used in a stopped world only.
mark::Marker* value_marker = nullptr;
Waiting waiting;

// Whoever has a live value is done; and a key that is no object any more will not live again.
bool wait_for_marks(Ephemeron* ephemeron) {
  heap::Place own;
  heap::Place key;
  if (ephemeron->key == 0 || is_marked_or_outside(ephemeron->value)) return true;
  if (!heap::find_place(base::as_word(ephemeron), &own)) return true;
  const bool outside = !heap::in_heap(ephemeron->key);
  if (!outside && !heap::find_object_in_stopped_world(ephemeron->key, &key)) return true;
  if ((outside || !own.marked()) && !waiting.add(own, ephemeron)) return false;
  return outside || waiting.add(key, ephemeron);
}

// False when memory has run out; some may have been marked.
bool mark_values_of_waiting(mark::Marker* marker) {
  waiting.clear();
  bool added = true;
  for_each<Ephemeron>(ephemeron_number, [&added](Ephemeron* ephemeron) {
    added = added && wait_for_marks(ephemeron);
  });
  if (!added || !waiting.prepare()) return false;
  const auto mark_value = [marker](Ephemeron* ephemeron) {
    heap::Place own;
    if (!heap::find_place(base::as_word(ephemeron), &own) || !own.marked()) return;
    if (!is_marked_or_outside(ephemeron->key)) return;
    marker->mark_word(ephemeron->value);
    marker->drain();
  };
  while (waiting.take_marked(mark_value)) {
  }
  return true;
}

}  // namespace

unsigned weak_kind() {
  return make_kind(&weak_number, &weak_layout, "weak reference", sizeof(Weak));
}
unsigned ephemeron_kind() {
  return make_kind(&ephemeron_number, &ephemeron_layout, "ephemeron", sizeof(Ephemeron));
}

bool is_weak_kind(unsigned kind) { return weak_number != 0 && kind == weak_number; }
bool is_ephemeron_kind(unsigned kind) { return ephemeron_number != 0 && kind == ephemeron_number; }

Word held_by_ephemeron(const heap::Place& object) {
  if (!is_ephemeron_kind(object.block->kind)) return 0;
  const auto* const ephemeron = reinterpret_cast<const Ephemeron*>(object.address());
  return ephemeron->key != 0 ? ephemeron->value : 0;
}

bool trace_ephemerons(const Tracing& tracing, unsigned most_passes) {
  bool any = false;
  bool at_once = false;
  const auto look = [&](Ephemeron* ephemeron) {
    if (ephemeron->key == 0 || !tracing.is_live(ephemeron->key)) return;
    if (tracing.is_live(ephemeron->value)) return;
    tracing.visit(&ephemeron->value);
    // A value may hold nothing.
    if (!tracing.is_live(ephemeron->value)) return;
    any = true;
    if (at_once) tracing.trace();
  };
  for (unsigned passes = 1;; ++passes) {
    any = false;
    if (passes % 2 == 1) {
      for_each_marked<Ephemeron>(ephemeron_number, look);
    } else {
      for_each_marked_downwards<Ephemeron>(ephemeron_number, look);
    }
    if (!any) return true;
    if (!at_once) tracing.trace();
    at_once = true;
    if (passes == most_passes) return false;
  }
}

void forget_dead_weak(bool (*is_live)(Word word)) {
  for_each<Ephemeron>(ephemeron_number, [is_live](Ephemeron* ephemeron) {
    if (ephemeron->key == 0 || !is_live(ephemeron->key)) *ephemeron = {0, 0};
    // Freed, or no pointer that holds anything. What an ephemeron that is not marked holds was not
    // traced, and may be wanted: finalization may bring the ephemeron back.
    heap::Place place;
    const bool is_marked = heap::find_place(base::as_word(ephemeron), &place) && place.marked();
    if (is_marked ? !is_live(ephemeron->value) : is_no_object(ephemeron->value)) {
      ephemeron->value = 0;
    }
  });
  for_each<Weak>(weak_number, [is_live](Weak* weak) {
    if (!is_live(weak->target)) weak->target = 0;
  });
}

void mark_ephemerons_values(mark::Marker* marker) {
  // Up, down, and up again: a chain that turns at a few links is done. A guess.
  constexpr unsigned kMostPasses = 3;
  value_marker = marker;
  const Tracing tracing = {.is_live = is_marked_or_outside,
                           .visit = [](Word* value) { value_marker->mark_word(*value); },
                           .trace = [] { value_marker->drain(); }};
  if (trace_ephemerons(tracing, kMostPasses)) return;
  if (!mark_values_of_waiting(marker)) trace_ephemerons(tracing, 0);
}

void settle_weak(mark::Marker* marker) {
  mark_ephemerons_values(marker);
  forget_dead_weak(is_marked_or_outside);
}

void visit_weak_words(void (*visit)(Word* word)) {
  for_each_marked<Weak>(weak_number, [visit](Weak* weak) { visit(&weak->target); });
  for_each_marked<Ephemeron>(ephemeron_number, [visit](Ephemeron* ephemeron) {
    visit(&ephemeron->key);
    visit(&ephemeron->value);
  });
}

}  // namespace jd::copy

#include "cycle/finalization.hpp"

#include <atomic>

#include "copy/policy.hpp"
#include "copy/weak.hpp"
#include "cycle/links.hpp"
#include "cycle/measured.hpp"
#include "cycle/settings.hpp"
#include "cycle/table_limit.hpp"
#include "heap/growable.hpp"
#include "heap/layout.hpp"
#include "heap/mixed.hpp"
#include "heap/pointer_table.hpp"
#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/log.hpp"

namespace jd::cycle {
namespace {

using base::Word;
using heap::heap_lock;
using heap::Place;
using os::LockGuard;

struct Entry {
  heap::NodeNumber next = 0;
  std::uint32_t offset : 30 = 0;  // of the address that was registered
  FinalizerOrder order : 2 = FinalizerOrder::Ordered;
  Word key = 0;  // the object's first byte
  Finalizer finalizer;
};
static_assert(sizeof(Entry) == 32 && kMostOffset >> 30 == 0);

struct ToggleReference {
  Word object;
  bool strong;
};

// All under the heap's lock, but for the count, which anybody reads as a hint (relaxed).
using Finalizers = heap::PointerTable<Entry, 4>;
Finalizers finalizers;
TableLimit finalizers_limit;
// Entries that were taken out of the table when they became due. Usually all run right after the
// collection that queued them.
Finalizers::Queue due;
std::atomic<std::size_t> due_count{0};
// How many of the last of these tell_about_finalization has not told yet.
std::size_t due_untold = 0;
// An object that keeps itself from being finalized (0: none). Written in a stopped world; whoever
// warns of it takes it (relaxed: it is only a number).
std::atomic<Word> cycle_found{0};
heap::Growable<ToggleReference> toggle_references;
// The collection after which the program's notifier was last called.
std::uint64_t notified_at = 0;

// How many collections have looked for what is to be finalized. Written in a stopped world, read by
// all (relaxed: it is only a number).
std::atomic<std::uint64_t> rounds{0};

// Finalizers that this thread's finalizers run inside: how deep, where the stack of each run is,
// the round in which the last of them began, and the calls passed over since. At depth d, one call
// in 2^d runs, and none before another round: the run outside would come to the same ones.
constexpr unsigned kDeepest = 12;
constinit thread_local unsigned depth = 0;
constinit thread_local const char* runs[kDeepest] = {};
constinit thread_local std::uint64_t round_of_run = 0;
constinit thread_local unsigned passed_over = 0;

// A finalizer may leave by longjmp (ECL's do), or by an exception: its run is over when another
// begins that is no deeper on the stack.
void forget_runs_left(const char* here) {
  while (depth != 0 && runs[depth - 1] <= here) --depth;
}

void publish_due() { due_count.store(due.count, std::memory_order_relaxed); }

Place place_of(Word object) {
  Place place{};
  JD_CHECK(heap::find_place(object, &place), "an object with a finalizer is not in the heap");
  return place;
}

// Stays, though nobody has marked it: of a block of mixed objects that nobody looked into, it is
// not known yet where they begin, and the sweep goes by that.
void keep(const Place& place) {
  if (place.is_mixed()) heap::learn_starts(heap::number_of(place.block));
  place.set_mark();
}

// Marks what the object's words lead to, but not the object itself.
void mark_all_but_self(mark::Marker* marker, const Place& place) {
  const Word begin = place.address();
  const Word end = begin + place.size();
  if (place.block->scan == heap::Scan::None) return;
  const auto mark_words = [=](const Word* first, std::size_t count) {
    for (const Word* at = first; at != first + count; ++at) {
      if (*at < begin || *at >= end) marker->mark_word(*at);
    }
  };
  // What the layout says is no pointer may hold the address of an object that has moved.
  const heap::Kind& kind = heap::kinds[place.block->kind];
  heap::Typed typed;
  if (!kind.has_layout()) {
    mark_words(reinterpret_cast<const Word*>(begin), place.size() / sizeof(Word));
  } else if (heap::typed_at(begin, kind, &typed)) {
    heap::for_each_stretch(typed, mark_words);
  }
}

// What a finalizable object refers to stays, by the rule of its order.
void mark_from(mark::Marker* marker, const Entry& entry) {
  if (entry.order == FinalizerOrder::NoOrder) return;
  const Place place = place_of(entry.key);
  const bool ignores_self = entry.order == FinalizerOrder::IgnoreSelf;
  if (ignores_self) {
    mark_all_but_self(marker, place);
  } else {
    marker->push_contents(place);
  }
  // Its words are none to the marker.
  const Word held = copy::held_by_ephemeron(place);
  const bool holds_itself = held - place.address() < place.size();
  if (held != 0 && !(ignores_self && holds_itself)) marker->mark_word(held);
  marker->drain();
  if (place.marked()) cycle_found.store(entry.key, std::memory_order_relaxed);
}

// Takes out the entries whose objects are not marked. Objects that were freed by hand have no
// finalizer any more.
Finalizers::Queue take_unreachable() {
  Finalizers::Queue unreachable;
  finalizers.sift(&unreachable, [](Entry* entry) {
    Place place;
    if (!heap::find_object(entry->key, &place)) return Finalizers::To::Nowhere;
    return place.marked() ? Finalizers::To::Table : Finalizers::To::Queue;
  });
  return unreachable;
}

bool comes_last(const Entry& entry) { return entry.order == FinalizerOrder::Unreachable; }

void enqueue_unreachable(mark::Marker* marker, Finalizers::Queue now_due) {
  bool any_last = false;
  // What the due objects refer to must be there when their finalizers run. Only objects without
  // order have not marked it yet.
  finalizers.sift_queue(&now_due, [&](Entry* entry) {
    if (place_of(entry->key).marked()) return Finalizers::To::Table;
    any_last |= comes_last(*entry);
    return Finalizers::To::Queue;
  });
  finalizers.for_each_in(now_due, [&](const Entry* entry) {
    const Place place = place_of(entry->key);
    if (entry->order == FinalizerOrder::NoOrder) marker->push_contents(place);
    if (!comes_last(*entry)) keep(place);
  });
  marker->drain();
  if (any_last) {
    if (copy::in_use) copy::mark_ephemerons_values(marker);
    // Those wait that turn out to be reachable from others that are due.
    finalizers.sift_queue(&now_due, [](Entry* entry) {
      const Place place = place_of(entry->key);
      if (comes_last(*entry) && place.marked()) return Finalizers::To::Table;
      keep(place);
      return Finalizers::To::Queue;
    });
  }
  due_untold += now_due.count;
  finalizers.append(&due, now_due);
  publish_due();
}

bool take_due(Entry* taken) {
  LockGuard guard(heap_lock);
  if (!finalizers.pop(&due, taken)) return false;
  due_untold = base::min_of(due_untold, due.count);
  publish_due();
  return true;
}

void clear_toggle_references() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < toggle_references.count(); ++i) {
    const ToggleReference& reference = toggle_references[i];
    if (is_reachable(reference.object)) toggle_references[kept++] = reference;
  }
  toggle_references.set_count(kept);
}

}  // namespace

TableResult set_finalizer(void* object, std::uint32_t offset, Finalizer finalizer,
                          FinalizerOrder order, Finalizer* old) {
  const Word key = base::as_word(object);
  Entry* entry = finalizers.find(key);
  *old = entry != nullptr ? entry->finalizer : Finalizer{};
  if (finalizer.function == nullptr) {
    finalizers.remove(key);
    return TableResult::Ok;
  }
  const bool known = entry != nullptr;
  if (!known) {
    finalizers_limit.before_adding_to(finalizers);
    entry = finalizers.add(key);
  }
  if (entry == nullptr) return TableResult::NoMemory;
  entry->finalizer = finalizer;
  entry->order = order;
  entry->offset = offset;
  return known ? TableResult::Duplicate : TableResult::Ok;
}

TableResult add_toggle_reference(void* object, bool strong) {
  return toggle_references.push({base::as_word(object), strong}) ? TableResult::Ok
                                                                 : TableResult::NoMemory;
}

void prepare_toggle_references() {
  if (settings.toggle_reference == nullptr) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < toggle_references.count(); ++i) {
    ToggleReference reference = toggle_references[i];
    const GC_ToggleRefStatus status = settings.toggle_reference(base::as_pointer(reference.object));
    if (status == GC_TOGGLE_REF_DROP) continue;
    reference.strong = status == GC_TOGGLE_REF_STRONG;
    toggle_references[kept++] = reference;
  }
  toggle_references.set_count(kept);
}

void visit_finalization_roots(world::RootVisitor* visitor) {
  // A finalizer's data is reachable for as long as the finalizer is registered.
  finalizers.for_each([visitor](Entry* entry) {
    void** data = &entry->finalizer.client_data;
    if (*data != nullptr) visitor->range(data, data + 1);
  });
  finalizers.for_each_in(due, [visitor](Entry* entry) {
    void** data = &entry->finalizer.client_data;
    visitor->range(&entry->key, &entry->key + 1);
    visitor->range(data, data + 1);
  });
  for (ToggleReference& reference : toggle_references) {
    if (reference.strong) visitor->range(&reference.object, &reference.object + 1);
  }
}

namespace {

// The address by which the program knows the object. It may have been freed by hand; its block's
// kind is all that is asked for.
void* programs_address(const Entry& entry) {
  Word object = entry.key;
  if (heap::in_heap(object)) {
    const heap::Block& block = heap::space.blocks[heap::block_number(object)];
    if (block.state != heap::BlockState::Free) {
      object = heap::object_in(object, heap::kinds[block.kind]);
    }
  }
  return base::as_pointer(object + entry.offset);
}

}  // namespace

void finalize_after_marking(mark::Marker* marker) {
  rounds.fetch_add(1, std::memory_order_relaxed);
  const Finalizers::Queue unreachable = take_unreachable();
  clear_short_links();
  finalizers.for_each_in(unreachable, [marker](const Entry* entry) {
    if (!place_of(entry->key).marked()) mark_from(marker, *entry);
  });
  // What finalizable objects lead to may be an ephemeron, whose value they lead to, too; and so may
  // what due ones without order do.
  if (copy::in_use && unreachable.count != 0) copy::mark_ephemerons_values(marker);
  enqueue_unreachable(marker, unreachable);
  if (copy::in_use) copy::mark_ephemerons_values(marker);
  forget_short_links_in_dead_objects();
  // As bdwgc: an object whose finalizer is due keeps its toggle reference, which may become strong
  // again, until the finalizer has run.
  clear_toggle_references();
  clear_long_links();
}

void tell_about_finalization() {
  if (due_untold == 0) return;
  std::size_t told = due.count - due_untold;
  due_untold = 0;
  if (settings.await_finalize == nullptr) return;
  finalizers.for_each_in(due, [&told](const Entry* entry) {
    if (told != 0) {
      --told;
    } else {
      settings.await_finalize(programs_address(*entry));
    }
  });
}

void warn_of_cycles() {
  if (cycle_found.load(std::memory_order_relaxed) == 0) return;
  const Word object = cycle_found.exchange(0, std::memory_order_relaxed);
  if (object != 0) warn("GC Warning: Finalization cycle involving %p\n", object);
}

namespace {
bool may_run(int already) {
  const unsigned most = __atomic_load_n(&settings.most_finalizers, __ATOMIC_RELAXED);
  return most == 0 || static_cast<unsigned>(already) < most;
}
}  // namespace

bool finalizers_due() { return due_count.load(std::memory_order_relaxed) != 0; }

int run_due() {
  int count = 0;
  Entry next;
  while (may_run(count) && take_due(&next)) {
    next.finalizer.function(programs_address(next), next.finalizer.client_data);
    ++count;
  }
  return count;
}

namespace {

// Unless those calls come from finalizers, which have had their share.
void run_due_in_turn() {
  const auto* here = static_cast<const char*>(os::frame_address());
  forget_runs_left(here);
  const std::uint64_t round = rounds.load(std::memory_order_relaxed);
  if (depth != 0 && (round == round_of_run || ++passed_over < (1u << depth))) return;
  round_of_run = round;
  passed_over = 0;
  const unsigned outer = depth;
  if (depth < kDeepest) runs[depth++] = here;
  run_due();
  depth = outer;
}

// Once after each collection.
void notify() {
  GC_finalizer_notifier_proc notifier = nullptr;
  {
    LockGuard guard(heap_lock);
    if (notified_at != measured.collections) notifier = GC_finalizer_notifier;
    notified_at = measured.collections;
  }
  if (notifier != nullptr) notifier();
}

}  // namespace

void notify_or_run() {
  if (!finalizers_due()) return;
  if (GC_finalize_on_demand == 0) {
    run_due_in_turn();
  } else {
    notify();
  }
}

void finalize_everything() {
  __atomic_store_n(&settings.most_finalizers, 0, __ATOMIC_RELAXED);
  for (;;) {
    {
      LockGuard guard(heap_lock);
      // Nobody awaits what is still reachable.
      finalizers.sift(&due, [](Entry*) { return Finalizers::To::Queue; });
      due_untold = 0;
      publish_due();
    }
    if (run_due() == 0) break;
  }
}

std::size_t count_finalizers_and_links() {
  return finalizers.count() + count_links(LinkLength::Short) + count_links(LinkLength::Long);
}

FinalizationCounts count_finalization() {
  return {finalizers.count(), count_links(LinkLength::Short), count_links(LinkLength::Long),
          due.count};
}

void rekey_finalizers(Word (*new_address)(Word object)) { finalizers.rekey(new_address); }

void visit_immovable(void (*visit)(Word address)) {
  visit_link_addresses(visit);
  for (const ToggleReference& reference : toggle_references) visit(reference.object);
}

void visit_table(FinalizationTable table, void (*visit)(void* object, void** link)) {
  switch (table) {
    case FinalizationTable::ShortLinks:
      return visit_links(LinkLength::Short, visit);
    case FinalizationTable::LongLinks:
      return visit_links(LinkLength::Long, visit);
    case FinalizationTable::Finalizers:
      return finalizers.for_each(
          [visit](Entry* entry) { visit(base::as_pointer(entry->key), nullptr); });
    case FinalizationTable::Due:
      return finalizers.for_each_in(
          due, [visit](const Entry* entry) { visit(base::as_pointer(entry->key), nullptr); });
  }
}

}  // namespace jd::cycle

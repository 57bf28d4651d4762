// Finalizers, disappearing links and toggle references.
//
// Requirement (docs/design/cycle.md): cycle.req.lock — finalizers run without the heap's lock.
//
// Tables are apart from the heap, so that nothing in them is a root but what says so. Orders:
// bdwgc's four (Boehm, "Destructors, Finalizers, and Synchronization", 2003, argues for the first).
// Pre of every function that does not say otherwise: the heap's lock is held.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mark/marker.hpp"
#include "world/roots.hpp"

namespace jd::cycle {

using FinalizerFunction = void (*)(void* object, void* client_data);

enum class FinalizerOrder : std::uint8_t {
  Ordered,      // what the object refers to is finalized later
  IgnoreSelf,   // the same, but the object's references to itself do not count
  NoOrder,      // references do not count
  Unreachable,  // as Ordered, and only when no object with NoOrder finalization reaches it
};

enum class TableResult : std::uint8_t { Ok, Duplicate, NoMemory, NotFound };

struct Finalizer {
  FinalizerFunction function = nullptr;
  void* client_data = nullptr;
};

// Of what an object's finalizer gets beyond its address.
inline constexpr std::uint32_t kMostOffset = (std::uint32_t{1} << 30) - 1;

// Sets, replaces or (function null) removes the object's finalizer, which gets object + offset.
// `object` is the beginning of an object. *old receives the finalizer that was there. Differs from
// bdwgc, where another offset is another registration: an object has one finalizer.
TableResult set_finalizer(void* object, std::uint32_t offset, Finalizer finalizer,
                          FinalizerOrder order, Finalizer* old);

// Links: *link becomes null when the object becomes unreachable. Short ones before finalizers see
// the object, long ones when even they can't reach it any more.
enum class LinkLength : std::uint8_t { Short, Long };
// Duplicate: the link was registered already, and now follows `object`.
TableResult add_link(void** link, const void* object, LinkLength length);
bool remove_link(void** link, LinkLength length);
TableResult move_link(void** from, void** to, LinkLength length);

TableResult add_toggle_reference(void* object, bool strong);

// The collector's steps. Before marking: asks the toggle function, pushes what the tables keep.
void prepare_toggle_references();
void visit_finalization_roots(world::RootVisitor* visitor);
// After marking: clears links, finds out which finalizers are due, marks what they will need.
void finalize_after_marking(mark::Marker* marker);

// After the world runs again, the lock still held: the program's functions hear of what happened.
// (Not before: they take locks that a stopped thread may hold.)
void tell_about_finalization();

// Tells the program's warn function of an object that keeps itself from being finalized. Pre: no
// lock, for that function may allocate (w3m's does).
void warn_of_cycles();

// Finalizers that are due. Any thread, no lock: a hint.
bool finalizers_due();
// Runs due finalizers one by one, without the lock. Returns how many it ran.
int run_due();
// After a collection, or at a slow path: runs due finalizers, or, when the program wants to run
// them itself, tells its notifier once a collection.
void notify_or_run();
// Makes every registered finalizer due, reachable or not, and runs them. Pre: no lock.
void finalize_everything();

// Finalizers and links.
std::size_t count_finalizers_and_links();

// For reports.
struct FinalizationCounts {
  std::size_t finalizers;
  std::size_t short_links;
  std::size_t long_links;
  std::size_t due;
};
FinalizationCounts count_finalization();
// Calls visit(object, link or null) for each entry of a table.
enum class FinalizationTable : std::uint8_t { Finalizers, ShortLinks, LongLinks, Due };
void visit_table(FinalizationTable table, void (*visit)(void* object, void** link));

// For objects that move (copy/). The objects of finalizers may: their new addresses are asked for.
// Those of links and of toggle references may not, nor those in which links lie.
void rekey_finalizers(base::Word (*new_address)(base::Word object));
void visit_immovable(void (*visit)(base::Word address));

}  // namespace jd::cycle

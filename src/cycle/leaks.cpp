#include "cycle/leaks.hpp"

#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "heap/kinds.hpp"
#include "heap/space.hpp"
#include "heap/walk.hpp"
#include "mark/concurrent.hpp"
#include "os/cpu.hpp"
#include "os/log.hpp"

namespace jd::cycle {
namespace {

// Of one collection; the others are counted. As many as bdwgc tells.
constexpr unsigned kMostTold = 40;

// Typed objects are never freed by hand.
bool may_leak(const heap::Block& block) {
  const bool holds_objects = block.state == heap::BlockState::Small || heap::is_head(block);
  return holds_objects && !heap::kinds[block.kind].has_layout();
}

// Calls visit(place) for each object that is allocated and not marked.
template <class Visit>
void for_each_leaked(Visit visit) {
  heap::for_each_block([&](heap::BlockNumber, heap::Block& block) {
    if (!may_leak(block)) return;
    heap::for_each_unmarked(block, [&](unsigned slot) { visit(heap::Place{&block, slot}); });
  });
}

void tell(const heap::Place& place) {
  const MadeAt made = settings.made_at != nullptr ? settings.made_at(place) : MadeAt{};
  if (made.object != nullptr) {
    os::warn("leaked object at ", made.object, " (", made.file, ":", made.line, ", ", made.bytes,
             " bytes)");
  } else {
    const bool atomic = place.block->scan == heap::Scan::None;
    os::warn("leaked object at ", static_cast<const void*>(base::as_pointer(place.address())),
             " of ", place.size(), " bytes (", atomic ? "atomic" : "composite", ")");
  }
}

// The caller may hold the lock itself, in a function of the program's that calls exit().
bool is_locked_for_long() {
  constexpr unsigned kTries = 2000;  // longer than a collection of another thread takes; a guess
  constexpr std::uint64_t kNap = 1000000;  // 1 ms
  for (unsigned tries = 0; !mark::concurrent.try_lock_heap(); ++tries) {
    if (tries == kTries) return true;
    os::sleep_ns(kNap);
  }
  heap::heap_lock.release();
  return false;
}

// Whatever the program still holds when it ends it may hold.
[[gnu::destructor]] void look_at_the_end() {
  if (GC_find_leak == 0 || !started()) return;
  if (is_locked_for_long()) {
    os::warn("leaks are not looked for at the end: the program ends while a collection goes on");
    return;
  }
  collect_now(nullptr);
}

}  // namespace

constinit std::atomic<bool> faults_reported{false};

void report_leaks() {
  std::size_t objects = 0;
  std::size_t bytes = 0;
  for_each_leaked([&](const heap::Place& place) {
    ++objects;
    bytes += place.size();
  });
  if (objects == 0) return;
  faults_reported.store(true, std::memory_order_relaxed);
  os::warn("found ", objects, " leaked objects, ", bytes, " bytes in all:");
  std::size_t told = 0;
  for_each_leaked([&](const heap::Place& place) {
    if (told++ < kMostTold) tell(place);
  });
  if (objects > kMostTold) os::warn("and ", objects - kMostTold, " more");
}

}  // namespace jd::cycle

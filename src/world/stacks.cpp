#include "world/stacks.hpp"

#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/memory.hpp"
#include "os/safe_reading.hpp"

namespace jd::world {

char* stack_high(const Thread& thread) {
  if (thread.is_main && main_stack_bottom != nullptr && *main_stack_bottom != nullptr) {
    return *main_stack_bottom;
  }
  return thread.stack.high;
}

namespace {

// The object or free slot of the heap in which p lies: some programs make stacks of such. Empty if
// it lies elsewhere.
os::Extent in_heap_at(const char* p) {
  heap::Place place;
  if (!heap::find_place(base::as_word(p), &place)) return {};
  char* const low = base::as_pointer(place.address());
  return {low, low + place.size()};
}

// The lowest mapped address of the stack that ends at `high`, as of now: a main thread's stack
// grows. Null if it can't be told.
char* lowest_mapped(Thread* thread, char* high) {
  thread->checked.high = high;
  thread->checked.low = static_cast<char*>(os::start_of_mapping(high - 1));
  return thread->checked.low;
}

// Where what can be read of a thread's stack [low, high) begins: a program that brought the stack
// may have made guard pages of its lowest ones. (The system's are below `low`, perhaps in the same
// mapping.) A stack may be several mappings.
char* lowest_readable(char* low, char* high) {
  char probe;
  char* at = high;
  do {
    auto* start = static_cast<char*>(os::start_of_mapping(at - 1));
    if (start == nullptr) return at == high ? low : at;
    at = start;
  } while (at > low && os::read_safely(&probe, at - 1, 1));
  return base::max_of(at, low);
}

// Does sp lie on the stack that ends at `high`? What was looked up for that stack before will do
// if it says so.
bool on_stack(Thread* thread, const char* sp, char* high) {
  if (sp >= high) return false;
  if (thread->checked.high == high && thread->checked.low != nullptr && sp >= thread->checked.low) {
    return true;
  }
  // A program with many stacks has many mappings, and changes its stack between collections. Few
  // frames lie on most stacks: can all be read from the one to the other?
  constexpr auto kNear = static_cast<std::ptrdiff_t>(4 * base::kMiB);  // 16 questions; a guess
  char* const page = base::as_pointer(base::align_down(base::as_word(sp), os::page_size()));
  if (high - page <= kNear && os::end_of_readable(page, high) == high) {
    thread->checked = {page, high};
    return true;
  }
  const char* low = lowest_mapped(thread, high);
  return low != nullptr && sp >= low;
}

// Where the thread's stack that ends at `high` begins, as far as it can be read. Null if it can't
// be told.
char* lowest_of_stack(Thread* thread, char* high) {
  if (high == nullptr) return nullptr;
  char* const low = thread->stack.low;
  if (const os::Extent object = in_heap_at(high - 1); object.low != nullptr) {
    return lowest_readable(object.contains(low) ? low : object.low, high);
  }
  const bool known = low != nullptr && high == thread->stack.high && !thread->is_main;
  return known ? lowest_readable(low, high) : lowest_mapped(thread, high);
}

// The thread's own as it was created, or the piece of it that ends at `high`.
bool is_on_own(const Thread& thread, const char* sp, const char* high) {
  const auto& [low, end] = thread.stack;
  return low != nullptr && sp >= low && sp < high && high <= end;
}

// The stack that a thread runs on.
struct Current {
  char* high;     // null if it can't be told
  bool is_known;  // the thread's own, a piece of that, or the one that the program named
};

// `high`: stack_high. `object`: what of the heap the stack pointer is in.
Current stack_at(Thread* thread, char* sp, char* high, const os::Extent& object) {
  if (on_alternate_stack(*thread, sp)) return {thread->alternate.high, false};
  // Nobody told us where this one ends, but it ends where the object does. Behind that are others,
  // which it says nothing of.
  const bool ends_elsewhere = object.low != nullptr && (high <= sp || high > object.high);
  if (ends_elsewhere) return {object.high, false};
  if (is_on_own(*thread, sp, high) || on_stack(thread, sp, high)) return {high, true};
  // Its mapping's end is the furthest it can reach.
  return {static_cast<char*>(os::end_of_mapping(sp)), false};
}

}  // namespace

bool visit_stack(RootVisitor* visitor, Thread* thread, char* sp) {
  if (sp == nullptr) return false;
  char* const high = stack_high(*thread);
  const os::Extent object = in_heap_at(sp);
  // The stack is in use, whoever else has its address.
  if (object.low != nullptr) visitor->range(&object.low, &object.low + 1);
  const Current current = stack_at(thread, sp, high, object);
  if (current.high != nullptr) visitor->stack(sp, current.high);
  if (current.is_known) return is_on_own(*thread, sp, high);
  // How much of the thread's stack is in use nobody knows. A signal may have interrupted it
  // anywhere, and this one may even be a part of it.
  char* const bottom = lowest_of_stack(thread, high);
  if (bottom != nullptr) visitor->stack(bottom, high);
  return false;
}

void visit_interrupted(RootVisitor* visitor, const Thread& thread) {
  if (thread.signal_frame.low == nullptr) return;
  visitor->stack(thread.signal_frame.low, thread.signal_frame.high);
  char* const sp = thread.stopped_at;
  char* low = sp - os::kBelowStackPointer;
  char* const page = base::as_pointer(base::align_down(base::as_word(sp), os::page_size()));
  // The page below may not be there, and then nothing is kept on it.
  if (low < page && os::end_of_readable(low, page) != page) low = page;
  if (low < sp) visitor->stack(low, sp);
}

}  // namespace jd::world

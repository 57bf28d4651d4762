#include "world/roots.hpp"

#include <atomic>
#include <initializer_list>

#include "heap/growable.hpp"
#include "heap/space.hpp"
#include "os/context.hpp"
#include "os/mappings.hpp"
#include "os/memory.hpp"
#include "os/modules.hpp"
#include "world/mappings.hpp"
#include "world/stop.hpp"

namespace jd::world {
namespace {

struct Extent {
  char* low;
  char* high;
};

// All under the heap's lock, or read in a stopped world.
heap::Growable<Extent> explicit_roots;
heap::Growable<Extent> exclusions;
std::size_t own_exclusions = 0;       // the first of them
heap::Growable<Extent> library_data;  // as the loader reports it, our own left out
heap::Growable<os::ThreadLocalModule> tls_modules;
heap::Growable<Extent> forgotten;     // static data that clear_roots dropped
heap::Growable<Extent> static_roots;  // library_data less exclusions: what is scanned
std::uint64_t known_generation = 0;
std::uint64_t known_fingerprint = 0;
bool static_roots_known = false;
// What is known is not what is loaded: parts of it may be unmapped.
bool static_roots_doubtful = false;
bool libraries_ignored = false;
// Set once (release), read by collectors (acquire).
std::atomic<void (*)(RootVisitor*)> other_stacks{nullptr};
StaticRootsFilter filter = nullptr;

template <class Bounds>
bool contains(const Bounds& bounds, const void* p) {
  return p >= static_cast<void*>(bounds.low) && p < static_cast<void*>(bounds.high);
}

bool overlaps(const Extent& a, const Extent& b) { return a.low < b.high && b.low < a.high; }

// Calls visit(part) for each part of the extent that is not excluded; stops and returns false when
// that does.
template <class Visit>
bool visit_not_excluded(Extent extent, Visit visit, std::size_t from = 0) {
  for (std::size_t i = from; i < exclusions.count(); ++i) {
    const Extent& cut = exclusions[i];
    if (!overlaps(extent, cut)) continue;
    if (extent.low < cut.low && !visit_not_excluded({extent.low, cut.low}, visit, i + 1)) {
      return false;
    }
    if (cut.high >= extent.high) return true;
    extent.low = cut.high;
  }
  return visit(extent);
}

bool rebuild_static_roots() {
  static_roots.clear();
  for (const Extent& extent : library_data) {
    if (!visit_not_excluded(extent, [](Extent part) { return static_roots.push(part); })) {
      return false;
    }
  }
  return true;
}

bool ignoring_libraries() {
  return libraries_ignored ||
         (ignore_libraries_variable != nullptr && *ignore_libraries_variable != 0);
}

class Collect final : public os::ModuleVisitor {
 public:
  void data(const os::DataSegment& segment) override {
    if (!segment.in_program && ignoring_libraries()) return;
    // Our own variables hold no roots, and many words that look like pointers into the heap.
    const auto* ours = reinterpret_cast<const char*>(&heap::space);
    if (!segment.in_program && ours >= segment.low && ours < segment.high) return;
    for (const Extent& gone : forgotten) {
      if (gone.low == segment.low && gone.high == segment.high) return;
    }
    if (filter != nullptr && filter(segment.object, segment.low,
                                    static_cast<std::size_t>(segment.high - segment.low)) == 0) {
      return;
    }
    ok &= library_data.push({segment.low, segment.high});
  }
  void thread_locals(const os::ThreadLocalModule& module) override {
    if (!module.in_program && ignoring_libraries()) return;
    ok &= tls_modules.push(module);
  }
  bool ok = true;
};

bool both_ends_readable(const char* low, const char* high) {
  char probe;
  return low < high && os::read_safely(&probe, low, 1) && os::read_safely(&probe, high - 1, 1);
}

char* stack_high(const Thread& thread) {
  if (thread.is_main && main_stack_bottom != nullptr && *main_stack_bottom != nullptr) {
    return *main_stack_bottom;
  }
  return thread.stack.high;
}

// Is the thread's static thread-local storage scanned with its stack? A thread that glibc made has
// it at the stack's end.
bool static_thread_locals_are_on_stack(const Thread& thread, const os::StackBounds& area) {
  return thread.stack.low != nullptr && area.low >= thread.stack.low &&
         area.high <= stack_high(thread);
}

// A thread's static thread-local storage, unless it is scanned with its stack anyway. Only what can
// be read: glibc counts the control block in the size that it tells, so one end may lie in the
// neighbouring page, mapped or not.
Extent static_thread_locals_beside_stack(const Thread& thread) {
  const os::StackBounds area = os::static_thread_locals(thread.control_block);
  if (static_thread_locals_are_on_stack(thread, area)) return {};
  Extent readable{area.low, area.high};
  os::clip_to_readable(&readable.low, &readable.high);
  return readable;
}

// What has no entry in the vector may lie there all the same.
void visit_static_thread_locals(RootVisitor* visitor, const Thread& thread) {
  if (ignoring_libraries()) return;
  const Extent area = static_thread_locals_beside_stack(thread);
  if (area.low < area.high) visitor->range(area.low, area.high);
}

std::size_t last_module() {
  std::size_t last = 0;
  for (const os::ThreadLocalModule& module : tls_modules) {
    last = base::max_of(last, module.module);
  }
  return last;
}

// Is the module's memory where glibc puts that of libraries loaded at the start?
bool is_static(const Thread& thread, const char* block) {
  return contains(os::static_thread_locals(thread.control_block), block);
}

// Looks before it reads. True if all modules' blocks are static, and could be read.
bool visit_thread_locals_safely(RootVisitor* visitor, const Thread& thread) {
  const os::ThreadLocalBlocks blocks(thread.control_block, last_module());
  bool all_static = true;
  bool all_readable = true;
  constexpr std::size_t kTogether = 16;  // more modules than most programs have; a guess
  for (std::size_t next = 0; next < tls_modules.count();) {
    Extent extents[kTogether];
    std::size_t count = 0;
    os::PagesToRead pages;
    for (; next < tls_modules.count() && count < kTogether; ++next) {
      const os::ThreadLocalModule& module = tls_modules[next];
      auto* block = static_cast<char*>(blocks.of_module(module.module));
      all_static &= block != nullptr && is_static(thread, block);
      if (block == nullptr) continue;
      extents[count++] = {block, block + module.size};
      pages.add(block, block + module.size);
    }
    const bool readable = pages.are_readable();
    all_readable &= readable;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [low, high] = extents[i];
      char* end = readable ? high : os::end_of_readable(low, high);
      if (low < end) visitor->range(low, end);
    }
  }
  if (!all_static) visit_static_thread_locals(visitor, thread);
  return all_static && all_readable;
}

// A blocked thread runs on, and may be changing its vector of thread-local blocks: so each look
// goes by read_safely(), which costs system calls. One look is enough as long as the thread stays
// blocked and the same libraries are loaded, if it shows that all blocks lie in the static storage
// and that on the thread's stack: blocks that the thread makes from then on hold no pointers into
// the heap, which it has promised not to touch. Pre: the stack was visited up to its end.
void visit_blocked_thread_locals(RootVisitor* visitor, Thread* thread) {
  const std::uint64_t now = known_generation + 1;
  if (!static_roots_doubtful && thread->locals_on_stack_since == now) return;
  const bool all_static = visit_thread_locals_safely(visitor, *thread);
  const bool on_stack =
      static_thread_locals_are_on_stack(*thread, os::static_thread_locals(thread->control_block));
  thread->locals_on_stack_since = all_static && on_stack && !static_roots_doubtful ? now : 0;
}

// A block that is not static may be one that another library has left, which had the number before:
// glibc puts a thread's vector right only when that thread asks for the variables. Then it is of
// another size, and the library's own may be static.
void visit_thread_locals(RootVisitor* visitor, const Thread& thread) {
  if (thread.blocked || static_roots_doubtful) {
    visit_thread_locals_safely(visitor, thread);
    return;
  }
  bool all_static = true;
  for (const os::ThreadLocalModule& module : tls_modules) {
    auto* block = static_cast<char*>(os::thread_local_block(thread.control_block, module.module));
    if (block == nullptr) {
      all_static = false;
      continue;
    }
    char* end = block + module.size;
    if (!is_static(thread, block)) {
      all_static = false;
      // Its first page is there in any case.
      char* page_end = base::as_pointer(base::align_up(base::as_word(block) + 1, os::page_size()));
      if (end > page_end) end = os::end_of_readable(page_end, end);
    }
    visitor->range(block, end);
  }
  if (!all_static) visit_static_thread_locals(visitor, thread);
}

// The object or free slot of the heap in which p lies: some programs make stacks of such. Empty if
// it lies elsewhere.
Extent in_heap_at(const char* p) {
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
  if (const Extent object = in_heap_at(high - 1); object.low != nullptr) {
    return lowest_readable(contains(object, low) ? low : object.low, high);
  }
  const bool known = low != nullptr && high == thread->stack.high && !thread->is_main;
  return known ? lowest_readable(low, high) : lowest_mapped(thread, high);
}

// True if it is the thread's own stack that sp is on, all of which from there on was visited.
bool visit_stack(RootVisitor* visitor, Thread* thread, char* sp) {
  if (sp == nullptr) return false;
  char* high = stack_high(*thread);
  char* low = thread->stack.low;
  Extent object = in_heap_at(sp);
  // The stack is in use, whoever else has its address.
  if (object.low != nullptr) visitor->range(&object.low, &object.low + 1);
  const bool ends_elsewhere = object.low != nullptr && (high <= sp || high > object.high);
  if (on_alternate_stack(*thread, sp)) {
    // That, and all of the stack that the signal interrupted, of which it may be a part.
    visitor->stack(sp, thread->alternate.high);
  } else if (ends_elsewhere) {
    // Nobody told us where this one ends, but it ends where the object does. Behind that are
    // others, which it says nothing of.
    visitor->stack(sp, object.high);
  } else if (const bool on_own =
                 low != nullptr && sp >= low && sp < high && high <= thread->stack.high;
             on_own || on_stack(thread, sp, high)) {
    // The usual case: on the thread's own stack, or on a piece of it. Or on the client's own.
    visitor->stack(sp, high);
    return on_own;
  } else {
    // Nobody told us where this one ends. Its mapping's end is the furthest it can reach.
    auto* end = static_cast<char*>(os::end_of_mapping(sp));
    if (end != nullptr) visitor->stack(sp, end);
  }
  char* bottom = lowest_of_stack(thread, high);
  if (bottom != nullptr) visitor->stack(bottom, high);
  return false;
}

}  // namespace

const int* ignore_libraries_variable = nullptr;

bool add_roots(char* low, char* high) {
  low = base::as_pointer(base::align_up(base::as_word(low), sizeof(Word)));
  high = base::as_pointer(base::align_down(base::as_word(high), sizeof(Word)));
  if (low >= high) return true;
  for (Extent& extent : explicit_roots) {
    if (low >= extent.low && high <= extent.high) return true;
    if (low == extent.low) {
      extent.high = base::max_of(extent.high, high);
      return true;
    }
  }
  return explicit_roots.push({low, high});
}

void remove_roots(char* low, char* high) {
  for (std::size_t i = 0; i < explicit_roots.count();) {
    const Extent& extent = explicit_roots[i];
    if (low <= extent.low && high >= extent.high) {
      explicit_roots.erase(i);
    } else {
      ++i;
    }
  }
}

void clear_roots() {
  explicit_roots.clear();
  // bdwgc looks at the loaded libraries again before each collection, unless it was told not to:
  // only then does its GC_clear_roots mean static data as well.
  if (!ignoring_libraries()) return;
  for (const Extent& extent : library_data) {
    if (!forgotten.push(extent)) return;
  }
  library_data.clear();
  static_roots.clear();
}

bool exclude_static_roots(char* low, char* high) {
  return exclusions.push({low, high}) && rebuild_static_roots();
}

bool exclude_own_data(char* low, char* high) {
  if (!exclude_static_roots(low, high)) return false;
  ++own_exclusions;
  return true;
}

void clear_exclusions() {
  exclusions.set_count(own_exclusions);
  static_cast<void>(rebuild_static_roots());
}

void set_static_roots_filter(StaticRootsFilter new_filter) {
  filter = new_filter;
  static_roots_known = false;
}

void ignore_libraries(bool ignore) {
  libraries_ignored = ignore;
  static_roots_known = false;
}

bool update_static_roots() {
  if (using_mappings()) return os::mappings_are_known();
  static bool ignored_then = false;
  const std::uint64_t generation = os::module_generation();
  if (static_roots_known && generation == known_generation &&
      ignored_then == ignoring_libraries()) {
    return true;
  }
  ignored_then = ignoring_libraries();
  library_data.clear();
  tls_modules.clear();
  Collect collect;
  os::visit_modules(&collect, &known_fingerprint);
  known_generation = generation;
  static_roots_known = collect.ok && rebuild_static_roots();
  static_roots_doubtful = !static_roots_known;
  return static_roots_known;
}

bool static_roots_are_stale() {
  if (using_mappings()) return false;
  bool changing = false;
  const std::uint64_t fingerprint = os::module_fingerprint(&changing);
  static_roots_doubtful = changing || fingerprint != known_fingerprint;
  return static_roots_doubtful;
}

std::size_t static_root_bytes() {
  std::size_t bytes = 0;
  for (const auto* roots : {&static_roots, &explicit_roots}) {
    for (std::size_t i = 0; i < roots->count(); ++i) {
      bytes += static_cast<std::size_t>((*roots)[i].high - (*roots)[i].low);
    }
  }
  return bytes;
}

void visit_static_roots(RootVisitor* visitor) {
  for (const Extent& extent : static_roots) {
    if (static_roots_doubtful && !both_ends_readable(extent.low, extent.high)) continue;
    visitor->range(extent.low, extent.high);
  }
  // Here, where no table can grow: most programs exclude nothing.
  for (const Extent& extent : explicit_roots) {
    visit_not_excluded(extent, [visitor](Extent part) {
      visitor->range(part.low, part.high);
      return true;
    });
  }
}

void visit_thread_roots(RootVisitor* visitor, char* own_stack_top) {
  const os::ManyReads reads;
  if (Thread* thread = self()) thread->alternate = os::active_alternate_stack();
  if (using_mappings()) {
    visit_thread_stacks(visitor, own_stack_top);
    return visit_mappings(visitor, own_stack_top);
  }
  for_each_thread([&](Thread* thread) {
    visitor->range(&thread->result, &thread->result + 1);
    // Its stack may not be there any more.
    if (thread->gone) return;
    if (thread == self() && !thread->blocked) {
      visit_stack(visitor, thread, own_stack_top);
      visit_thread_locals(visitor, *thread);
    } else if (thread->blocked) {
      if (visit_stack(visitor, thread, thread->blocked_at)) {
        visit_blocked_thread_locals(visitor, thread);
      } else {
        visit_thread_locals(visitor, *thread);
      }
    } else {
      visit_interrupted(visitor, *thread);
      visit_stack(visitor, thread, thread->stopped_at);
      visit_thread_locals(visitor, *thread);
    }
  });
  for (Thread* t = finished_threads; t != nullptr; t = t->in_list.next) {
    visitor->range(&t->result, &t->result + 1);
  }
  if (auto* visit = other_stacks.load(std::memory_order_acquire); visit != nullptr) visit(visitor);
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

void set_other_stacks(void (*visit)(RootVisitor* visitor)) {
  other_stacks.store(visit, std::memory_order_release);
}

bool is_library_data(const void* p) {
  for (const Extent& extent : library_data) {
    if (contains(extent, p)) return true;
  }
  return false;
}

bool may_be_root_address(const void* p) {
  bool excluded = false;
  for (const Extent& extent : exclusions) excluded |= contains(extent, p);
  for (const auto* roots : {&static_roots, &explicit_roots}) {
    for (std::size_t i = 0; i < roots->count(); ++i) {
      if (contains((*roots)[i], p) && !excluded) return true;
    }
  }
  for (const Thread* t = threads; t != nullptr; t = t->in_list.next) {
    // A stack of the client's own reaches who knows how far.
    if (t->stack.low == nullptr || stack_high(*t) > t->stack.high) return true;
    if (contains(t->stack, p)) return true;
    const os::ThreadLocalBlocks blocks(t->control_block, last_module());
    for (const os::ThreadLocalModule& module : tls_modules) {
      auto* block = static_cast<char*>(blocks.of_module(module.module));
      if (block != nullptr && contains(Extent{block, block + module.size}, p)) return true;
    }
    if (contains(static_thread_locals_beside_stack(*t), p)) return true;
  }
  // This thread's, if it is none of those.
  const char* here = os::frame_address();
  return self() == nullptr || here < self()->stack.low || here >= self()->stack.high;
}

}  // namespace jd::world

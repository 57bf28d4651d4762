// Static roots: the data of what is loaded, and ranges that the program names, less those that it
// excludes.
#include "world/static_roots.hpp"

#include <initializer_list>

#include "heap/space.hpp"
#include "os/mappings.hpp"
#include "os/safe_reading.hpp"
#include "world/mappings.hpp"
#include "world/roots.hpp"

namespace jd::world {
namespace {

using os::Extent;

// All under the heap's lock, or read in a stopped world.
heap::Growable<Extent> explicit_roots;
heap::Growable<Extent> exclusions;    // by address; none touches another
Extent own_exclusion;                 // is among them, in one of them
heap::Growable<Extent> library_data;  // as the loader reports it, our own left out
heap::Growable<os::ThreadLocalModule> tls_modules;
heap::Growable<Extent> static_roots;  // library_data less exclusions: what is scanned
std::uint64_t known_generation = 0;
std::uint64_t known_fingerprint = 0;
bool static_roots_known = false;
bool roots_cleared = false;  // ever
// What is known is not what is loaded: parts of it may be unmapped.
bool static_roots_doubtful = false;
StaticRootsFilter filter = nullptr;
// In the child of a fork, until something is loaded there: a thread of the parent's may have held
// the loader's lock, for which the child would wait for ever. So only the stopped world looks.
bool loader_may_be_locked = false;
// The state of the loader's list, and of its lock, that the child has inherited, which may be in
// the midst of a change that nobody will end.
std::uint64_t inherited_fingerprint = 0;
bool inherited_changing = false;

// Adds a range to the exclusions, joined with those that it touches. False for want of memory.
bool exclude(Extent range) {
  if (!exclusions.reserve(exclusions.count() + 1)) return false;
  std::size_t at = 0;
  while (at < exclusions.count() && exclusions[at].high < range.low) ++at;
  while (at < exclusions.count() && exclusions[at].low <= range.high) {
    range.low = base::min_of(range.low, exclusions[at].low);
    range.high = base::max_of(range.high, exclusions[at].high);
    exclusions.erase(at);
  }
  static_cast<void>(exclusions.push(range));
  for (std::size_t i = exclusions.count() - 1; i > at; --i) exclusions[i] = exclusions[i - 1];
  exclusions[at] = range;
  return true;
}

// Calls visit(part) for each part of the extent that is not excluded; stops and returns false when
// that does.
template <class Visit>
bool visit_not_excluded(Extent extent, Visit visit) {
  for (const Extent& cut : exclusions) {
    if (cut.high <= extent.low) continue;
    if (cut.low >= extent.high) break;
    if (extent.low < cut.low && !visit({extent.low, cut.low})) return false;
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

class Collect final : public os::ModuleVisitor {
 public:
  void data(const os::DataSegment& segment) override {
    // bdwgc looks at the libraries, and at the program as one of them, before each collection anew:
    // so what GC_clear_roots dropped is back, unless they are to be ignored.
    if (ignoring_libraries() && (!segment.in_program || roots_cleared)) return;
    // Our own variables hold no roots, and many words that look like pointers into the heap.
    const Extent extent{segment.low, segment.high};
    if (!segment.in_program && extent.contains(&heap::space)) return;
    if (filter != nullptr && filter(segment.object, segment.low,
                                    static_cast<std::size_t>(segment.high - segment.low)) == 0) {
      return;
    }
    ok &= library_data.push(extent);
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

}  // namespace

const int* ignore_libraries_variable = nullptr;

bool ignoring_libraries() {
  return ignore_libraries_variable != nullptr && *ignore_libraries_variable != 0;
}

bool add_roots(char* low, char* high) {
  low = base::as_pointer(base::align_up(base::as_word(low), sizeof(base::Word)));
  high = base::as_pointer(base::align_down(base::as_word(high), sizeof(base::Word)));
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
  roots_cleared = true;
  if (!ignoring_libraries()) return;
  library_data.clear();
  static_roots.clear();
}

bool exclude_static_roots(char* low, char* high) {
  if (low >= high) return true;
  if (!exclude({low, high})) return false;
  const bool rebuilt = rebuild_static_roots();
  static_roots_known &= rebuilt;
  return rebuilt;
}

bool exclude_own_data(char* low, char* high) {
  own_exclusion = {low, high};
  return exclude_static_roots(low, high);
}

void clear_exclusions() {
  exclusions.clear();
  // There is room for one, if there was.
  if (own_exclusion.low != nullptr) static_cast<void>(exclude(own_exclusion));
  static_roots_known &= rebuild_static_roots();
}

void set_static_roots_filter(StaticRootsFilter new_filter) {
  filter = new_filter;
  static_roots_known = false;
}

bool update_static_roots() {
  if (using_mappings()) return os::mappings_are_known();
  static bool ignored_then = false;
  const bool may_be_right = static_roots_known && ignored_then == ignoring_libraries();
  if (loader_may_be_locked && may_be_right) return true;
  const std::uint64_t generation = os::module_generation();
  // The program's filter may answer otherwise by now.
  if (may_be_right && filter == nullptr && generation == known_generation) return true;
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

void expect_locked_loader_in_child() {
  loader_may_be_locked = true;
  inherited_fingerprint = os::module_fingerprint(&inherited_changing);
}

bool static_roots_are_stale() {
  if (using_mappings()) return false;
  bool changing = false;
  const std::uint64_t fingerprint = os::module_fingerprint(&changing);
  static_roots_doubtful = changing || fingerprint != known_fingerprint;
  // Whoever loads here takes the lock himself.
  if (fingerprint != inherited_fingerprint || changing != inherited_changing) {
    loader_may_be_locked = false;
  }
  // What was inherited stays as it is, and it is of no use to wait for an end of the change.
  return static_roots_doubtful && !loader_may_be_locked;
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

bool is_library_data(const void* p) {
  for (const Extent& extent : library_data) {
    if (extent.contains(p)) return true;
  }
  return false;
}

const heap::Growable<os::ThreadLocalModule>& thread_local_modules() { return tls_modules; }
std::uint64_t loaded_generation() { return known_generation + 1; }
bool loaded_is_doubtful() { return static_roots_doubtful; }

bool is_static_root(const void* p) {
  for (const Extent& extent : exclusions) {
    if (extent.contains(p)) return false;
  }
  for (const auto* roots : {&static_roots, &explicit_roots}) {
    for (std::size_t i = 0; i < roots->count(); ++i) {
      if ((*roots)[i].contains(p)) return true;
    }
  }
  return false;
}

}  // namespace jd::world

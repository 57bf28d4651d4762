// Roots: stacks, registers, static and thread-local data, ranges that the client named.
// Pre of every function that does not say more: the heap's lock is held.
#pragma once

#include <cstddef>

#include "base/bits.hpp"

namespace jd::world {

// What receives root ranges: the marker in a collection, the verifier in a check. Empty ranges it
// does not hear of.
class RootVisitor {
 public:
  // Words that are pointers as programs store them.
  void range(const void* low, const void* high);
  // Words of a stack or of registers, where compilers also keep pointers one past the end of an
  // object, and no others to it.
  void stack(const void* low, const void* high);
  // As range, where threads run that nobody could stop: the words may be others the next time.
  void changing_range(const void* low, const void* high);
  // How many there were so far.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 protected:
  ~RootVisitor() = default;

 private:
  virtual void visit_range(const void* low, const void* high) = 0;
  virtual void visit_stack(const void* low, const void* high) = 0;
  virtual void visit_changing_range(const void* low, const void* high) { visit_range(low, high); }

  std::size_t bytes_ = 0;
};

// Explicit ranges (GC_add_roots and its family). Ranges may overlap; removed are those
// that lie inside as a whole, since another may have added the same words. False when
// memory has run out. Pre: the heap's lock is held.
[[nodiscard]] bool add_roots(char* low, char* high);
void remove_roots(char* low, char* high);
// Forgets explicit ranges; where libraries do not count (GC_no_dls), the program's static data
// known so far as well.
void clear_roots();
// Parts of static data and of explicit ranges, old and new, that are not to be scanned. As
// add_roots.
[[nodiscard]] bool exclude_static_roots(char* low, char* high);
// The same for data of the collector's own, which may lie in the program (a static library), before
// the first of the others. clear_exclusions leaves it.
[[nodiscard]] bool exclude_own_data(char* low, char* high);
void clear_exclusions();

// Asks the client about each library's data: 0 leaves it out.
using StaticRootsFilter = int (*)(const char* library, void* low, std::size_t size);
void set_static_roots_filter(StaticRootsFilter filter);
// Points at the ABI's own variable GC_no_dls, which programs set directly: libraries' data does not
// count.
extern const int* ignore_libraries_variable;

// Looks at what is loaded now. Pre: the world runs (it takes the loader's lock), the heap's lock is
// held. False when memory has run out.
[[nodiscard]] bool update_static_roots();
// In the child of a fork whose parent had other threads: until something else is loaded, what was
// known counts, and the loader is not asked.
void expect_locked_loader_in_child();
// In a stopped world: has something been loaded since, so that the world must run again first?
bool static_roots_are_stale();

// Every root range. Pre: the world is stopped; own_stack_top is the caller's stack pointer with the
// registers above it.
void visit_static_roots(RootVisitor* visitor);
void visit_thread_roots(RootVisitor* visitor, char* own_stack_top);

// Stacks that no thread runs on: asked for with the threads' roots, in the stopped world. By the
// room that has such stacks, once, before it makes the first.
void set_other_stacks(void (*visit)(RootVisitor* visitor));

// Is the address in some library's data, as far as it is known?
bool is_library_data(const void* p);
// Is the address in static data, a stack or thread-local storage, as far as they are known? True
// where a thread may be running on a stack that is not. Pre: the heap's lock is held.
bool may_be_root_address(const void* p);

}  // namespace jd::world

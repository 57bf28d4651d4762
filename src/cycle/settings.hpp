// What programs may set: the ABI's variables, which they also write directly, and its callbacks.
//
// The variables keep bdwgc's names and types because they are exported. They are read when they
// are needed, never cached: ECL, Neko and Crystal store into them at run time. All are written
// before other threads exist or under the heap's lock, unless a comment says otherwise.
#pragma once

#include <cstddef>

#include "base/options.hpp"
#include "gc/gc.h"
#include "gc/gc_mark.h"
#include "heap/space.hpp"

// Exported, but in no header of the ABI's: ECL declares it itself and stores into it.
extern "C" {
GC_API GC_push_other_roots_proc GC_push_other_roots;
}

namespace jd::cycle {

// The environment, read once at the start.
extern base::Options options;

// Does a pointer one past an object's end hold the object? Programs that turn interior pointers off
// do without, with bdwgc as here.
inline bool ends_hold_objects() { return GC_all_interior_pointers != 0; }

// A checked object, and the place in the program that made it. object: null if it is none. file: as
// the program said, which may be null.
struct MadeAt {
  const void* object = nullptr;  // as the program knows it
  const char* file = nullptr;
  std::size_t line = 0;
  std::size_t bytes = 0;
};

// Settings that have no variable of their own in the ABI.
struct Settings {
  std::size_t max_heap_size = 0;  // 0: no limit
  std::size_t min_bytes_allocated = 1;
  bool unmap_on_gcollect = false;
  unsigned long time_limit_ns = 0;  // beside GC_time_limit, which programs also store into
  bool automatic_collection_disabled = false;
  // The program knows nothing of a collector (src/malloc): its roots may be anywhere, and a thread
  // that it did not start might surprise it. Before the start.
  bool serves_malloc = false;
  int handle_fork = 1;  // 1: through pthread_atfork; 0: not; -1: by the program's own calls

  // Asked before each collection; false: there is none. Set at the start.
  bool (*may_begin)() = nullptr;
  // Asked in each stopped world; false ends the collection before anything is marked. Set at the
  // start, or by itself.
  bool (*may_collect)() = nullptr;

  GC_start_callback_proc start_callback = nullptr;
  GC_on_collection_event_proc on_collection_event = nullptr;
  GC_on_thread_event_proc on_thread_event = nullptr;
  GC_warn_proc warn = nullptr;  // null: to standard error
  GC_stop_func stop_function = nullptr;
  GC_await_finalize_proc await_finalize = nullptr;
  // That one call of run_due runs; 0: no limit. Any thread's (relaxed).
  unsigned most_finalizers = 0;
  GC_toggleref_func toggle_reference = nullptr;
  // The next three are stored (relaxed) by every thread that makes a checked object, and read by
  // the collecting thread in the stopped world. Before a leak check of malloc mode's, which has no
  // such objects, the first is stored under the heap's lock.
  //
  // Looks at the unmarked objects, which are still there, in the stopped world (checked
  // allocation).
  void (*before_sweep)() = nullptr;
  // Looks at the surviving objects after each collection, in the stopped world (checked
  // allocation).
  void (*check_heap)() = nullptr;
  // Where an object was made, if it says so (checked allocation).
  MadeAt (*made_at)(const heap::Place& place) = nullptr;
};
extern Settings settings;

// Reports a problem to the program's warning function. `format` has one %-conversion for a word,
// as the ABI's warning functions expect.
void warn(const char* format, GC_word argument);
// What happens without a warning function: a line on standard error.
void print_warning(const char* format, GC_word argument);

}  // namespace jd::cycle

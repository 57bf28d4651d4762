#include "malloc/serve.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/allocate.hpp"
#include "alloc/settings.hpp"
#include "cycle/runtime.hpp"
#include "cycle/settings.hpp"
#include "heap/space.hpp"
#include "malloc/hiding.hpp"
#include "malloc/leaks.hpp"
#include "malloc/transfer.hpp"
#include "mark/marker.hpp"
#include "os/limits.hpp"
#include "os/log.hpp"
#include "os/mappings.hpp"
#include "os/modules.hpp"
#include "os/thread.hpp"
#include "world/fork.hpp"
#include "world/roots.hpp"
#include "world/stop.hpp"
#include "world/thread.hpp"

namespace jd::serve {
namespace {

using base::MallocMode;
using os::LockGuard;

static_assert(with_spare(0) == 8 && with_spare(24) == 24 && with_spare(25) == 40);

// Set (release) when start_once is done; read (acquire) by every slow path.
std::atomic<bool> is_started{false};
// Held by whoever runs start_once, for its whole length.
os::Lock start_lock;
// The memory that the process may use, as last looked up (relaxed: any reading will do).
std::atomic<std::size_t> most{kMost};
// In the middle of start_once, where libc may ask for memory. By its thread.
constinit thread_local bool starting = false;

// Memory for those requests. Whoever adds to early_used has the bytes before the sum, if they are
// there: requests that were refused count, too (relaxed: they are passed on to nobody by it).
alignas(16) char early[16 * base::kKiB];
std::atomic<std::size_t> early_used{0};

// A program that asks for too much is told by a null pointer, as ever.
void say_nothing(char*, GC_word) {}

// SIGRTMAX-4: not one of bdwgc's two, on which a child may run, and one that gdb can pass on.
constexpr int kStopSignal = 60;

// Asking which pages of an object were written takes microseconds, and reading so much a hundred
// times that (docs/design/malloc.md, "Objects of which little was written").
constexpr std::size_t kByWrittenPagesFrom = 4 * base::kMiB;

// As glibc's: a program that has learnt that so much of calloc's costs nothing until it is touched
// finds it so (docs/design/malloc.md, "Clearing large objects").
constexpr std::size_t kClearByDiscardingFrom = 32 * base::kMiB;

bool stop_collecting(const char* why) {
  reason_not_to_collect = why;
  GC_dont_gc = 1;
  os::warn(why, "; not collecting any more");
  return false;
}

bool stop_beside_other_collector() {
  return stop_collecting("the program has a collector of its own, which stops threads as well");
}

// A run-time that sets handlers by system calls of its own (Go's does) has passed us by. And where
// another collector stops threads, too, each may wait for one that the other has stopped.
bool may_begin() {
  if (world::thread_count() <= 1) return true;
  if (!world::comes_to_stop_handler()) {
    return stop_collecting(
        "the program has replaced the handler of signal 60, which stops threads");
  }
  return !has_other_collector || stop_beside_other_collector();
}

// In each stopped world, where nobody is loading or unloading a library: one that came by dlopen
// may be such a collector (Nim's programs load theirs so), or hide pointers.
bool may_collect() {
  if (world::thread_count() > 1 && look_for_other_collector()) return stop_beside_other_collector();
  if (mode() == MallocMode::LeakCheck || !hiding_code_came_late()) return true;
  GC_dont_gc = 1;
  return false;
}

// Where the report would be. The runtime does not start, and so has not read its options.
void tell_that_leaks_are_not_looked_for() {
  const char* wanted = secure_getenv("JACKDAW_MALLOC");
  if (wanted == nullptr || strcmp(wanted, "leak-check") != 0) return;
  const char* path = secure_getenv("GC_LOG_FILE");
  if (path != nullptr && os::open_log_and_report(path) != nullptr) return;
  os::log("leak check of process ", os::process_id(), " (", program_invocation_short_name,
          "): it has a malloc of its own; leaks are not looked for");
}

// Calls of malloc come to another's, the program's. (Its symbol tells nothing: the address of a
// function is often one in the program.) Ours gives early memory now, and so does one that passes
// requests on. The object is not freed: the program's free may need what main() makes first (GCL's
// does).
bool others_malloc_comes_first() {
  const void* object = malloc(1);
  return object != nullptr && !is_early(object);
}

void start_once() {
  cycle::settings.serves_malloc = true;
  cycle::settings.warn = say_nothing;
  cycle::settings.may_begin = may_begin;
  cycle::settings.may_collect = may_collect;
  world::set_stop_signal(kStopSignal);
  world::recognise_children();
  cycle::start_without_registering();
  {
    LockGuard guard(heap::heap_lock);
    // malloc.req.old-words
    const bool clear = mode() == MallocMode::Ignore;
    JD_CHECK(heap::add_kind(0, true, clear) == kScanned,
             "the kind of malloc's objects has a number");
    heap::kinds[kScanned].clear_reclaimed = true;
  }
  if (!os::mappings_are_known()) {
    // malloc.req.no-proc
    GC_dont_gc = 1;
    os::warn("/proc/self/maps can't be read, so the roots are not known; not collecting");
  }
  {
    // What libc asked for meanwhile is in our data, which is no root, and may hold what it asked
    // for later.
    LockGuard guard(heap::heap_lock);
    const std::size_t used = base::min_of(early_used.load(std::memory_order_relaxed), sizeof early);
    JD_CHECK(world::add_roots(early, early + used),
             "there is memory at the start for the table of roots");
  }
  if (!base::was_given(&base::Options::written_pages)) {
    mark::by_written_pages_from = kByWrittenPagesFrom;
  }
  alloc::clear_by_discarding_from = kClearByDiscardingFrom;
  alloc::within_libc = true;
  ignoring = mode() == MallocMode::Ignore;
  most.store(base::min_of(kMost, os::memory_limit()), std::memory_order_relaxed);
  if (mode() == MallocMode::LeakCheck) {
    // malloc.req.leaks: nothing goes before it was reported.
    GC_dont_gc = 1;
  } else {
    find_hiding_code();
    fast = true;
  }
}

void* out_of_memory() {
  errno = ENOMEM;
  return nullptr;
}

// No request for more memory than the process may use is met, which is where the heap ends: a
// collection would help nobody. The limit may have been raised meanwhile.
bool is_too_much(std::size_t bytes) {
  if (bytes <= most.load(std::memory_order_relaxed)) return false;
  std::size_t now = 0;
  if (bytes > kMost || !os::memory_limit_now(&now)) return true;
  most.store(base::min_of(kMost, now), std::memory_order_relaxed);
  return bytes > now;
}

// Pre: not is_too_much(bytes).
void* finish(void* object, std::size_t bytes, const void* caller) {
  if (object == nullptr) return out_of_memory();
  if (mode() == MallocMode::LeakCheck) leaks::tag(object, bytes, caller);
  return object;
}

heap::KindNumber kind_for(const void* caller, heap::KindNumber otherwise = kScanned) {
  return hides_pointers(caller) ? heap::kUncollectable : otherwise;
}

std::size_t size_of(const void* object) {
  heap::Place place;
  return heap::find_place(base::as_word(object), &place) ? place.size() : 0;
}

}  // namespace

bool fast = false;
bool ignoring = false;
const char* reason_not_to_collect = nullptr;
bool has_other_collector = false;
bool bypassed = false;

bool is_collected(const void* object) {
  if (hiding_code_bytes == 0) return true;
  // What is never collected is freed by hand.
  heap::Place place;
  return !heap::find_place(base::as_word(object), &place) ||
         !heap::is_uncollectable(place.block->kind);
}

bool look_for_other_collector() {
  has_other_collector |= os::is_loaded("libgc.so") || os::is_loaded("libjackdaw.so");
  return has_other_collector;
}

MallocMode mode() { return static_cast<MallocMode>(cycle::options.malloc_mode); }

bool start(bool malloc_was_called) {
  if (is_started.load(std::memory_order_acquire)) return !bypassed;
  if (starting) return false;
  starting = true;
  {
    LockGuard guard(start_lock);
    if (!is_started.load(std::memory_order_relaxed)) {
      bypassed = !malloc_was_called && others_malloc_comes_first();
      if (bypassed) {
        tell_that_leaks_are_not_looked_for();
      } else {
        start_once();
      }
    }
    is_started.store(true, std::memory_order_release);
  }
  starting = false;
  return !bypassed;
}

void* early_memory(std::size_t bytes) {
  // Each request has a place of its own, also one for nothing.
  const std::size_t size = base::align_up(base::max_of(bytes, std::size_t{1}), 16);
  if (size > sizeof early) return out_of_memory();
  const std::size_t at = early_used.fetch_add(size, std::memory_order_relaxed);
  return at <= sizeof early - size ? early + at : out_of_memory();
}

bool is_early(const void* p) { return p >= early && p < early + sizeof early; }

void* allocate(std::size_t bytes, const void* caller) {
  if (is_too_much(bytes)) return out_of_memory();
  if (!start()) return early_memory(bytes);
  return finish(alloc::allocate(with_spare(bytes), kind_for(caller)), bytes, caller);
}

void* allocate_clear(std::size_t bytes, const void* caller) {
  if (is_too_much(bytes)) return out_of_memory();
  if (!start()) return early_memory(bytes);
  if (bytes > kMostSmall) {
    // Fresh pages need no clearing, and the collector knows which are.
    return finish(alloc::allocate(with_spare(bytes), kind_for(caller, heap::kNormal)), bytes,
                  caller);
  }
  const heap::KindNumber kind = kind_for(caller);
  void* object = finish(alloc::allocate(with_spare(bytes), kind), bytes, caller);
  if (object != nullptr && !heap::kinds[kind].clear) base::clear_bytes(object, bytes);
  return object;
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (alignment <= heap::kGranule) return allocate(bytes, caller);
  if (is_too_much(bytes) || is_too_much(alignment)) return out_of_memory();
  if (!start()) return out_of_memory();
  return finish(alloc::allocate_aligned(with_spare(bytes), alignment, kind_for(caller)), bytes,
                caller);
}

void* resize(void* object, std::size_t bytes, const void* caller) {
  if (is_too_much(bytes)) return out_of_memory();
  // A thread's first call may be this one.
  if (!alloc::ready_to_allocate()) return out_of_memory();
  if (!alloc::check_object(object, "realloc")) return out_of_memory();
  if (alloc::resize_in_place(object, with_spare(bytes))) return finish(object, bytes, caller);
  void* moved = allocate(bytes, caller);
  if (moved == nullptr) return nullptr;
  const std::size_t kept = base::min_of(bytes, usable_size(object));
  if (is_ignored(object)) {
    base::copy_bytes(moved, object, kept);
    return moved;
  }
  if (kept >= kLeastTransfer) {
    transfer(moved, object, kept);
  } else {
    base::copy_bytes(moved, object, kept);
  }
  alloc::free_object(object, "realloc");
  return moved;
}

std::size_t usable_size(const void* object) {
  const std::size_t size = size_of(object);
  return size > kSpare ? size - kSpare : 0;
}

}  // namespace jd::serve

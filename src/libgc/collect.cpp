// Starting, collecting, and the incremental mode, whose collections are partial ones.
#include <atomic>

#include "alloc/allocate.hpp"
#include "cycle/collect.hpp"
#include "cycle/incremental.hpp"
#include "cycle/measured.hpp"
#include "cycle/partial.hpp"
#include "libgc/support.hpp"
#include "os/log.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

int never_stop() { return 0; }
// The default is as none.
GC_stop_func asked_at_all(GC_stop_func function) {
  return function == never_stop ? nullptr : function;
}

// GC_deinit makes GC_is_init_called say no again. Any thread's (relaxed: it says nothing of what
// else that thread did).
std::atomic<bool> deinitialised{false};

constexpr std::uint64_t kNsOfMs = 1000000;
std::uint64_t full_gc_ns() {
  const cycle::Measurements& m = cycle::measured;
  return m.measuring_performance ? m.full_total - m.full_total_before : 0;
}

}  // namespace

extern "C" {

unsigned GC_get_version() {
  return (GC_VERSION_MAJOR << 16) | (GC_VERSION_MINOR << 8) | GC_VERSION_MICRO;
}

void GC_init() {
  cycle::start();
  if (deinitialised.load(std::memory_order_relaxed)) {
    deinitialised.store(false, std::memory_order_relaxed);
  }
}
int GC_is_init_called() {
  return cycle::started() && !deinitialised.load(std::memory_order_relaxed);
}
void GC_deinit() { deinitialised.store(true, std::memory_order_relaxed); }

void GC_gcollect() {
  const GC_stop_func stop_function = get_locked(&cycle::settings.stop_function);
  if (cycle::settings.unmap_on_gcollect) return cycle::collect_and_return_memory(stop_function);
  cycle::collect_now(stop_function);
}
void GC_gcollect_and_unmap() { cycle::collect_and_return_memory(nullptr); }
int GC_try_to_collect(GC_stop_func stop_function) {
  return cycle::collect_now(asked_at_all(stop_function)) ? 1 : 0;
}
int GC_collect_a_little() { return cycle::collect_if_due() ? 1 : 0; }

void GC_set_stop_func(GC_stop_func function) {
  set_locked(&cycle::settings.stop_function, asked_at_all(function));
}
GC_stop_func GC_get_stop_func() {
  const GC_stop_func function = get_locked(&cycle::settings.stop_function);
  return function != nullptr ? function : never_stop;
}

void GC_disable() {
  LockGuard guard(heap_lock);
  ++GC_dont_gc;
}
void GC_finish_and_disable() {
  for (bool may_go_on = true;;) {
    {
      LockGuard guard(heap_lock);
      // One that is refused to go on would wait for as long as collections are off.
      if (!may_go_on) cycle::incremental::abandon();
      if (!cycle::incremental::is_under_way()) {
        ++GC_dont_gc;
        return;
      }
    }
    may_go_on = cycle::collect_if_due();
  }
}
void GC_enable() {
  LockGuard guard(heap_lock);
  if (GC_dont_gc == 0) {
    os::warn("GC_enable without GC_disable; ignored");
    return;
  }
  --GC_dont_gc;
}
int GC_is_disabled() { return GC_dont_gc != 0; }

// A mode that a system may lack; programs ask GC_is_incremental_mode.
void GC_enable_incremental() {
  cycle::start();
  LockGuard guard(heap_lock);
  const char* const why = cycle::partial::turn_on();
  if (why != nullptr && cycle::options.print_stats != 0) {
    os::log("no incremental mode: ", why);
  }
}
int GC_is_incremental_mode() { return cycle::partial::is_on() ? 1 : 0; }
// System calls may write to pages that are watched.
int GC_incremental_protection_needs() { return GC_PROTECTS_NONE; }
GC_API void GC_start_incremental_collection() { cycle::collect_partially(); }

int GC_expand_hp(size_t bytes) {
  cycle::start();
  LockGuard guard(heap_lock);
  return cycle::expand(bytes) ? 1 : 0;
}

GC_API void GC_start_performance_measurement() {
  LockGuard guard(heap_lock);
  if (cycle::measured.measuring_performance) return;
  cycle::measured.measuring_performance = true;
  cycle::measured.full_total_before = cycle::measured.full_total;
}
GC_API unsigned long GC_get_full_gc_total_time() { return full_gc_ns() / kNsOfMs; }
GC_API unsigned long GC_get_full_gc_total_ns_frac() { return full_gc_ns() % kNsOfMs; }

void GC_stop_world_external() {
  cycle::start();
  heap_lock.acquire();
  cycle::stop_for_program();
}
void GC_start_world_external() {
  cycle::resume_for_program();
  heap_lock.release();
}
}

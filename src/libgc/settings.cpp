// Getters and setters. Those whose header says "locks" take the lock; the others are plain loads
// and stores of the variables in data.cpp.
#include "alloc/totals.hpp"
#include "libgc/support.hpp"
#include "os/log.hpp"

using namespace jd;
using namespace jd::libgc;

namespace {

// Accepted and reported; they steer things that this collector does in another way, or not at all.
// Under the lock, by set_locked and get_locked, or a word that is set and asked for.
int rate = 10;
int max_prior_attempts = 1;
int manual_vdb_allowed = 0;
int pages_executable = 0;
GC_word allocated_per_finalizer = 10000;

void print_warning(char* message, GC_word argument) { cycle::print_warning(message, argument); }

}  // namespace

extern "C" {

void GC_set_all_interior_pointers(int value) { GC_all_interior_pointers = value != 0; }
int GC_get_all_interior_pointers() { return GC_all_interior_pointers; }
// Every displacement is valid: see docs/guide/libgc.md.
void GC_register_displacement(size_t) {}
void GC_debug_register_displacement(size_t) {}

void GC_set_dont_expand(int value) { GC_dont_expand = value; }
int GC_get_dont_expand() { return GC_dont_expand; }
void GC_set_dont_precollect(int value) { GC_dont_precollect = value; }
int GC_get_dont_precollect() { return GC_dont_precollect; }
void GC_set_find_leak(int value) { GC_find_leak = value; }
int GC_get_find_leak() { return GC_find_leak; }
void GC_set_full_freq(int value) { GC_full_freq = value; }
int GC_get_full_freq() { return GC_full_freq; }
void GC_set_non_gc_bytes(GC_word value) { alloc::set_uncollectable(value); }
GC_word GC_get_non_gc_bytes() { return alloc::uncollectable_now(); }
void GC_set_max_retries(GC_word value) { GC_max_retries = value; }
GC_word GC_get_max_retries() { return GC_max_retries; }

void GC_set_free_space_divisor(GC_word value) {
  if (value == 0) {
    os::warn("GC_set_free_space_divisor(0) makes no sense; ignored");
    return;
  }
  GC_free_space_divisor = value;
}
GC_word GC_get_free_space_divisor() { return GC_free_space_divisor; }

void GC_set_max_heap_size(GC_word bytes) { cycle::settings.max_heap_size = bytes; }
void GC_set_min_bytes_allocd(size_t bytes) { cycle::settings.min_bytes_allocated = bytes; }
size_t GC_get_min_bytes_allocd() { return cycle::settings.min_bytes_allocated; }
void GC_set_force_unmap_on_gcollect(int value) { cycle::settings.unmap_on_gcollect = value != 0; }
int GC_get_force_unmap_on_gcollect() { return cycle::settings.unmap_on_gcollect; }
void GC_set_disable_automatic_collection(int value) {
  set_locked(&cycle::settings.automatic_collection_disabled, value != 0);
}
int GC_get_disable_automatic_collection() {
  return get_locked(&cycle::settings.automatic_collection_disabled);
}

void GC_set_time_limit(unsigned long milliseconds) { GC_time_limit = milliseconds; }
unsigned long GC_get_time_limit() { return GC_time_limit; }
void GC_set_time_limit_tv(GC_timeval_s limit) {
  GC_time_limit = limit.tv_ms;
  set_locked(&cycle::settings.time_limit_ns, limit.tv_nsec);
}
GC_timeval_s GC_get_time_limit_tv() {
  return {GC_time_limit, get_locked(&cycle::settings.time_limit_ns)};
}
void GC_set_rate(int value) { rate = value; }
int GC_get_rate() { return rate; }
void GC_set_max_prior_attempts(int value) { max_prior_attempts = value; }
int GC_get_max_prior_attempts() { return max_prior_attempts; }
void GC_set_manual_vdb_allowed(int value) { manual_vdb_allowed = value != 0; }
int GC_get_manual_vdb_allowed() { return manual_vdb_allowed; }
void GC_set_pages_executable(int value) { pages_executable = value != 0; }
int GC_get_pages_executable() { return pages_executable; }
void GC_set_allocd_bytes_per_finalizer(GC_word value) { allocated_per_finalizer = value; }
GC_word GC_get_allocd_bytes_per_finalizer() { return allocated_per_finalizer; }

void GC_set_oom_fn(GC_oom_func function) { set_locked(&GC_oom_fn, function); }
GC_oom_func GC_get_oom_fn() { return get_locked(&GC_oom_fn); }
void GC_set_on_heap_resize(GC_on_heap_resize_proc function) {
  set_locked(&GC_on_heap_resize, function);
}
GC_on_heap_resize_proc GC_get_on_heap_resize() { return get_locked(&GC_on_heap_resize); }
void GC_set_on_collection_event(GC_on_collection_event_proc function) {
  set_locked(&cycle::settings.on_collection_event, function);
}
GC_on_collection_event_proc GC_get_on_collection_event() {
  return get_locked(&cycle::settings.on_collection_event);
}
void GC_set_on_thread_event(GC_on_thread_event_proc function) {
  set_locked(&cycle::settings.on_thread_event, function);
}
GC_on_thread_event_proc GC_get_on_thread_event() {
  return get_locked(&cycle::settings.on_thread_event);
}
void GC_set_start_callback(GC_start_callback_proc function) {
  set_locked(&cycle::settings.start_callback, function);
}
GC_start_callback_proc GC_get_start_callback() {
  return get_locked(&cycle::settings.start_callback);
}

void GC_set_warn_proc(GC_warn_proc function) { set_locked(&cycle::settings.warn, function); }
GC_warn_proc GC_get_warn_proc() {
  const GC_warn_proc function = get_locked(&cycle::settings.warn);
  return function != nullptr ? function : print_warning;
}
void GC_ignore_warn_proc(char* message, GC_word argument) {
  const bool talks = cycle::options.print_stats != 0 || cycle::options.print_verbose_stats != 0;
  if (talks) print_warning(message, argument);
}
void GC_set_interrupt_finalizers(unsigned most) {
  __atomic_store_n(&cycle::settings.most_finalizers, most, __ATOMIC_RELAXED);
}
unsigned GC_get_interrupt_finalizers() {
  return __atomic_load_n(&cycle::settings.most_finalizers, __ATOMIC_RELAXED);
}

void GC_set_same_obj_print_proc(GC_same_obj_print_proc_t function) {
  GC_same_obj_print_proc = function;
}
GC_same_obj_print_proc_t GC_get_same_obj_print_proc() { return GC_same_obj_print_proc; }
void GC_set_is_valid_displacement_print_proc(GC_valid_ptr_print_proc_t function) {
  GC_is_valid_displacement_print_proc = function;
}
GC_valid_ptr_print_proc_t GC_get_is_valid_displacement_print_proc() {
  return GC_is_valid_displacement_print_proc;
}
void GC_set_is_visible_print_proc(GC_valid_ptr_print_proc_t function) {
  GC_is_visible_print_proc = function;
}
GC_valid_ptr_print_proc_t GC_get_is_visible_print_proc() { return GC_is_visible_print_proc; }

void GC_set_abort_func(GC_abort_func function) {
  set_locked(&GC_on_abort, function);
  os::set_before_abort(function);
}
GC_abort_func GC_get_abort_func() { return get_locked(&GC_on_abort); }
}

// The ABI's variables. Programs read them, store into them, and copy-relocate them: so each has
// bdwgc's name, size and default, default visibility, and is reached through the global offset
// table (libgc.req.data).
#include <stdlib.h>

#include "libgc/support.hpp"
#include "os/log.hpp"

void jd::libgc::no_other_roots() {}

namespace {

void* no_memory(size_t) { return nullptr; }

void print_abort_message(const char* message) {
  if (message != nullptr) jd::os::warn(message);
}

void different_objects(void* p, void* q) {
  jd::os::warn("GC_same_obj(", p, ", ", q, "): not in the same object");
  jd::libgc::abort_with("GC_same_obj test failed");
}
void bad_displacement(void* p) {
  jd::os::warn("GC_is_valid_displacement(", p, "): no registered displacement");
  jd::libgc::abort_with("GC_is_valid_displacement test failed");
}
void not_visible(void* p) {
  jd::os::warn("GC_is_visible(", p, "): not where the collector looks");
  jd::libgc::abort_with("GC_is_visible test failed");
}

// Programs of bdwgc's internals (libgcj) look into these; nobody else does. Ours are empty.
void* no_free_lists[129];

}  // namespace

extern "C" {

// Settings.
JD_EXPORT int GC_all_interior_pointers = 1;
JD_EXPORT int GC_dont_expand = 0;
JD_EXPORT int GC_dont_gc = 0;
JD_EXPORT int GC_dont_precollect = 0;
JD_EXPORT int GC_finalize_on_demand = 0;
JD_EXPORT int GC_find_leak = 0;
JD_EXPORT int GC_full_freq = 19;
JD_EXPORT int GC_java_finalization = 1;
JD_EXPORT int GC_no_dls = 0;
JD_EXPORT int GC_use_entire_heap = 0;
JD_EXPORT GC_word GC_free_space_divisor = 3;
JD_EXPORT GC_word GC_max_retries = 0;
JD_EXPORT GC_word GC_non_gc_bytes = 0;
JD_EXPORT unsigned long GC_time_limit = GC_TIME_UNLIMITED;
JD_EXPORT char* GC_stackbottom = nullptr;

// Callbacks.
JD_EXPORT GC_finalizer_notifier_proc GC_finalizer_notifier = nullptr;
JD_EXPORT GC_on_heap_resize_proc GC_on_heap_resize = nullptr;
JD_EXPORT GC_oom_func GC_oom_fn = no_memory;
JD_EXPORT GC_push_other_roots_proc GC_push_other_roots = jd::libgc::no_other_roots;
JD_EXPORT GC_abort_func GC_on_abort = print_abort_message;
JD_EXPORT void (*GC_same_obj_print_proc)(void*, void*) = different_objects;
JD_EXPORT void (*GC_is_valid_displacement_print_proc)(void*) = bad_displacement;
JD_EXPORT void (*GC_is_visible_print_proc)(void*) = not_visible;

// What the collector tells.
JD_EXPORT GC_word GC_gc_no = 0;
JD_EXPORT int GC_parallel = 0;
JD_EXPORT int GC_gcj_kind = 0;
JD_EXPORT int GC_gcj_debug_kind = 0;
JD_EXPORT void* GC_least_plausible_heap_addr = reinterpret_cast<void*>(~jd::base::Word{0});
JD_EXPORT void* GC_greatest_plausible_heap_addr = nullptr;
const size_t GC_debug_header_size = 32;

JD_EXPORT char GC_arrays[64] = {};
JD_EXPORT void** GC_objfreelist_ptr = no_free_lists;
JD_EXPORT void** GC_aobjfreelist_ptr = no_free_lists;
JD_EXPORT void** GC_uobjfreelist_ptr = no_free_lists;
JD_EXPORT void** GC_auobjfreelist_ptr = no_free_lists;

}  // extern "C"

namespace jd::libgc {

void abort_with(const char* message) {
  GC_on_abort(message);
  abort();
}

}  // namespace jd::libgc

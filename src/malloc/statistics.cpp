// What `jackdaw run --stats` asks (tools/jackdaw/probe/probe.c): functions of the GC_ interface,
// under names that no program's libgc has.
#include "libgc/support.hpp"

#define JD_TOLD extern "C" [[gnu::visibility("default")]]

// NOLINTBEGIN(readability-identifier-naming): names of C functions.
JD_TOLD unsigned jackdaw_malloc_GC_get_version() { return GC_get_version(); }
JD_TOLD GC_word jackdaw_malloc_GC_get_gc_no() { return GC_get_gc_no(); }
JD_TOLD std::size_t jackdaw_malloc_GC_get_heap_size() { return GC_get_heap_size(); }
JD_TOLD std::size_t jackdaw_malloc_GC_get_total_bytes() { return GC_get_total_bytes(); }
JD_TOLD std::size_t jackdaw_malloc_GC_get_prof_stats_unsafe(GC_prof_stats_s* stats,
                                                            std::size_t size) {
  return GC_get_prof_stats_unsafe(stats, size);
}
JD_TOLD void jackdaw_malloc_GC_set_on_collection_event(GC_on_collection_event_proc function) {
  GC_set_on_collection_event(function);
}
JD_TOLD void jackdaw_malloc_GC_set_on_heap_resize(GC_on_heap_resize_proc function) {
  GC_set_on_heap_resize(function);
}
// NOLINTEND(readability-identifier-naming)

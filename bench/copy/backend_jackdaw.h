/*
 * backend_jackdaw.h - the objects of typed.h on the typed heap of <jackdaw/heap.h>, where they may
 * move. The policy is the environment's: JACKDAW_POLICY.
 */
#pragma once

#include <gc/gc.h>
#include <jackdaw/heap.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(SOURCE_HOMOGENEOUS)
#define BACKEND_NAME "homogeneous"
#define BACKEND_SOURCE JD_HOMOGENEOUS
#define OBJECT
#elif defined(SOURCE_SELF)
#define BACKEND_NAME "self"
#define BACKEND_SOURCE JD_SELF
#define OBJECT const void* layout
#elif defined(SOURCE_HEADER)
#define BACKEND_NAME "header"
#define BACKEND_SOURCE JD_HEADER
#define OBJECT
#else
#error "choose a source of layouts: -DSOURCE_HOMOGENEOUS, -DSOURCE_SELF or -DSOURCE_HEADER"
#endif

typedef const jd_layout* TypeHandle;

static inline TypeHandle backend_define(const Type* type) {
  const jd_layout_info info = {
      .name = type->name,
      .size = type->size,
      .pointers = type->pointers == 0 ? NULL : &type->pointers,
      .element_size = type->element_size,
      .element_pointers = type->element_pointers == 0 ? NULL : &type->element_pointers,
      .count_offset = type->count_offset,
      .source = BACKEND_SOURCE,
  };
  const jd_layout* layout = jd_layout_define(&info);
  if (layout == NULL) {
    fprintf(stderr, "no layout for type %s\n", type->name);
    exit(1);
  }
  return layout;
}

EMITTED void* backend_new(const Type* type, TypeHandle handle) {
  (void)type;
  return jd_new(handle);
}

EMITTED void* backend_new_array(const Type* type, TypeHandle handle, size_t count) {
  (void)type;
  return jd_new_array(handle, count);
}

EMITTED void* backend_new_untyped(size_t bytes) { return GC_malloc(bytes); }

EMITTED void backend_collect(void) { GC_gcollect(); }

EMITTED void backend_compact(void) { jd_collect(1); }

/* Nanoseconds that finding what must not move has taken. */
EMITTED double backend_pinning(void) {
  jd_heap_counts counts;
  jd_heap_get_counts(&counts);
  return (double)counts.pin_ns;
}

/* The policy that really ran, and what it did. */
static inline void backend_report(FILE* out) {
  static const char* const policies[] = {"evacuate", "mcc", "non-moving"};
  jd_heap_counts counts;
  jd_heap_get_counts(&counts);
  fprintf(out, ", \"policy\": \"%s\"", policies[jd_heap_get_policy()]);
#define COUNT(name) fprintf(out, ", \"" #name "\": %llu", (unsigned long long)counts.name)
  COUNT(moving_collections);
  COUNT(moved_objects);
  COUNT(moved_bytes);
  COUNT(pinned_objects);
  COUNT(promoted_blocks);
  COUNT(dead_bytes);
  COUNT(typed_bytes);
  COUNT(mark_ns);
  COUNT(pin_ns);
  COUNT(move_ns);
  COUNT(fix_ns);
  COUNT(sweep_ns);
#undef COUNT
}

/*
 * typed.h - what a compiler that emits C would emit to declare and to allocate its objects, over
 * any of several collectors.
 *
 *     typedef struct Cell {
 *       OBJECT;
 *       struct Cell* next;
 *       long value;
 *     } Cell;
 *     TYPE(Cell, next);                      // the fields that hold pointers
 *
 *     typedef struct Name {
 *       OBJECT;
 *       size_t length;                       // NEW_ARRAY stores it, and it does not change
 *       char text[];
 *     } Name;
 *     ARRAY_TYPE(Name, length, text, NONE, NONE);  // neither the fixed part nor an element has any
 *
 *     TYPES(Cell, Name);                     // defines define_types(), which run_program() calls
 *
 *     Cell* cell = NEW(Cell);
 *     Name* name = NEW_ARRAY(Name, 12);
 *
 * The rules that programs keep, and which a collector may therefore rely on:
 *  - Every struct begins with OBJECT. It is nothing, or a word that belongs to the collector.
 *  - A pointer field holds null or the beginning of an object, never the middle of one.
 *  - Pointers to objects are found in pointer fields, in untyped memory, on the stack and in static
 *    variables, and nowhere else. Only the pointer fields are known exactly.
 *  - An object's address may change while only pointer fields refer to it: it is no hash.
 *  - What NEW and NEW_ARRAY return is zeroed if the type has pointers. If it has none the program
 *    stores every field before anything reads it, as the code of a constructor does.
 *
 * Which collector: -DBACKEND_LIBGC (with -DHEADER_WORD, every object has a word more that nobody
 * uses), or -DBACKEND_JACKDAW with one of -DSOURCE_HOMOGENEOUS, -DSOURCE_SELF and -DSOURCE_HEADER,
 * which say where the collector finds the layout of an object. A backend is a header that defines
 *
 *     BACKEND_NAME                    its name in reports
 *     OBJECT                          what each struct begins with
 *     TypeHandle                      what the collector calls a type
 *     backend_define(type)            the handle of a type, made once, at the start
 *     backend_new(type, handle)       an object of the fixed part only
 *     backend_new_array(type, handle, count)
 *     backend_new_untyped(bytes)      zeroed memory, every word of which may be a pointer
 *     backend_collect()               a collection
 *     backend_compact()               one that leaves as little memory as it can
 *     backend_pinning()               what finding immovable objects took until now, nanoseconds
 *     backend_report(out)             ", " and more fields, for the program's line of JSON
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A type's layout, as the compiler knows it. Bit i of a set of pointers stands for word i. */
typedef struct Type {
  const char* name;
  size_t size;               /* bytes of the fixed part */
  uint64_t pointers;         /* of its words, those that hold pointers */
  size_t count_offset;       /* where the fixed part has the number of elements, a size_t */
  size_t element_size;       /* bytes of each element behind it; 0: it has no variable part */
  uint64_t element_pointers; /* of an element's words, those that hold pointers */
} Type;

/* The backends' functions are small, and fold to one call when the type is a constant. */
#define EMITTED static inline __attribute__((always_inline, unused))

EMITTED bool pointer_free(const Type* type) {
  return type->pointers == 0 && type->element_pointers == 0;
}

#if defined(BACKEND_LIBGC)
#include "backend_libgc.h"
#elif defined(BACKEND_JACKDAW)
#include "backend_jackdaw.h"
#else
#error "choose a collector: -DBACKEND_LIBGC or -DBACKEND_JACKDAW"
#endif

/* --- declaring types -------------------------------------------------------------------------- */

/* EACH(m, x, a, b, ...) is m(x, a) m(x, b) ..., for up to 20 of them. */
#define EACH_1(m, x, a) m(x, a)
#define EACH_2(m, x, a, ...) m(x, a) EACH_1(m, x, __VA_ARGS__)
#define EACH_3(m, x, a, ...) m(x, a) EACH_2(m, x, __VA_ARGS__)
#define EACH_4(m, x, a, ...) m(x, a) EACH_3(m, x, __VA_ARGS__)
#define EACH_5(m, x, a, ...) m(x, a) EACH_4(m, x, __VA_ARGS__)
#define EACH_6(m, x, a, ...) m(x, a) EACH_5(m, x, __VA_ARGS__)
#define EACH_7(m, x, a, ...) m(x, a) EACH_6(m, x, __VA_ARGS__)
#define EACH_8(m, x, a, ...) m(x, a) EACH_7(m, x, __VA_ARGS__)
#define EACH_9(m, x, a, ...) m(x, a) EACH_8(m, x, __VA_ARGS__)
#define EACH_10(m, x, a, ...) m(x, a) EACH_9(m, x, __VA_ARGS__)
#define EACH_11(m, x, a, ...) m(x, a) EACH_10(m, x, __VA_ARGS__)
#define EACH_12(m, x, a, ...) m(x, a) EACH_11(m, x, __VA_ARGS__)
#define EACH_13(m, x, a, ...) m(x, a) EACH_12(m, x, __VA_ARGS__)
#define EACH_14(m, x, a, ...) m(x, a) EACH_13(m, x, __VA_ARGS__)
#define EACH_15(m, x, a, ...) m(x, a) EACH_14(m, x, __VA_ARGS__)
#define EACH_16(m, x, a, ...) m(x, a) EACH_15(m, x, __VA_ARGS__)
#define EACH_17(m, x, a, ...) m(x, a) EACH_16(m, x, __VA_ARGS__)
#define EACH_18(m, x, a, ...) m(x, a) EACH_17(m, x, __VA_ARGS__)
#define EACH_19(m, x, a, ...) m(x, a) EACH_18(m, x, __VA_ARGS__)
#define EACH_20(m, x, a, ...) m(x, a) EACH_19(m, x, __VA_ARGS__)
#define EACH_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, count, ...) \
  EACH_##count
#define EACH_PICK(...) \
  EACH_COUNT(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define EACH(m, x, ...) EACH_PICK(__VA_ARGS__)(m, x, __VA_ARGS__)

#define POINTER_BIT(T, field) | (UINT64_C(1) << (offsetof(T, field) / sizeof(void*)))

/* The sets of pointers that ARRAY_TYPE is given. */
#define NONE UINT64_C(0)
#define FIELDS(T, ...) (UINT64_C(0) EACH(POINTER_BIT, T, __VA_ARGS__))
#define EACH_ELEMENT UINT64_C(1) /* an element is a pointer */

#define DECLARE_TYPE(T, ...)                              \
  static const Type T##_type = {.name = #T, __VA_ARGS__}; \
  static TypeHandle T##_handle

/* A type with pointers in the fields that are named, and a type with none. */
#define TYPE(T, ...) DECLARE_TYPE(T, .size = sizeof(T), .pointers = FIELDS(T, __VA_ARGS__))
#define LEAF_TYPE(T) DECLARE_TYPE(T, .size = sizeof(T))

/* A type whose last member is `elements[]`, and whose member `count` says how many there are. */
#define ARRAY_TYPE(T, count, elements, fixed_pointers, pointers_of_element)                      \
  _Static_assert(sizeof(((T*)0)->count) == sizeof(size_t), "the count of a " #T " is a size_t"); \
  DECLARE_TYPE(T, .size = offsetof(T, elements), .pointers = (fixed_pointers),                   \
               .count_offset = offsetof(T, count), .element_size = sizeof(((T*)0)->elements[0]), \
               .element_pointers = (pointers_of_element))

#define DEFINE_ONE(unused, T) T##_handle = backend_define(&T##_type);
#define TYPES(...)                                                   \
  static void define_types(void) { EACH(DEFINE_ONE, , __VA_ARGS__) } \
  _Static_assert(sizeof(void*) == 8, "words are of 64 bits")

/* --- allocating ------------------------------------------------------------------------------- */

#ifdef COUNT_SIZES
/* For the table of sizes: by words, then objects and bytes, of types with pointers and without. */
enum { SizeClasses = 19 };
typedef struct SizeCount {
  uint64_t objects[2];
  uint64_t bytes[2];
} SizeCount;
static SizeCount size_counts[SizeClasses];

EMITTED void count_object(size_t bytes, bool leaf) {
  const size_t words = (bytes + sizeof(void*) - 1) / sizeof(void*);
  const size_t index = words <= 16    ? (words == 0 ? 0 : words - 1)
                       : words <= 64  ? 16
                       : words <= 256 ? 17
                                      : 18;
  size_counts[index].objects[leaf]++;
  size_counts[index].bytes[leaf] += words * sizeof(void*);
}
#else
EMITTED void count_object(size_t bytes, bool leaf) {
  (void)bytes;
  (void)leaf;
}
#endif

EMITTED void* new_object(const Type* type, TypeHandle handle) {
  count_object(type->size, pointer_free(type));
  return backend_new(type, handle);
}

EMITTED void* new_array(const Type* type, TypeHandle handle, size_t count) {
  count_object(type->size + count * type->element_size, pointer_free(type));
  char* object = backend_new_array(type, handle, count);
  *(size_t*)(object + type->count_offset) = count;
  return object;
}

EMITTED void* new_untyped(size_t bytes) {
  count_object(bytes, false);
  return backend_new_untyped(bytes);
}

#define NEW(T) ((T*)new_object(&T##_type, T##_handle))
#define NEW_ARRAY(T, count) ((T*)new_array(&T##_type, T##_handle, (count)))
#define NEW_UNTYPED(bytes) new_untyped(bytes)

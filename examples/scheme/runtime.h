/* What the C code needs that schemec emits: values, layouts, allocation, calls, and the primitives
 * that are worth being inline. The rest is in runtime.c. docs/guide/emitting-c.md tells why all of
 * it is as it is.
 *
 * One thread runs Scheme; the collector may have others.
 */
#ifndef SCHEME_RUNTIME_H
#define SCHEME_RUNTIME_H

#include <jackdaw/heap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Values ----
 *
 * Bit 63 set: an immediate. No address that a program has looks like one, so the collector neither
 * takes it for a pointer nor rewrites it, whatever it stands for.
 *
 *   11 | 62 bits                     fixnum, two's complement
 *   10 | 0... | kind, 30 bits | 32   the empty list and its like (kind 0), a character (kind 1)
 *
 * Bit 63 clear: the address of an object, in the heap or in static data, plus a tag that says what
 * it is. The collector takes the sum for a pointer to the object's inside, and keeps the tag when
 * it moves the object. 0 is what new objects hold, and never a value of a program's.
 */
typedef uint64_t value;

enum tag {
  TAG_BOX = 0, /* of an assigned variable; never seen by a program */
  TAG_PAIR,
  TAG_FLONUM,
  TAG_CLOSURE,
  TAG_VECTOR,
  TAG_STRING,
  TAG_SYMBOL,
  TAG_WEAK
};
#define IMMEDIATE (UINT64_C(1) << 63)
#define SPECIAL(n) (IMMEDIATE | (n))
#define FALSE SPECIAL(0)
#define TRUE SPECIAL(1)
#define NIL SPECIAL(2)
#define UNSPECIFIED SPECIAL(3)
/* What a function returns whose last act is a call; see `pending`. */
#define TAIL_CALL SPECIAL(4)
#define CHARACTER (IMMEDIATE | UINT64_C(1) << 32)
#define FIXNUM (UINT64_C(3) << 62)
#define FIXNUM_MAX ((INT64_C(1) << 61) - 1)
/* The value of an object in static data, as an initialiser. */
#define STATIC(object, tag) ((value)(uintptr_t) & (object) + (tag))

static inline bool is_true(value v) { return v != FALSE; }
static inline value make_boolean(bool b) { return b ? TRUE : FALSE; }
static inline bool is_fixnum(value v) { return v >> 62 == 3; }
static inline bool are_fixnums(value a, value b) { return (a & b) >> 62 == 3; }
static inline value make_fixnum(int64_t n) { return (uint64_t)n | FIXNUM; }
static inline int64_t fixnum_of(value v) { return (int64_t)(v << 2) >> 2; }
static inline bool is_character(value v) { return v >> 32 == CHARACTER >> 32; }
static inline value make_character(unsigned c) { return CHARACTER | c; }
static inline unsigned character_of(value v) { return (unsigned)v; }
/* One test for both questions: is it an object's address, and of which type? */
static inline bool has_tag(value v, enum tag tag) { return (v & (IMMEDIATE | 7)) == tag; }
static inline void* address_of(value v) { return (void*)(v & ~UINT64_C(7)); }

/* ---- Objects ---- */

/* Homogeneous: two, one and one word, and none for the collector. */
struct pair {
  value first, rest;
};
struct flonum {
  double number;
};
struct box {
  value content;
};
/* Self-describing: the first word leads to what all closures of a lambda expression share, and that
 * begins with the layout's address. */
struct code {
  const jd_layout* layout; /* set at the start */
  void (*function)(void);  /* of the closure and the parameters */
  int parameters;          /* with a list of all further arguments: ~(those before it) */
  unsigned free;           /* how many variables a closure holds */
  const char* name;
};
struct closure {
  const struct code* code;
  value free[];
};
/* With a header before the object: their first word is their own. */
struct vector {
  uint64_t length;
  value items[];
};
struct string {
  uint64_t length;
  char bytes[];
};
struct symbol {
  value name;
};

extern jd_layout *pair_layout, *flonum_layout, *box_layout, *vector_layout, *string_layout;

static inline struct pair* pair_at(value v) { return (struct pair*)(v - TAG_PAIR); }
static inline struct box* box_at(value v) { return (struct box*)(v - TAG_BOX); }
static inline struct closure* closure_at(value v) { return (struct closure*)(v - TAG_CLOSURE); }
static inline struct vector* vector_at(value v) { return (struct vector*)(v - TAG_VECTOR); }
static inline struct string* string_at(value v) { return (struct string*)(v - TAG_STRING); }
static inline struct symbol* symbol_at(value v) { return (struct symbol*)(v - TAG_SYMBOL); }
static inline double flonum_of(value v) { return ((struct flonum*)(v - TAG_FLONUM))->number; }

_Noreturn void fail(const char* message, value culprit);
_Noreturn void fail_memory(void);

static inline void* allocate(const jd_layout* layout) {
  void* object = jd_new(layout);
  if (__builtin_expect(object == NULL, 0)) fail_memory();
  return object;
}

static inline value cons(value first, value rest) {
  struct pair* pair = allocate(pair_layout);
  pair->first = first;
  pair->rest = rest;
  return (value)pair + TAG_PAIR;
}
static inline value make_flonum(double number) {
  struct flonum* flonum = allocate(flonum_layout);
  flonum->number = number;
  return (value)flonum + TAG_FLONUM;
}
static inline value make_box(value content) {
  struct box* box = allocate(box_layout);
  box->content = content;
  return (value)box + TAG_BOX;
}
/* Its variables are stored by the caller. */
static inline value make_closure(const struct code* code) {
  struct closure* closure = allocate(code->layout);
  closure->code = code;
  return (value)closure + TAG_CLOSURE;
}
static inline value free_variable(value self, unsigned i) { return closure_at(self)->free[i]; }

/* ---- Calls ----
 *
 * A lambda expression becomes a C function of the closure and the arguments. A call in tail
 * position, but for those that are jumps or that end soon anyway, only says what is to be called,
 * and returns; whoever wanted the value makes the call (`finish`). So the stack does not grow.
 */
#define MOST_ARGUMENTS 8

extern struct pending {
  value function;
  int count;
  value arguments[MOST_ARGUMENTS];
} pending;

/* Makes the pending call, and those that are pending after it. */
value run_pending(void);
/* Calls anything with any number of arguments; the result may be TAIL_CALL. */
value call_any(value function, int count, const value* arguments);
value apply(value function, value list);

static inline value finish(value result) {
  return __builtin_expect(result == TAIL_CALL, 0) ? run_pending() : result;
}
static inline bool takes(value function, int count) {
  return has_tag(function, TAG_CLOSURE) && closure_at(function)->code->parameters == count;
}
static inline value tail_call(value function, int count, const value* arguments) {
  pending.function = function;
  pending.count = count;
  for (int i = 0; i < count; ++i) pending.arguments[i] = arguments[i];
  return TAIL_CALL;
}

/* C functions by their number of arguments, to be used as CODE(function, count)(function, ...). */
typedef value code_0(value);
typedef value code_1(value, value);
typedef value code_2(value, value, value);
typedef value code_3(value, value, value, value);
typedef value code_4(value, value, value, value, value);
typedef value code_5(value, value, value, value, value, value);
typedef value code_6(value, value, value, value, value, value, value);
typedef value code_7(value, value, value, value, value, value, value, value);
typedef value code_8(value, value, value, value, value, value, value, value, value);
#define CODE(closure, count) ((code_##count*)closure_at(closure)->code->function)

/* ---- Start ---- */

/* What an emitted program hands over. */
struct program {
  struct code** codes; /* each list ends with null */
  value** variables;
  struct symbol** symbols;
  value (*run)(value self);
};
int run_program(int argc, char** argv, const struct program* program);

/* ---- Primitives ---- */

static inline bool is_eq(value a, value b) { return a == b; }
static inline bool is_not(value v) { return v == FALSE; }
static inline bool is_null(value v) { return v == NIL; }
static inline bool is_boolean(value v) { return v == TRUE || v == FALSE; }
static inline bool is_pair(value v) { return has_tag(v, TAG_PAIR); }
static inline bool is_flonum(value v) { return has_tag(v, TAG_FLONUM); }
static inline bool is_number(value v) { return is_fixnum(v) || is_flonum(v); }
static inline bool is_symbol(value v) { return has_tag(v, TAG_SYMBOL); }
static inline bool is_string(value v) { return has_tag(v, TAG_STRING); }
static inline bool is_vector(value v) { return has_tag(v, TAG_VECTOR); }
static inline bool is_procedure(value v) { return has_tag(v, TAG_CLOSURE); }
bool is_eqv(value a, value b);
bool is_equal(value a, value b);

static inline struct pair* checked_pair(value v, const char* message) {
  if (__builtin_expect(!is_pair(v), 0)) fail(message, v);
  return pair_at(v);
}
static inline value car(value v) { return checked_pair(v, "car of what is no pair")->first; }
static inline value cdr(value v) { return checked_pair(v, "cdr of what is no pair")->rest; }
static inline value set_car(value v, value first) {
  checked_pair(v, "set-car! of what is no pair")->first = first;
  return UNSPECIFIED;
}
static inline value set_cdr(value v, value rest) {
  checked_pair(v, "set-cdr! of what is no pair")->rest = rest;
  return UNSPECIFIED;
}

/* Numbers: the C operators see fixnums with their two upper bits shifted out, so that they overflow
 * when fixnums do. */
value add_slowly(value a, value b);
value subtract_slowly(value a, value b);
value multiply_slowly(value a, value b);
bool is_less_slowly(value a, value b);
bool is_same_number_slowly(value a, value b);
value divide(value a, value b);
value quotient(value a, value b);
value remainder_of(value a, value b);
value modulo(value a, value b);
value square_root(value a);
value to_flonum(value a);
value to_fixnum(value a);

static inline value add(value a, value b) {
  int64_t sum;
  if (are_fixnums(a, b) && !__builtin_add_overflow((int64_t)(a << 2), (int64_t)(b << 2), &sum)) {
    return make_fixnum(sum >> 2);
  }
  return add_slowly(a, b);
}
static inline value subtract(value a, value b) {
  int64_t difference;
  if (are_fixnums(a, b) &&
      !__builtin_sub_overflow((int64_t)(a << 2), (int64_t)(b << 2), &difference)) {
    return make_fixnum(difference >> 2);
  }
  return subtract_slowly(a, b);
}
static inline value multiply(value a, value b) {
  int64_t product;
  if (are_fixnums(a, b) && !__builtin_mul_overflow((int64_t)(a << 2), fixnum_of(b), &product)) {
    return make_fixnum(product >> 2);
  }
  return multiply_slowly(a, b);
}
static inline bool is_less(value a, value b) {
  return are_fixnums(a, b) ? fixnum_of(a) < fixnum_of(b) : is_less_slowly(a, b);
}
static inline bool is_greater(value a, value b) { return is_less(b, a); }
static inline bool is_less_or_same(value a, value b) {
  return are_fixnums(a, b) ? fixnum_of(a) <= fixnum_of(b)
                           : is_less_slowly(a, b) || is_same_number_slowly(a, b);
}
static inline bool is_greater_or_same(value a, value b) { return is_less_or_same(b, a); }
static inline bool is_same_number(value a, value b) {
  return are_fixnums(a, b) ? a == b : is_same_number_slowly(a, b);
}

value make_vector(value length, value fill);
static inline value vector_length(value v) {
  if (!is_vector(v)) fail("vector-length of what is no vector", v);
  return make_fixnum((int64_t)vector_at(v)->length);
}
static inline value* vector_item(value v, value index, const char* message) {
  if (__builtin_expect(!is_vector(v), 0)) fail(message, v);
  /* As unsigned numbers, the negative ones are too large as well. */
  if (__builtin_expect(!is_fixnum(index) || (uint64_t)fixnum_of(index) >= vector_at(v)->length, 0))
    fail("there is no such element", index);
  return &vector_at(v)->items[fixnum_of(index)];
}
static inline value vector_ref(value v, value index) {
  return *vector_item(v, index, "vector-ref of what is no vector");
}
static inline value vector_set(value v, value index, value item) {
  *vector_item(v, index, "vector-set! of what is no vector") = item;
  return UNSPECIFIED;
}

value make_string(value length, value fill);
value make_string_of(const char* text);
value string_length(value string);
value string_ref(value string, value index);
value string_set(value string, value index, value character);
value string_append(value a, value b);
value substring(value string, value from, value to);
bool is_same_string(value a, value b);
bool is_string_less(value a, value b);
value symbol_to_string(value symbol);
value string_to_symbol(value string);
value number_to_string(value number);
value character_to_integer(value character);
value integer_to_character(value integer);
bool is_alphabetic(value character);
bool is_numeric(value character);

/* Of an object: stays the same wherever it moves. */
value hash_by_identity(value v);
/* The same for all that is_equal takes for the same. */
value hash_by_content(value v);
value make_weak(value target);
value weak_value(value weak); /* false once the target has died */
value collect(void);
value epoch(void);
value argument(value index, value otherwise);

value display(value v);
value write_value(value v);
value newline(void);
value report_error(value message, value list);

#endif

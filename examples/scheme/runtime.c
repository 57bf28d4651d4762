/* The primitives that are not inline, calls of anything, and the start. */
#include "runtime.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Layouts ---- */

jd_layout *pair_layout, *flonum_layout, *box_layout, *vector_layout, *string_layout;
static jd_layout* entry_layout;

static jd_layout* define(const jd_layout_info* info) {
  jd_layout* layout = jd_layout_define(info);
  if (layout == NULL) exit(EXIT_FAILURE); /* the library has said why */
  return layout;
}

/* A symbol that was made at run time, in the table of symbols. */
struct entry {
  jd_weak* symbol;
  struct entry* next;
};

static void define_layouts(void) {
  static const uint64_t pair_pointers[] = {JD_POINTER(struct pair, first) |
                                           JD_POINTER(struct pair, rest)};
  static const uint64_t box_pointers[] = {JD_POINTER(struct box, content)};
  static const uint64_t entry_pointers[] = {JD_POINTER(struct entry, symbol) |
                                            JD_POINTER(struct entry, next)};
  static const uint64_t item_pointers[] = {1};
  pair_layout = define(
      &(jd_layout_info){.name = "pair", .size = sizeof(struct pair), .pointers = pair_pointers});
  flonum_layout = define(&(jd_layout_info){.name = "flonum", .size = sizeof(struct flonum)});
  /* Symbols look the same. What homogeneous objects are is told by who points to them. */
  box_layout = define(
      &(jd_layout_info){.name = "box", .size = sizeof(struct box), .pointers = box_pointers});
  entry_layout = define(
      &(jd_layout_info){.name = "entry", .size = sizeof(struct entry), .pointers = entry_pointers});
  vector_layout = define(&(jd_layout_info){.name = "vector",
                                           .source = JD_HEADER,
                                           .size = sizeof(struct vector),
                                           .element_size = sizeof(value),
                                           .element_pointers = item_pointers});
  string_layout = define(&(jd_layout_info){
      .name = "string", .source = JD_HEADER, .size = sizeof(struct string), .element_size = 1});
}

/* Closures with the same number of variables have a layout in common. */
static void define_closure(struct code* code) {
  static jd_layout* layouts[64];
  if (layouts[code->free] == NULL) {
    /* All words but the first: a compiler that lets its users write larger closures needs more
     * words here. */
    const uint64_t pointers[] = {~(~UINT64_C(0) << code->free) << 1};
    layouts[code->free] =
        define(&(jd_layout_info){.name = "closure",
                                 .source = JD_SELF,
                                 .size = sizeof(struct closure) + code->free * sizeof(value),
                                 .pointers = pointers});
  }
  code->layout = layouts[code->free];
}

static void* allocate_array(const jd_layout* layout, uint64_t length) {
  uint64_t* object = jd_new_array(layout, length);
  if (object == NULL) fail_memory();
  *object = length; /* the first word of both */
  return object;
}

/* ---- Errors ---- */

static FILE* output; /* stdout, until there is an error */

void fail(const char* message, value culprit) {
  output = stderr;
  display(make_string_of("error: "));
  display(make_string_of(message));
  display(make_string_of(": "));
  write_value(culprit);
  newline();
  exit(EXIT_FAILURE);
}

void fail_memory(void) {
  fputs("error: memory has run out\n", stderr);
  exit(EXIT_FAILURE);
}

value report_error(value message, value list) {
  output = stderr;
  display(make_string_of("error: "));
  display(message);
  for (; is_pair(list); list = cdr(list)) {
    putc(' ', output);
    write_value(car(list));
  }
  newline();
  exit(EXIT_FAILURE);
}

/* ---- Calls ---- */

struct pending pending;

value call_any(value function, int count, const value* arguments) {
  value all[MOST_ARGUMENTS + 1];
  const struct code* code;
  if (!is_procedure(function)) fail("a call of what is no procedure", function);
  code = closure_at(function)->code;
  if (code->parameters < 0) {
    const int needed = ~code->parameters;
    value rest = NIL;
    if (count < needed) fail("too few arguments for", function);
    while (count > needed) rest = cons(arguments[--count], rest);
    memcpy(all, arguments, (size_t)count * sizeof(value));
    all[count++] = rest;
    arguments = all;
  } else if (count != code->parameters) {
    fail("wrong number of arguments for", function);
  }
  const value f = function;
  const value* a = arguments;
  switch (count) {
    case 0:
      return CODE(f, 0)(f);
    case 1:
      return CODE(f, 1)(f, a[0]);
    case 2:
      return CODE(f, 2)(f, a[0], a[1]);
    case 3:
      return CODE(f, 3)(f, a[0], a[1], a[2]);
    case 4:
      return CODE(f, 4)(f, a[0], a[1], a[2], a[3]);
    case 5:
      return CODE(f, 5)(f, a[0], a[1], a[2], a[3], a[4]);
    case 6:
      return CODE(f, 6)(f, a[0], a[1], a[2], a[3], a[4], a[5]);
    case 7:
      return CODE(f, 7)(f, a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    default:
      return CODE(f, 8)(f, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
  }
}

value run_pending(void) {
  value result;
  do {
    value arguments[MOST_ARGUMENTS] = {0};
    const value function = pending.function;
    const int count = pending.count;
    for (int i = 0; i < count; ++i) {
      arguments[i] = pending.arguments[i];
      pending.arguments[i] = 0; /* static data hold what they mean */
    }
    pending.function = 0;
    result = call_any(function, count, arguments);
  } while (result == TAIL_CALL);
  return result;
}

value apply(value function, value list) {
  value arguments[MOST_ARGUMENTS] = {0};
  int count = 0;
  for (; is_pair(list); list = cdr(list)) {
    if (count == MOST_ARGUMENTS) fail("too many arguments for", function);
    arguments[count++] = car(list);
  }
  return finish(call_any(function, count, arguments));
}

/* ---- Numbers ---- */

static double number_of(value v) {
  if (is_fixnum(v)) return (double)fixnum_of(v);
  if (!is_flonum(v)) fail("arithmetic with what is no number", v);
  return flonum_of(v);
}
/* After the inline functions found that it is not that simple. */
static bool is_overflow(value a, value b) {
  if (are_fixnums(a, b))
    fail("the result is too large for a fixnum; the operands were", cons(a, b));
  return false;
}
value add_slowly(value a, value b) {
  is_overflow(a, b);
  return make_flonum(number_of(a) + number_of(b));
}
value subtract_slowly(value a, value b) {
  is_overflow(a, b);
  return make_flonum(number_of(a) - number_of(b));
}
value multiply_slowly(value a, value b) {
  is_overflow(a, b);
  return make_flonum(number_of(a) * number_of(b));
}
bool is_less_slowly(value a, value b) { return number_of(a) < number_of(b); }
bool is_same_number_slowly(value a, value b) { return number_of(a) == number_of(b); }

/* The least fixnum by -1 is one more than the greatest. */
static value whole_quotient(value a, value b) {
  const int64_t quotient = fixnum_of(a) / fixnum_of(b);
  if (quotient > FIXNUM_MAX) is_overflow(a, b);
  return make_fixnum(quotient);
}
value divide(value a, value b) {
  if (are_fixnums(a, b) && fixnum_of(b) != 0 && fixnum_of(a) % fixnum_of(b) == 0) {
    return whole_quotient(a, b);
  }
  return make_flonum(number_of(a) / number_of(b));
}
static void check_integers(value a, value b) {
  if (!is_fixnum(a)) fail("division of what is no integer", a);
  if (!is_fixnum(b) || fixnum_of(b) == 0) fail("division by", b);
}
value quotient(value a, value b) {
  check_integers(a, b);
  return whole_quotient(a, b);
}
value remainder_of(value a, value b) {
  check_integers(a, b);
  return make_fixnum(fixnum_of(a) % fixnum_of(b));
}
value modulo(value a, value b) {
  int64_t rest;
  check_integers(a, b);
  rest = fixnum_of(a) % fixnum_of(b);
  return make_fixnum(rest != 0 && (rest < 0) != (fixnum_of(b) < 0) ? rest + fixnum_of(b) : rest);
}
value square_root(value a) { return make_flonum(sqrt(number_of(a))); }
value to_flonum(value a) { return make_flonum(number_of(a)); }
value to_fixnum(value a) {
  /* The greatest fixnum is no double; one more is, and the least is that, negated. */
  const double beyond = (double)(FIXNUM_MAX + 1);
  const double number = trunc(number_of(a));
  if (!(number >= -beyond && number < beyond)) fail("too large for a fixnum", a);
  return make_fixnum((int64_t)number);
}

/* As few digits as tell it from all other numbers. */
static void print_number(value v, char* text, size_t room) {
  if (is_fixnum(v)) {
    snprintf(text, room, "%lld", (long long)fixnum_of(v));
    return;
  }
  for (int digits = 15; digits <= 17; ++digits) {
    snprintf(text, room, "%.*g", digits, flonum_of(v));
    if (strtod(text, NULL) == flonum_of(v)) break;
  }
  if (strpbrk(text, ".en") == NULL) strncat(text, ".0", room - strlen(text) - 1);
}
value number_to_string(value number) {
  char text[40];
  number_of(number); /* or an error */
  print_number(number, text, sizeof text);
  return make_string_of(text);
}

/* ---- Sameness and hashes ---- */

bool is_eqv(value a, value b) {
  return a == b || (is_flonum(a) && is_flonum(b) && flonum_of(a) == flonum_of(b));
}
bool is_equal(value a, value b) {
  for (;; a = pair_at(a)->rest, b = pair_at(b)->rest) {
    if (is_eqv(a, b)) return true;
    if (is_string(a) && is_string(b)) return is_same_string(a, b);
    if (is_vector(a) && is_vector(b)) break;
    if (!is_pair(a) || !is_pair(b) || !is_equal(pair_at(a)->first, pair_at(b)->first)) return false;
  }
  if (vector_at(a)->length != vector_at(b)->length) return false;
  for (uint64_t i = 0; i < vector_at(a)->length; ++i) {
    if (!is_equal(vector_at(a)->items[i], vector_at(b)->items[i])) return false;
  }
  return true;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}
static value hash_value(uint64_t hash) { return make_fixnum((int64_t)(hash >> 4)); }

static uint64_t identity_of(value v) {
  /* An immediate is itself; and an object in static data stays where it is. The collector has
   * numbers for its own objects only. */
  if ((v & IMMEDIATE) != 0 || jd_size_of(address_of(v)) == 0) return v;
  const uint64_t number = jd_address_hash(address_of(v));
  if (number == 0) fail_memory();
  return number;
}
value hash_by_identity(value v) { return hash_value(mix(0, identity_of(v))); }

static uint64_t content_of(value v, int depth) {
  uint64_t hash = 1;
  if (is_string(v)) {
    for (uint64_t i = 0; i < string_at(v)->length; ++i) {
      hash = mix(hash, (unsigned char)string_at(v)->bytes[i]);
    }
  } else if (is_flonum(v)) {
    const double number = flonum_of(v) + 0.0; /* -0.0 is 0.0 */
    memcpy(&hash, &number, sizeof hash);
  } else if (is_symbol(v)) {
    return content_of(symbol_at(v)->name, depth);
  } else if (is_vector(v)) {
    hash = vector_at(v)->length;
  } else if (is_pair(v)) {
    if (depth == 0) return hash;
    for (int i = 0; is_pair(v) && i < 16; ++i, v = pair_at(v)->rest) {
      hash = mix(hash, content_of(pair_at(v)->first, depth - 1));
    }
  } else {
    hash = identity_of(v);
  }
  return mix(hash, 0);
}
value hash_by_content(value v) { return hash_value(content_of(v, 4)); }

/* ---- Vectors, strings and symbols ---- */

static uint64_t size_argument(value length) {
  if (!is_fixnum(length) || fixnum_of(length) < 0) fail("no length", length);
  return (uint64_t)fixnum_of(length);
}

value make_vector(value length, value fill) {
  struct vector* vector = allocate_array(vector_layout, size_argument(length));
  for (uint64_t i = 0; i < vector->length; ++i) vector->items[i] = fill;
  return (value)vector + TAG_VECTOR;
}

static value new_string(uint64_t length) {
  return (value)allocate_array(string_layout, length) + TAG_STRING;
}
value make_string_of(const char* text) {
  const value string = new_string(strlen(text));
  memcpy(string_at(string)->bytes, text, string_at(string)->length);
  return string;
}
static struct string* checked_string(value v) {
  if (!is_string(v)) fail("no string", v);
  return string_at(v);
}
static unsigned checked_character(value v) {
  if (!is_character(v)) fail("no character", v);
  return character_of(v);
}
value make_string(value length, value fill) {
  const value string = new_string(size_argument(length));
  memset(string_at(string)->bytes, (int)checked_character(fill), string_at(string)->length);
  return string;
}
value string_length(value string) { return make_fixnum((int64_t)checked_string(string)->length); }
static char* string_byte(value string, value index) {
  if (!is_fixnum(index) || (uint64_t)fixnum_of(index) >= checked_string(string)->length) {
    fail("there is no such character", index);
  }
  return &string_at(string)->bytes[fixnum_of(index)];
}
value string_ref(value string, value index) {
  return make_character((unsigned char)*string_byte(string, index));
}
value string_set(value string, value index, value character) {
  *string_byte(string, index) = (char)checked_character(character);
  return UNSPECIFIED;
}
value string_append(value a, value b) {
  const uint64_t length = checked_string(a)->length;
  const value both = new_string(length + checked_string(b)->length);
  memcpy(string_at(both)->bytes, string_at(a)->bytes, length);
  memcpy(string_at(both)->bytes + length, string_at(b)->bytes, string_at(b)->length);
  return both;
}
value substring(value string, value from, value to) {
  const uint64_t begin = size_argument(from);
  const uint64_t end = size_argument(to);
  value part;
  if (begin > end || end > checked_string(string)->length) fail("no part of", string);
  part = new_string(end - begin);
  memcpy(string_at(part)->bytes, string_at(string)->bytes + begin, end - begin);
  return part;
}
static int compare(value a, value b) {
  const struct string* x = checked_string(a);
  const struct string* y = checked_string(b);
  const int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
  if (order != 0) return order;
  return (x->length > y->length) - (x->length < y->length);
}
bool is_same_string(value a, value b) { return compare(a, b) == 0; }
bool is_string_less(value a, value b) { return compare(a, b) < 0; }

value character_to_integer(value character) {
  return make_fixnum((int64_t)checked_character(character));
}
value integer_to_character(value integer) {
  if (size_argument(integer) > 255) fail("no character has the number", integer);
  return make_character((unsigned)fixnum_of(integer));
}
bool is_alphabetic(value character) { return isalpha((int)checked_character(character)) != 0; }
bool is_numeric(value character) { return isdigit((int)checked_character(character)) != 0; }

/* Symbols that the program's text has lie in static data; others in the heap, where the table does
 * not hold them. */
static struct symbol** static_symbols;
static struct entry* entries;

value symbol_to_string(value symbol) {
  if (!is_symbol(symbol)) fail("no symbol", symbol);
  return symbol_at(symbol)->name;
}
value string_to_symbol(value string) {
  struct entry* entry;
  struct symbol* symbol;
  checked_string(string);
  for (struct symbol** s = static_symbols; *s != NULL; ++s) {
    if (is_same_string((*s)->name, string)) return (value)*s + TAG_SYMBOL;
  }
  for (struct entry** at = &entries; *at != NULL;) {
    const value found = (value)jd_weak_get((*at)->symbol);
    if (found == 0) {
      *at = (*at)->next;
      continue;
    }
    if (is_same_string(symbol_at(found)->name, string)) return found;
    at = &(*at)->next;
  }
  symbol = allocate(box_layout);
  symbol->name = string_append(string, new_string(0)); /* a copy that nobody changes */
  entry = allocate(entry_layout);
  entry->symbol = jd_weak_new((void*)((value)symbol + TAG_SYMBOL));
  if (entry->symbol == NULL) fail_memory();
  entry->next = entries;
  entries = entry;
  return (value)symbol + TAG_SYMBOL;
}

/* ---- The collector ---- */

/* The reference holds the tagged value: an address inside of the object, as far as the collector is
 * concerned. Of what the collector does not own, it is a strong one. */
value make_weak(value target) {
  jd_weak* weak = jd_weak_new((void*)target);
  if (weak == NULL) fail_memory();
  return (value)weak + TAG_WEAK;
}
value weak_value(value weak) {
  value target;
  if (!has_tag(weak, TAG_WEAK)) fail("no weak reference", weak);
  target = (value)jd_weak_get(address_of(weak));
  return target != 0 ? target : FALSE;
}
value collect(void) {
  jd_collect(1);
  return UNSPECIFIED;
}
value epoch(void) { return make_fixnum((int64_t)jd_epoch()); }

/* ---- Output ---- */

static void print(value v, bool readably);

static void print_list(value v, bool readably) {
  putc('(', output);
  for (const char* before = ""; is_pair(v); v = pair_at(v)->rest, before = " ") {
    fputs(before, output);
    print(pair_at(v)->first, readably);
  }
  if (v != NIL) {
    fputs(" . ", output);
    print(v, readably);
  }
  putc(')', output);
}
static void print_string(const struct string* string, bool readably) {
  if (!readably) {
    fwrite(string->bytes, 1, string->length, output);
    return;
  }
  putc('"', output);
  for (uint64_t i = 0; i < string->length; ++i) {
    const char c = string->bytes[i];
    if (c == '"' || c == '\\') putc('\\', output);
    if (c == '\n') {
      fputs("\\n", output);
    } else {
      putc(c, output);
    }
  }
  putc('"', output);
}
static void print_character(int c, bool readably) {
  if (readably) fputs("#\\", output);
  if (readably && c == ' ') {
    fputs("space", output);
  } else if (readably && c == '\n') {
    fputs("newline", output);
  } else {
    putc(c, output);
  }
}
static void print_immediate(value v, bool readably) {
  static const char* const names[] = {"#f", "#t", "()", "#<unspecified>"};
  if (is_character(v)) {
    print_character((int)character_of(v), readably);
  } else {
    fputs(v != 0 && v <= UNSPECIFIED ? names[v & 3] : "#<nothing>", output);
  }
}
static void print(value v, bool readably) {
  char text[40];
  if (is_number(v)) {
    print_number(v, text, sizeof text);
    fputs(text, output);
  } else if ((v & IMMEDIATE) != 0 || v == 0) {
    print_immediate(v, readably);
  } else if (is_pair(v)) {
    print_list(v, readably);
  } else if (is_string(v)) {
    print_string(string_at(v), readably);
  } else if (is_symbol(v)) {
    print_string(string_at(symbol_at(v)->name), false);
  } else if (is_vector(v)) {
    putc('#', output);
    putc('(', output);
    for (uint64_t i = 0; i < vector_at(v)->length; ++i) {
      if (i != 0) putc(' ', output);
      print(vector_at(v)->items[i], readably);
    }
    putc(')', output);
  } else if (is_procedure(v)) {
    fprintf(output, "#<procedure %s>", closure_at(v)->code->name);
  } else {
    fputs("#<weak reference>", output);
  }
}
value display(value v) {
  print(v, false);
  return UNSPECIFIED;
}
value write_value(value v) {
  print(v, true);
  return UNSPECIFIED;
}
value newline(void) {
  putc('\n', output);
  return UNSPECIFIED;
}

/* ---- Start ---- */

static int argument_count;
static char** argument_texts;

value argument(value index, value otherwise) {
  const int64_t i = is_fixnum(index) ? fixnum_of(index) : 0;
  if (i < 1 || i >= argument_count) return otherwise;
  return make_fixnum(strtoll(argument_texts[i], NULL, 10));
}

int run_program(int argc, char** argv, const struct program* program) {
  argument_count = argc;
  argument_texts = argv;
  static_symbols = program->symbols;
  output = stdout;
  define_layouts();
  for (struct code** code = program->codes; *code != NULL; ++code) define_closure(*code);
  /* The variables lie in static data, where they would be roots anyway; but as such they would pin
   * what they refer to. */
  for (value** variable = program->variables; *variable != NULL; ++variable) {
    if (jd_root_add(*variable) == 0) fail_memory();
  }
  if (jd_root_add(&entries) == 0) fail_memory();
  finish(program->run(0));
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

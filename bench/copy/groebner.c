/*
 * groebner: a Groebner basis of the cyclic 6-roots, and the normal forms of many monomials by it.
 *
 * Models: computer algebra in a functional language, after the Groebner basis of the ISMM 1998
 *   paper. Polynomials over the integers modulo 32003 are lists of terms that never change; a
 *   monomial is a vector of exponents, made anew by every product. Buchberger's algorithm makes
 *   critical pairs, which wait in a queue, and reduces their S-polynomials. Then the normal form of
 *   every monomial up to a degree is computed, each from one of a lesser degree, and kept.
 * Live: grows to 18 MB of normal forms: lists of up to 156 terms.
 * Sizes: terms of three words (five in six objects), exponents of two without pointers; pairs of
 *   five; and untyped objects: the basis and the queue, arrays that double up to some hundred
 * words, and the table of normal forms, of up to 65,536. Checked: the reduced basis has 45
 * polynomials (cyclic 5: 20) and leaves 156 monomials standing (70), as many as the system has
 * roots; all S-polynomials of the basis reduce to zero; normal forms of products of normal forms
 * are those that reduction of the monomial finds.
 */
#include "run.h"

enum { Modulus = 32003, Variables = 6 };

/* Exponents of x1 .. x6, of which x1 is the largest, and their sum. Pointer-free. */
typedef struct Monomial {
  OBJECT;
  int16_t degree;
  int16_t exponents[Variables];
} Monomial;
LEAF_TYPE(Monomial);

/* A polynomial: its terms, from the largest to the smallest; zero is null. */
typedef struct Term {
  OBJECT;
  const Monomial* monomial;
  const struct Term* next;
  long coefficient; /* 1 .. Modulus - 1 */
} Term;
TYPE(Term, monomial, next);

typedef struct Pair {
  OBJECT;
  const Monomial* least_multiple; /* of the leading monomials */
  const Term* first;
  const Term* second;
  size_t first_index; /* in the basis */
  size_t second_index;
} Pair;
TYPE(Pair, least_multiple, first, second);

/* A monomial and its normal form by the basis. */
typedef struct Form {
  OBJECT;
  const Monomial* monomial;
  const Term* terms;
} Form;
TYPE(Form, monomial, terms);

TYPES(Monomial, Term, Pair, Form);

/* A list in one piece that doubles when it is full. The memory is untyped: any word of it may be a
 * pointer for all that the collector knows. */
typedef struct Sequence {
  void** items;
  size_t count;
  size_t capacity;
} Sequence;

static void append(Sequence* sequence, const void* item) {
  if (sequence->count == sequence->capacity) {
    const size_t capacity = sequence->capacity == 0 ? 4 : 2 * sequence->capacity;
    void** larger = NEW_UNTYPED(capacity * sizeof(void*));
    for (size_t i = 0; i < sequence->count; i++) larger[i] = sequence->items[i];
    sequence->items = larger;
    sequence->capacity = capacity;
  }
  sequence->items[sequence->count++] = (void*)item;
}

/* --- coefficients and monomials --------------------------------------------------------------- */

static long inverse(long a) {
  long result = 1;
  for (long exponent = Modulus - 2; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * a % Modulus;
    a = a * a % Modulus;
  }
  return result;
}

/* How the exponents of two monomials are combined. */
enum Combination { Product, Quotient, LeastMultiple };

static const Monomial* combine(enum Combination how, const Monomial* a, const Monomial* b) {
  Monomial* result = NEW(Monomial);
  int degree = 0;
  for (int i = 0; i < Variables; i++) {
    const int x = a->exponents[i];
    const int y = b->exponents[i];
    const int z = how == Product ? x + y : how == Quotient ? x - y : x > y ? x : y;
    result->exponents[i] = (int16_t)z;
    degree += z;
  }
  result->degree = (int16_t)degree;
  return result;
}

static const Monomial* variable(int index) {
  Monomial* result = NEW(Monomial);
  memset(result->exponents, 0, sizeof(result->exponents));
  result->degree = index >= 0;
  if (index >= 0) result->exponents[index] = 1;
  return result;
}

static const Monomial* one(void) { return variable(-1); }

static bool divides(const Monomial* a, const Monomial* b) {
  for (int i = 0; i < Variables; i++) {
    if (a->exponents[i] > b->exponents[i]) return false;
  }
  return true;
}

static bool disjoint(const Monomial* a, const Monomial* b) {
  for (int i = 0; i < Variables; i++) {
    if (a->exponents[i] != 0 && b->exponents[i] != 0) return false;
  }
  return true;
}

static bool same(const Monomial* a, const Monomial* b) {
  return memcmp(a->exponents, b->exponents, sizeof(a->exponents)) == 0;
}

/* The graded reverse lexicographic order. */
static int compare(const Monomial* a, const Monomial* b) {
  if (a->degree != b->degree) return a->degree < b->degree ? -1 : 1;
  for (int i = Variables - 1; i >= 0; i--) {
    if (a->exponents[i] != b->exponents[i]) return a->exponents[i] > b->exponents[i] ? -1 : 1;
  }
  return 0;
}

/* --- polynomials ------------------------------------------------------------------------------ */

static Term* make_term(long coefficient, const Monomial* monomial, const Term* next) {
  Term* term = NEW(Term);
  term->coefficient = coefficient;
  term->monomial = monomial;
  term->next = next;
  return term;
}

static const Term* multiply(const Term* a, long factor, const Monomial* monomial) {
  if (a == NULL) return NULL;
  const Monomial* product = combine(Product, a->monomial, monomial);
  return make_term(a->coefficient * factor % Modulus, product, multiply(a->next, factor, monomial));
}

static const Term* scale(const Term* a, long factor) {
  if (a == NULL) return NULL;
  return make_term(a->coefficient * factor % Modulus, a->monomial, scale(a->next, factor));
}

/* The leading coefficient becomes one. */
static const Term* normalize(const Term* a) {
  return a == NULL || a->coefficient == 1 ? a : scale(a, inverse(a->coefficient));
}

static const Term* add(const Term* a, const Term* b) {
  Term* first = NULL;
  Term* last = NULL;
  while (a != NULL && b != NULL) {
    const int order = compare(a->monomial, b->monomial);
    const long sum =
        order == 0 ? (a->coefficient + b->coefficient) % Modulus : (order > 0 ? a : b)->coefficient;
    if (sum != 0) {
      Term* term = make_term(sum, (order >= 0 ? a : b)->monomial, NULL);
      if (last == NULL) {
        first = term;
      } else {
        last->next = term;
      }
      last = term;
    }
    if (order >= 0) a = a->next;
    if (order <= 0) b = b->next;
  }
  const Term* rest = a != NULL ? a : b;
  if (last == NULL) return rest;
  last->next = rest;
  return first;
}

/* What the leading terms of a and a multiple of b leave when they cancel. */
static const Term* cancel(const Term* a, const Term* b) {
  const Monomial* quotient = combine(Quotient, a->monomial, b->monomial);
  const long factor = (Modulus - a->coefficient) * inverse(b->coefficient) % Modulus;
  return add(a->next, multiply(b->next, factor, quotient));
}

static const Term* divisor(const Sequence* basis, const Monomial* monomial) {
  for (size_t i = 0; i < basis->count; i++) {
    const Term* polynomial = basis->items[i];
    if (polynomial != NULL && divides(polynomial->monomial, monomial)) return polynomial;
  }
  return NULL;
}

/* The normal form: nothing of the basis divides one of its terms. */
static const Term* reduce(const Sequence* basis, const Term* a) {
  Term* first = NULL;
  Term* last = NULL;
  while (a != NULL) {
    const Term* by = divisor(basis, a->monomial);
    if (by != NULL) {
      a = cancel(a, by);
      continue;
    }
    Term* term = make_term(a->coefficient, a->monomial, NULL);
    if (last == NULL) {
      first = term;
    } else {
      last->next = term;
    }
    last = term;
    a = a->next;
  }
  return first;
}

static const Term* s_polynomial(const Term* a, const Term* b, const Monomial* least_multiple) {
  const Monomial* quotient = combine(Quotient, least_multiple, a->monomial);
  return cancel(multiply(a, 1, quotient), b);
}

/* --- Buchberger's algorithm ------------------------------------------------------------------- */

typedef struct Ideal {
  Sequence basis; /* null where a polynomial is not needed any more */
  Sequence pairs; /* null where one has been taken */
  size_t reductions;
} Ideal;

/* Drops the pairs that the new polynomial makes superfluous (Gebauer and Moeller's criterion B). */
static void drop_pairs(Ideal* ideal, const Term* added) {
  size_t kept = 0;
  for (size_t i = 0; i < ideal->pairs.count; i++) {
    const Pair* pair = ideal->pairs.items[i];
    const Monomial* least = pair->least_multiple;
    const bool superfluous =
        divides(added->monomial, least) &&
        !same(combine(LeastMultiple, pair->first->monomial, added->monomial), least) &&
        !same(combine(LeastMultiple, pair->second->monomial, added->monomial), least);
    if (!superfluous) ideal->pairs.items[kept++] = ideal->pairs.items[i];
  }
  while (ideal->pairs.count > kept) ideal->pairs.items[--ideal->pairs.count] = NULL;
}

/* Of the pairs with the new polynomial, one for each least multiple that no other divides, unless
 * its leading monomials are disjoint (criteria M, F and Buchberger's). */
static void add_pairs(Ideal* ideal, const Term* added) {
  Sequence found = {0};
  for (size_t i = 0; i < ideal->basis.count; i++) {
    const Term* other = ideal->basis.items[i];
    if (other == NULL) continue;
    Pair* pair = NEW(Pair);
    pair->least_multiple = combine(LeastMultiple, other->monomial, added->monomial);
    pair->first = other;
    pair->second = added;
    pair->first_index = i;
    pair->second_index = ideal->basis.count;
    append(&found, pair);
  }
  for (size_t i = 0; i < found.count; i++) {
    const Pair* pair = found.items[i];
    bool needed = !disjoint(pair->first->monomial, added->monomial);
    for (size_t j = 0; j < found.count && needed; j++) {
      const Pair* other = found.items[j];
      if (i == j || !divides(other->least_multiple, pair->least_multiple)) continue;
      /* Of equal ones the disjoint one goes first, which is not needed itself, then the earlier. */
      needed = same(other->least_multiple, pair->least_multiple) && i < j &&
               !disjoint(other->first->monomial, added->monomial);
    }
    if (needed) append(&ideal->pairs, pair);
  }
}

static void add_polynomial(Ideal* ideal, const Term* added) {
  drop_pairs(ideal, added);
  add_pairs(ideal, added);
  for (size_t i = 0; i < ideal->basis.count; i++) {
    const Term* other = ideal->basis.items[i];
    /* Its pairs stay, and hold it. */
    if (other != NULL && divides(added->monomial, other->monomial)) ideal->basis.items[i] = NULL;
  }
  append(&ideal->basis, added);
}

/* Takes the pair of the smallest least multiple. */
static const Pair* take_pair(Sequence* pairs) {
  size_t smallest = 0;
  for (size_t i = 1; i < pairs->count; i++) {
    const Pair* a = pairs->items[i];
    const Pair* b = pairs->items[smallest];
    if (compare(a->least_multiple, b->least_multiple) < 0) smallest = i;
  }
  const Pair* taken = pairs->items[smallest];
  pairs->items[smallest] = pairs->items[--pairs->count];
  pairs->items[pairs->count] = NULL;
  return taken;
}

/* Each polynomial's terms behind the first are reduced by the others. */
static Sequence reduced_basis(const Sequence* basis) {
  Sequence result = {0};
  for (size_t i = 0; i < basis->count; i++) {
    const Term* polynomial = basis->items[i];
    if (polynomial == NULL) continue;
    const Term* rest = reduce(basis, polynomial->next);
    append(&result, make_term(polynomial->coefficient, polynomial->monomial, rest));
  }
  return result;
}

static Sequence groebner_basis(const Sequence* generators, size_t* reductions) {
  Ideal ideal = {{0}, {0}, 0};
  for (size_t i = 0; i < generators->count; i++) {
    const Term* rest = normalize(reduce(&ideal.basis, generators->items[i]));
    if (rest != NULL) add_polynomial(&ideal, rest);
  }
  while (ideal.pairs.count > 0) {
    const Pair* pair = take_pair(&ideal.pairs);
    const Term* s = s_polynomial(pair->first, pair->second, pair->least_multiple);
    const Term* rest = normalize(reduce(&ideal.basis, s));
    if (rest != NULL) add_polynomial(&ideal, rest);
    ++*reductions;
  }
  return reduced_basis(&ideal.basis);
}

/* --- the system ------------------------------------------------------------------------------- */

/* The cyclic n-roots: for each k below n the sum of all products of k neighbours on a ring is
 * zero, and the product of all is one. Variables that are left over are zero, too. */
static Sequence cyclic(int n) {
  Sequence system = {0};
  for (int k = 1; k <= n; k++) {
    const Term* sum = k < n ? NULL : make_term(Modulus - 1, one(), NULL);
    for (int start = 0; start < (k < n ? n : 1); start++) {
      const Monomial* product = one();
      for (int i = 0; i < k; i++) product = combine(Product, product, variable((start + i) % n));
      sum = add(sum, make_term(1, product, NULL));
    }
    append(&system, sum);
  }
  for (int i = n; i < Variables; i++) append(&system, make_term(1, variable(i), NULL));
  return system;
}

static void check_basis(const Sequence* basis, const Sequence* generators) {
  for (size_t i = 0; i < generators->count; i++) {
    CHECK(reduce(basis, generators->items[i]) == NULL, "generator %zu is not in the ideal", i);
  }
  for (size_t i = 0; i < basis->count; i++) {
    for (size_t j = 0; j < i; j++) {
      const Term* a = basis->items[i];
      const Term* b = basis->items[j];
      if (disjoint(a->monomial, b->monomial)) continue;
      const Term* s = s_polynomial(a, b, combine(LeastMultiple, a->monomial, b->monomial));
      CHECK(reduce(basis, s) == NULL, "the S-polynomial of %zu and %zu is not zero", i, j);
    }
  }
}

/* --- normal forms ----------------------------------------------------------------------------- */

/* All monomials up to a degree, by degrees, with their normal forms; and, to find them by, a hash
 * table of twice as many slots or more. */
typedef struct Table {
  Sequence forms;
  Form** slots;
  size_t slot_count; /* a power of two */
} Table;

/* Of the exponents: an address would change. */
static size_t hash(const Monomial* monomial) {
  uint64_t state = 0;
  for (int i = 0; i < Variables; i++) state = state << 8 ^ (uint64_t)monomial->exponents[i];
  return random_next(&state);
}

/* The slot where a monomial's form is, or would be. */
static Form** slot_of(const Table* table, const Monomial* monomial) {
  size_t i = hash(monomial) & (table->slot_count - 1);
  while (table->slots[i] != NULL && !same(table->slots[i]->monomial, monomial)) {
    i = (i + 1) & (table->slot_count - 1);
  }
  return &table->slots[i];
}

static void grow_slots(Table* table) {
  table->slot_count = table->slot_count == 0 ? 16 : 2 * table->slot_count;
  table->slots = NEW_UNTYPED(table->slot_count * sizeof(Form*));
  for (size_t i = 0; i < table->forms.count; i++) {
    Form* form = table->forms.items[i];
    *slot_of(table, form->monomial) = form;
  }
}

static void add_form(Table* table, const Monomial* monomial, const Term* terms) {
  Form* form = NEW(Form);
  form->monomial = monomial;
  form->terms = terms;
  if (2 * (table->forms.count + 1) > table->slot_count) grow_slots(table);
  append(&table->forms, form);
  *slot_of(table, monomial) = form;
}

/* The normal form of the product of a variable and a polynomial that is one itself. Of most
 * products of the variable with a term it is in the table; the others are reduced together. */
static const Term* multiply_form(const Table* table, const Sequence* basis, const Monomial* factor,
                                 const Term* form) {
  const Term* sum = NULL;
  const Term* others = NULL;
  for (; form != NULL; form = form->next) {
    const Monomial* product = combine(Product, factor, form->monomial);
    const Form* known = *slot_of(table, product);
    if (known != NULL) {
      sum = add(sum, scale(known->terms, form->coefficient));
    } else {
      others = add(others, make_term(form->coefficient, product, NULL));
    }
  }
  return add(sum, reduce(basis, others));
}

/* Each monomial comes of the one without its first variable, so that it comes once. */
static Table normal_forms(const Sequence* basis, int variables, int degree) {
  Table table = {{0}, NULL, 0};
  add_form(&table, one(), make_term(1, one(), NULL));
  for (size_t i = 0; i < table.forms.count; i++) {
    const Form* form = table.forms.items[i];
    if (form->monomial->degree == degree) break;
    for (int j = 0; j < variables; j++) {
      const Monomial* factor = variable(j);
      add_form(&table, combine(Product, factor, form->monomial),
               multiply_form(&table, basis, factor, form->terms));
      if (form->monomial->exponents[j] != 0) break;
    }
  }
  return table;
}

/* How many monomials nothing of the basis divides: their own normal forms. */
static size_t count_standing(const Table* table) {
  size_t count = 0;
  for (size_t i = 0; i < table->forms.count; i++) {
    const Form* form = table->forms.items[i];
    const Term* terms = form->terms;
    count += terms != NULL && terms->next == NULL && terms->coefficient == 1 &&
             same(terms->monomial, form->monomial);
  }
  return count;
}

static bool equal(const Term* a, const Term* b) {
  for (; a != NULL && b != NULL; a = a->next, b = b->next) {
    if (a->coefficient != b->coefficient || !same(a->monomial, b->monomial)) return false;
  }
  return a == b;
}

/* Some normal forms by another way: the monomial itself is reduced by the basis. */
static void check_forms(const Table* table, const Sequence* basis, uint64_t* random) {
  for (int sample = 0; sample < 20; sample++) {
    const Form* form = table->forms.items[random_below(random, table->forms.count)];
    CHECK(equal(reduce(basis, make_term(1, form->monomial, NULL)), form->terms),
          "the normal form of a monomial of degree %d", form->monomial->degree);
  }
}

static void solve(int n, size_t basis_size, size_t roots, int degree) {
  const Sequence generators = cyclic(n);
  size_t reductions = 0;
  const Sequence basis = groebner_basis(&generators, &reductions);
  CHECK(basis.count == basis_size + (size_t)(Variables - n), "the basis has %zu polynomials",
        basis.count - (size_t)(Variables - n));
  check_basis(&basis, &generators);

  const Table table = normal_forms(&basis, n, degree);
  const size_t standing = count_standing(&table);
  CHECK(standing == roots, "%zu monomials are standing, not %zu", standing, roots);
  uint64_t random = 1;
  check_forms(&table, &basis, &random);
  printf("groebner: cyclic %d: %zu polynomials by %zu reductions, %zu roots, %zu normal forms\n", n,
         basis.count - (size_t)(Variables - n), reductions, standing, table.forms.count);
}

static void run(long scale) {
  if (scale == 0) solve(5, 20, 70, 9);
  for (long i = 0; i < scale; i++) solve(6, 45, 156, 12);
}

PROGRAM("groebner", run);

/*
 * logic: a prover of Horn clauses, with unification and backtracking.
 *
 * Models: a Prolog in a functional language, after the Logic of the ISMM 1998 paper. The clauses
 *   are read from text. Solving a goal tries each clause of its predicate: the head is unified with
 *   it, and the body becomes part of a continuation, which is a chain of closures. Variables are
 *   bound by assignment; a list, the trail, says which have to be unbound when a clause fails. The
 *   programs place queens on a board, find the owner of the zebra, and reverse lists naively.
 * Live: the clauses, the goals that are left, and the trail: 20 KB, and 13 MB in the longest proof.
 * Sizes: variables, atoms and numbers of two words, cells of two, structures of two words and their
 *   arguments (three to seven), continuations of three, environments of one to eighty.
 * Checked: by the number of solutions (queens: 4, 92, 352 on boards of 6, 8 and 9), by the one
 *   solution of the zebra puzzle (the Japanese has it, the Norwegian drinks water), and by the list
 *   that comes out reversed.
 */
#include "list.h"
#include "run.h"

#include <ctype.h>

/* --- terms ------------------------------------------------------------------------------------ */

/* What a term is: one of these, or a structure, whose tag is the number of its functor's name. */
enum { Unbound, Local, Integer, Atom, FirstFunctor };

typedef struct Term {
  OBJECT;
  long tag;
} Term;

/* A variable of a proof. */
typedef struct Reference {
  OBJECT;
  long tag;
  Term* bound_to; /* null: it is free */
} Reference;
TYPE(Reference, bound_to);

/* An atom, a number, or a variable of a clause: the index into an environment. */
typedef struct Leaf {
  OBJECT;
  long tag;
  long value;
} Leaf;
LEAF_TYPE(Leaf);

typedef struct Structure {
  OBJECT;
  long tag;
  size_t arity;
  Term* arguments[];
} Structure;
ARRAY_TYPE(Structure, arity, arguments, NONE, EACH_ELEMENT);

typedef struct Clause {
  OBJECT;
  Term* head;
  List* body;
  long variables;
} Clause;
TYPE(Clause, head, body);

/* What the variables of a clause stand for in one use of it. */
typedef struct Environment {
  OBJECT;
  size_t count;
  Term* values[];
} Environment;
ARRAY_TYPE(Environment, count, values, NONE, EACH_ELEMENT);

/* The goals that are left: the rest of a body in its environment, then the next. */
typedef struct Continuation {
  OBJECT;
  List* goals;
  Environment* environment;
  struct Continuation* next;
} Continuation;
TYPE(Continuation, goals, environment, next);

TYPES(List, Reference, Leaf, Structure, Clause, Environment, Continuation);

static Term* make_leaf(long tag, long value) {
  Leaf* leaf = NEW(Leaf);
  leaf->tag = tag;
  leaf->value = value;
  return (Term*)leaf;
}

static long value_of(const Term* leaf) { return ((const Leaf*)leaf)->value; }

static Term* make_variable(void) {
  Reference* reference = NEW(Reference);
  reference->tag = Unbound;
  return (Term*)reference;
}

static Structure* make_structure(long functor, size_t arity) {
  Structure* structure = NEW_ARRAY(Structure, arity);
  structure->tag = functor;
  return structure;
}

static Term* dereference(Term* term) {
  while (term->tag == Unbound && ((Reference*)term)->bound_to != NULL) {
    term = ((Reference*)term)->bound_to;
  }
  return term;
}

/* --- the database ----------------------------------------------------------------------------- */

enum { NameLimit = 100, NameLength = 16, VariableLimit = 100 };

/* The program's names, and the clauses of the predicates that are called so. */
static char names[NameLimit][NameLength];
static long name_count;
static List* clauses[NameLimit];

static long intern(const char* text, size_t length) {
  for (long i = 0; i < name_count; i++) {
    if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0) return i;
  }
  CHECK(name_count < NameLimit && length < NameLength, "too many names, or too long a one");
  memcpy(names[name_count], text, length);
  return name_count++;
}

static long functor(const char* name) { return FirstFunctor + intern(name, strlen(name)); }

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct Reader {
  const char* at;
  const char* variables[VariableLimit]; /* the names of the clause's, where they stand first */
  size_t lengths[VariableLimit];
  long variable_count;
} Reader;

static void skip_blanks(Reader* reader) {
  while (isspace((unsigned char)*reader->at)) reader->at++;
}

/* Takes the text if it comes next. */
static bool take(Reader* reader, const char* text) {
  skip_blanks(reader);
  const size_t length = strlen(text);
  if (strncmp(reader->at, text, length) != 0) return false;
  reader->at += length;
  return true;
}

static Term* read_variable(Reader* reader, const char* name, size_t length) {
  const bool nameless = length == 1 && *name == '_';
  for (long i = 0; i < reader->variable_count && !nameless; i++) {
    if (reader->lengths[i] == length && strncmp(reader->variables[i], name, length) == 0) {
      return make_leaf(Local, i);
    }
  }
  CHECK(reader->variable_count < VariableLimit, "too many variables in a clause");
  /* A nameless one is found by nobody. */
  reader->variables[reader->variable_count] = name;
  reader->lengths[reader->variable_count] = nameless ? 0 : length;
  return make_leaf(Local, reader->variable_count++);
}

static Term* read_term(Reader* reader);

static Term* make_pair(Term* first, Term* rest) {
  Structure* pair = make_structure(functor("."), 2);
  pair->arguments[0] = first;
  pair->arguments[1] = rest;
  return (Term*)pair;
}

static Term* read_list(Reader* reader) {
  if (take(reader, "]")) return make_leaf(Atom, intern("[]", 2));
  Term* first = read_term(reader);
  if (take(reader, "|")) {
    Term* rest = read_term(reader);
    take(reader, "]");
    return make_pair(first, rest);
  }
  take(reader, ",");
  return make_pair(first, read_list(reader));
}

static Term* read_term(Reader* reader) {
  if (take(reader, "[")) return read_list(reader);
  const char* name = reader->at;
  while (isalnum((unsigned char)*reader->at) || *reader->at == '_') reader->at++;
  const size_t length = (size_t)(reader->at - name);
  CHECK(length > 0, "cannot read \"%.20s\"", name);
  if (isdigit((unsigned char)*name)) return make_leaf(Integer, strtol(name, NULL, 10));
  if (isupper((unsigned char)*name) || *name == '_') return read_variable(reader, name, length);
  const long id = intern(name, length);
  if (!take(reader, "(")) return make_leaf(Atom, id);
  Term* arguments[8];
  size_t count = 0;
  do {
    arguments[count++] = read_term(reader);
  } while (take(reader, ","));
  take(reader, ")");
  Structure* structure = make_structure(FirstFunctor + id, count);
  memcpy(structure->arguments, arguments, count * sizeof(arguments[0]));
  return (Term*)structure;
}

static List* read_goals(Reader* reader) {
  Term* goal = read_term(reader);
  return cons(goal, take(reader, ",") ? read_goals(reader) : NULL);
}

static void read_clauses(const char* text) {
  Reader reader = {.at = text};
  for (skip_blanks(&reader); *reader.at != '\0'; skip_blanks(&reader)) {
    reader.variable_count = 0;
    Clause* clause = NEW(Clause);
    clause->head = read_term(&reader);
    if (take(&reader, ":-")) clause->body = read_goals(&reader);
    CHECK(take(&reader, "."), "cannot read \"%.20s\"", reader.at);
    clause->variables = reader.variable_count;
    List** all = &clauses[clause->head->tag - FirstFunctor];
    *all = reverse(cons(clause, reverse(*all)));
  }
}

/* --- unification ------------------------------------------------------------------------------ */

static List* trail;

static void bind(Term* variable, Term* term) {
  ((Reference*)variable)->bound_to = term;
  trail = cons(variable, trail);
}

static void undo(const List* mark) {
  for (; trail != mark; trail = trail->tail) ((Reference*)trail->head)->bound_to = NULL;
}

/* A term of a clause, with the values of the environment: a new variable for a value not there. */
static Term* instantiate(Term* term, Environment* environment) {
  if (term->tag == Local) {
    Term** value = &environment->values[value_of(term)];
    if (*value == NULL) *value = make_variable();
    return *value;
  }
  if (term->tag < FirstFunctor) return term;
  const Structure* from = (const Structure*)term;
  Structure* to = make_structure(from->tag, from->arity);
  for (size_t i = 0; i < from->arity; i++) {
    to->arguments[i] = instantiate(from->arguments[i], environment);
  }
  return (Term*)to;
}

static bool unify(Term* a, Term* b) {
  a = dereference(a);
  b = dereference(b);
  if (a == b) return true;
  if (a->tag == Unbound) {
    bind(a, b);
    return true;
  }
  if (b->tag == Unbound) {
    bind(b, a);
    return true;
  }
  if (a->tag != b->tag) return false;
  if (a->tag < FirstFunctor) return value_of(a) == value_of(b);
  const Structure* left = (const Structure*)a;
  const Structure* right = (const Structure*)b;
  for (size_t i = 0; i < left->arity; i++) {
    if (!unify(left->arguments[i], right->arguments[i])) return false;
  }
  return true;
}

/* Unifies a clause's term with one of the proof, and makes only what a variable is bound to. */
static bool unify_head(Term* pattern, Term* term, Environment* environment) {
  if (pattern->tag == Local) {
    Term** value = &environment->values[value_of(pattern)];
    if (*value != NULL) return unify(*value, term);
    *value = term;
    return true;
  }
  term = dereference(term);
  if (term->tag == Unbound) {
    bind(term, instantiate(pattern, environment));
    return true;
  }
  if (pattern->tag != term->tag) return false;
  if (pattern->tag < FirstFunctor) return value_of(pattern) == value_of(term);
  const Structure* left = (const Structure*)pattern;
  const Structure* right = (const Structure*)term;
  for (size_t i = 0; i < left->arity; i++) {
    if (!unify_head(left->arguments[i], right->arguments[i], environment)) return false;
  }
  return true;
}

/* --- proofs ----------------------------------------------------------------------------------- */

static long plus_functor;
static long differ_functor;
static uint64_t inferences;

/* What sees each solution. */
typedef void Observer(const Environment* environment);

typedef struct Proof {
  Observer* observer;
  const Environment* environment; /* of the question */
  long solutions;
} Proof;

static Continuation* make_continuation(List* goals, Environment* environment, Continuation* next) {
  if (goals == NULL) return next;
  Continuation* continuation = NEW(Continuation);
  continuation->goals = goals;
  continuation->environment = environment;
  continuation->next = next;
  return continuation;
}

static long number_at(const Structure* goal, int index) {
  const Term* term = dereference(goal->arguments[index]);
  CHECK(term->tag == Integer, "a sum of what is no number");
  return value_of(term);
}

/* plus(A, B, C): C is the sum of two numbers. differ(A, B): two numbers differ. */
static bool is_built_in(const Structure* goal) {
  return goal->tag == plus_functor || goal->tag == differ_functor;
}

static bool call_built_in(const Structure* goal) {
  const long first = number_at(goal, 0);
  const long second = number_at(goal, 1);
  if (goal->tag == differ_functor) return first != second;
  return unify(goal->arguments[2], make_leaf(Integer, first + second));
}

/* Finds all solutions. What it binds is left bound: the caller undoes it. */
static void solve(Continuation* left, Proof* proof) {
  while (left != NULL) {
    Structure* goal = (Structure*)instantiate(left->goals->head, left->environment);
    Continuation* rest = make_continuation(left->goals->tail, left->environment, left->next);
    inferences++;
    if (is_built_in(goal)) {
      if (!call_built_in(goal)) return;
      left = rest;
      continue;
    }
    const List* cell = clauses[goal->tag - FirstFunctor];
    CHECK(cell != NULL, "there is no predicate %s", names[goal->tag - FirstFunctor]);
    const List* mark = trail;
    for (;; cell = cell->tail) {
      const Clause* clause = cell->head;
      Environment* environment = NEW_ARRAY(Environment, (size_t)clause->variables);
      const bool fits = unify_head(clause->head, (Term*)goal, environment);
      const bool last = cell->tail == NULL;
      if (!fits && last) return;
      left = fits ? make_continuation(clause->body, environment, rest) : NULL;
      if (last) break; /* the frame serves the last clause, too */
      if (fits) solve(left, proof);
      undo(mark);
    }
  }
  proof->solutions++;
  proof->observer(proof->environment);
}

static long ask(const char* question, Observer* observer) {
  Reader reader = {.at = question};
  List* goals = read_goals(&reader);
  Environment* environment = NEW_ARRAY(Environment, (size_t)reader.variable_count);
  Proof proof = {observer, environment, 0};
  solve(make_continuation(goals, environment, NULL), &proof);
  undo(NULL);
  return proof.solutions;
}

/* --- programs --------------------------------------------------------------------------------- */

static const char program_text[] =
    "append([], Ys, Ys)."
    "append([X|Xs], Ys, [X|Zs]) :- append(Xs, Ys, Zs)."
    "reverse([], [])."
    "reverse([X|Xs], Ys) :- reverse(Xs, Zs), append(Zs, [X], Ys)."
    "member(X, [X|_])."
    "member(X, [_|Ys]) :- member(X, Ys)."
    "select(X, [X|Xs], Xs)."
    "select(X, [Y|Ys], [Y|Zs]) :- select(X, Ys, Zs)."
    "range(N, N, [N])."
    "range(M, N, [M|Ns]) :- differ(M, N), plus(M, 1, L), range(L, N, Ns)."

    "queens(N, Qs) :- range(1, N, Ns), place(Ns, [], Qs)."
    "place([], Qs, Qs)."
    "place([N|Ns], Safe, Qs) :-"
    "  select(Q, [N|Ns], Rest), safe(Q, 1, Safe), place(Rest, [Q|Safe], Qs)."
    "safe(_, _, [])."
    "safe(Q, D, [P|Ps]) :-"
    "  plus(Q, D, A), differ(A, P), plus(P, D, B), differ(B, Q), plus(D, 1, E), safe(Q, E, Ps)."

    "right_of(A, B, [B,A|_])."
    "right_of(A, B, [_|Hs]) :- right_of(A, B, Hs)."
    "next_to(A, B, Hs) :- right_of(A, B, Hs)."
    "next_to(A, B, Hs) :- right_of(B, A, Hs)."
    /* house(Nation, Pet, Cigarettes, Drink, Color) */
    "zebra(Owner, Drinker) :-"
    "  same(Hs, [house(norwegian, _, _, _, _), _, house(_, _, _, milk, _), _, _]),"
    "  member(house(english, _, _, _, red), Hs), member(house(spanish, dog, _, _, _), Hs),"
    "  member(house(_, _, _, coffee, green), Hs), member(house(ukrainian, _, _, tea, _), Hs),"
    "  right_of(house(_, _, _, _, green), house(_, _, _, _, ivory), Hs),"
    "  member(house(_, snails, oldgold, _, _), Hs), member(house(_, _, kools, _, yellow), Hs),"
    "  next_to(house(_, _, chesterfield, _, _), house(_, fox, _, _, _), Hs),"
    "  next_to(house(_, _, kools, _, _), house(_, horse, _, _, _), Hs),"
    "  member(house(_, _, luckystrike, juice, _), Hs),"
    "  member(house(japanese, _, parliament, _, _), Hs),"
    "  next_to(house(norwegian, _, _, _, _), house(_, _, _, _, blue), Hs),"
    "  member(house(Owner, zebra, _, _, _), Hs), member(house(Drinker, _, _, water, _), Hs)."
    "same(X, X)."

    "reversed(N, Ys) :- range(1, N, Xs), reverse(Xs, Ys).";

static void ignore(const Environment* environment) { (void)environment; }

static void check_zebra(const Environment* environment) {
  static const char* const expected[] = {"japanese", "norwegian"};
  for (int i = 0; i < 2; i++) {
    const Term* who = dereference(environment->values[i]);
    CHECK(who->tag == Atom && strcmp(names[value_of(who)], expected[i]) == 0,
          "the %s should be in the zebra's solution", expected[i]);
  }
}

static long reversed_length;

/* The question's only variable is the list of numbers from the length down to one. */
static void check_reversed(const Environment* environment) {
  const Term* list = dereference(environment->values[0]);
  long expected = reversed_length;
  for (; list->tag >= FirstFunctor; expected--) {
    const Structure* pair = (const Structure*)list;
    const Term* number = dereference(pair->arguments[0]);
    CHECK(number->tag == Integer && value_of(number) == expected, "the reversed list lacks %ld",
          expected);
    list = dereference(pair->arguments[1]);
  }
  CHECK(expected == 0, "the reversed list ends at %ld", expected);
}

static void expect(const char* question, long solutions, Observer* observer) {
  const long found = ask(question, observer);
  CHECK(found == solutions, "%s has %ld solutions, not %ld", question, found, solutions);
}

static void run(long scale) {
  plus_functor = functor("plus");
  differ_functor = functor("differ");
  read_clauses(program_text);
  expect("queens(6, Qs)", 4, ignore);
  for (long i = 0; i < (scale == 0 ? 1 : 6 * scale); i++) {
    expect("queens(8, Qs)", 92, ignore);
    for (int j = 0; j < 4; j++) expect("zebra(Owner, Drinker)", 1, check_zebra);
    reversed_length = scale == 0 ? 100 : 500;
    expect(scale == 0 ? "reversed(100, Ys)" : "reversed(500, Ys)", 1, check_reversed);
    if (scale > 0) expect("queens(9, Qs)", 352, ignore);
  }
  printf("logic: %llu inferences\n", (unsigned long long)inferences);
}

PROGRAM("logic", run);

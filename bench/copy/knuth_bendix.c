/*
 * knuth_bendix: completion of equations to rewrite rules, and normal forms of deep terms.
 *
 * Models: a symbolic program in a functional language, after the Knuth-Bendix of the ISMM 1998
 *   paper. Terms are trees, substitutions are association lists, nothing is changed once it is
 * made. The axioms of groups and those of central groupoids are completed many times; then products
 * in the free group, nested thousands deep, are brought to normal form by the rules of groups:
 *   recursion as deep as the terms are, while the collector runs.
 * Live: small, 100 to 300 KB, and up to some thousand frames.
 * Sizes: bindings and products of three words (three in four objects), cells and inverses of two;
 *   one in a hundred is a constant or a variable, of one or two words without pointers.
 * Checked: the rules are the ten that Knuth and Bendix found for groups, and the three for central
 *   groupoids; a normal form in the free group is the word that cancelling on an array leaves.
 */
#include "list.h"
#include "run.h"

/* Symbols, in the order of precedence by which terms are compared. */
enum { Variable, Unit, LetterA, LetterB, LetterC, Product, Inverse };

/* What all terms have in common: as many arguments as the symbol takes. */
typedef struct Term {
  OBJECT;
  long symbol;
  struct Term* arguments[];
} Term;

typedef struct VariableTerm {
  OBJECT;
  long symbol;
  long number;
} VariableTerm;
LEAF_TYPE(VariableTerm);

typedef struct ConstantTerm {
  OBJECT;
  long symbol;
} ConstantTerm;
LEAF_TYPE(ConstantTerm);

typedef struct UnaryTerm {
  OBJECT;
  long symbol;
  Term* argument;
} UnaryTerm;
TYPE(UnaryTerm, argument);

typedef struct BinaryTerm {
  OBJECT;
  long symbol;
  Term* left;
  Term* right;
} BinaryTerm;
TYPE(BinaryTerm, left, right);

/* A substitution: an association list from variables to terms. */
typedef struct Binding {
  OBJECT;
  long variable;
  Term* term;
  struct Binding* next;
} Binding;
TYPE(Binding, term, next);

/* An equation, or a rule from left to right. */
typedef struct Rule {
  OBJECT;
  Term* left;
  Term* right;
} Rule;
TYPE(Rule, left, right);

/* A place where a rule applies to a term under a substitution, and what the term becomes. */
typedef struct Overlap {
  OBJECT;
  Binding* unifier;
  Term* term;
} Overlap;
TYPE(Overlap, unifier, term);

TYPES(List, VariableTerm, ConstantTerm, UnaryTerm, BinaryTerm, Binding, Rule, Overlap);

/* --- terms ------------------------------------------------------------------------------------ */

static int arity(const Term* term) {
  return term->symbol == Product ? 2 : term->symbol == Inverse ? 1 : 0;
}

static bool is_variable(const Term* term) { return term->symbol == Variable; }

static long number_of(const Term* variable) { return ((const VariableTerm*)variable)->number; }

static Term* variable(long number) {
  VariableTerm* term = NEW(VariableTerm);
  term->symbol = Variable;
  term->number = number;
  return (Term*)term;
}

static Term* constant(long symbol) {
  ConstantTerm* term = NEW(ConstantTerm);
  term->symbol = symbol;
  return (Term*)term;
}

static Term* unary(long symbol, Term* argument) {
  UnaryTerm* term = NEW(UnaryTerm);
  term->symbol = symbol;
  term->argument = argument;
  return (Term*)term;
}

static Term* binary(long symbol, Term* left, Term* right) {
  BinaryTerm* term = NEW(BinaryTerm);
  term->symbol = symbol;
  term->left = left;
  term->right = right;
  return (Term*)term;
}

/* A term of the same symbol with other arguments. */
static Term* rebuild(const Term* term, Term* first, Term* second) {
  return arity(term) == 1 ? unary(term->symbol, first) : binary(term->symbol, first, second);
}

static bool equal(const Term* a, const Term* b) {
  if (a->symbol != b->symbol) return false;
  if (is_variable(a)) return number_of(a) == number_of(b);
  for (int i = 0; i < arity(a); i++) {
    if (!equal(a->arguments[i], b->arguments[i])) return false;
  }
  return true;
}

static size_t size(const Term* term) {
  size_t sum = 1;
  for (int i = 0; i < arity(term); i++) sum += size(term->arguments[i]);
  return sum;
}

static bool occurs(long number, const Term* term) {
  if (is_variable(term)) return number_of(term) == number;
  for (int i = 0; i < arity(term); i++) {
    if (occurs(number, term->arguments[i])) return true;
  }
  return false;
}

/* Reads a term in prefix notation: *ab is a product, i an inverse, e the unit, x to z variables. */
static Term* parse(const char** text) {
  const char c = *(*text)++;
  if (c == '*') {
    Term* left = parse(text);
    return binary(Product, left, parse(text));
  }
  if (c == 'i') return unary(Inverse, parse(text));
  if (c == 'e') return constant(Unit);
  return variable(c - 'x');
}

static Rule* make_rule(Term* left, Term* right) {
  Rule* rule = NEW(Rule);
  rule->left = left;
  rule->right = right;
  return rule;
}

/* --- substitutions ---------------------------------------------------------------------------- */

static Binding* bind(long number, Term* term, Binding* next) {
  Binding* binding = NEW(Binding);
  binding->variable = number;
  binding->term = term;
  binding->next = next;
  return binding;
}

static Term* lookup(long number, const Binding* bindings) {
  for (; bindings != NULL; bindings = bindings->next) {
    if (bindings->variable == number) return bindings->term;
  }
  return NULL;
}

/* Adds to *bindings what makes the pattern the term; false if nothing does. */
static bool match(const Term* pattern, Term* term, Binding** bindings) {
  if (is_variable(pattern)) {
    const Term* bound = lookup(number_of(pattern), *bindings);
    if (bound != NULL) return equal(bound, term);
    *bindings = bind(number_of(pattern), term, *bindings);
    return true;
  }
  if (pattern->symbol != term->symbol) return false;
  for (int i = 0; i < arity(pattern); i++) {
    if (!match(pattern->arguments[i], term->arguments[i], bindings)) return false;
  }
  return true;
}

/* The term with its variables replaced, and those of the replacements, and so on. */
static Term* resolve(Term* term, const Binding* bindings) {
  if (is_variable(term)) {
    Term* bound = lookup(number_of(term), bindings);
    return bound == NULL ? term : resolve(bound, bindings);
  }
  if (arity(term) == 0) return term;
  Term* first = resolve(term->arguments[0], bindings);
  return rebuild(term, first, arity(term) == 2 ? resolve(term->arguments[1], bindings) : NULL);
}

static bool unify(Term* a, Term* b, Binding** bindings) {
  a = is_variable(a) ? resolve(a, *bindings) : a;
  b = is_variable(b) ? resolve(b, *bindings) : b;
  if (is_variable(b)) {
    if (is_variable(a) && number_of(a) == number_of(b)) return true;
    if (occurs(number_of(b), resolve(a, *bindings))) return false;
    *bindings = bind(number_of(b), a, *bindings);
    return true;
  }
  if (is_variable(a)) return unify(b, a, bindings);
  if (a->symbol != b->symbol) return false;
  for (int i = 0; i < arity(a); i++) {
    if (!unify(a->arguments[i], b->arguments[i], bindings)) return false;
  }
  return true;
}

/* Renames the variables to first, first + 1, ... in the order in which they appear. */
static Term* rename_variables(Term* term, Binding** names, long* next) {
  if (is_variable(term)) {
    Term* name = lookup(number_of(term), *names);
    if (name != NULL) return name;
    name = variable((*next)++);
    *names = bind(number_of(term), name, *names);
    return name;
  }
  if (arity(term) == 0) return term;
  Term* first = rename_variables(term->arguments[0], names, next);
  Term* second = arity(term) == 2 ? rename_variables(term->arguments[1], names, next) : NULL;
  return rebuild(term, first, second);
}

static Rule* rename_rule(const Rule* rule, long first) {
  Binding* names = NULL;
  long next = first;
  Term* left = rename_variables(rule->left, &names, &next);
  return make_rule(left, rename_variables(rule->right, &names, &next));
}

/* --- rewriting -------------------------------------------------------------------------------- */

static Term* normal_instance(const List* rules, Term* pattern, const Binding* bindings);

/* The normal form of a term whose arguments are in normal form. */
static Term* rewrite(const List* rules, Term* term) {
  for (const List* cell = rules; cell != NULL; cell = cell->tail) {
    const Rule* rule = cell->head;
    Binding* bindings = NULL;
    if (match(rule->left, term, &bindings)) return normal_instance(rules, rule->right, bindings);
  }
  return term;
}

/* The normal form of a right side, whose variables stand for normal forms. */
static Term* normal_instance(const List* rules, Term* pattern, const Binding* bindings) {
  if (is_variable(pattern)) return lookup(number_of(pattern), bindings);
  if (arity(pattern) == 0) return rewrite(rules, pattern);
  Term* first = normal_instance(rules, pattern->arguments[0], bindings);
  Term* second =
      arity(pattern) == 2 ? normal_instance(rules, pattern->arguments[1], bindings) : NULL;
  return rewrite(rules, rebuild(pattern, first, second));
}

static Term* normal_form(const List* rules, Term* term) {
  if (is_variable(term)) return term;
  if (arity(term) == 0) return rewrite(rules, term);
  Term* first = normal_form(rules, term->arguments[0]);
  Term* second = arity(term) == 2 ? normal_form(rules, term->arguments[1]) : NULL;
  return rewrite(rules, rebuild(term, first, second));
}

static bool reducible(const Rule* rule, Term* term) {
  Binding* bindings = NULL;
  if (is_variable(term)) return false;
  if (match(rule->left, term, &bindings)) return true;
  for (int i = 0; i < arity(term); i++) {
    if (reducible(rule, term->arguments[i])) return true;
  }
  return false;
}

/* The lexicographic path order. */
static bool greater(const Term* a, const Term* b) {
  if (is_variable(b)) return !is_variable(a) && occurs(number_of(b), a);
  for (int i = 0; i < arity(a); i++) {
    if (equal(a->arguments[i], b) || greater(a->arguments[i], b)) return true;
  }
  if (a->symbol < b->symbol) return false;
  for (int i = 0; i < arity(b); i++) {
    if (!greater(a, b->arguments[i])) return false;
  }
  if (a->symbol > b->symbol) return true;
  for (int i = 0; i < arity(a); i++) {
    if (!equal(a->arguments[i], b->arguments[i])) {
      return greater(a->arguments[i], b->arguments[i]);
    }
  }
  return false;
}

/* --- completion ------------------------------------------------------------------------------- */

static Overlap* make_overlap(Binding* unifier, Term* term) {
  Overlap* overlap = NEW(Overlap);
  overlap->unifier = unifier;
  overlap->term = term;
  return overlap;
}

/* Where the rule's left side unifies with a part of the term that is no variable. */
static List* overlaps(Term* term, const Rule* rule) {
  if (is_variable(term)) return NULL;
  List* result = NULL;
  Binding* unifier = NULL;
  if (unify(term, rule->left, &unifier)) result = cons(make_overlap(unifier, rule->right), result);
  for (int i = 0; i < arity(term); i++) {
    for (List* inner = overlaps(term->arguments[i], rule); inner != NULL; inner = inner->tail) {
      const Overlap* found = inner->head;
      Term* whole = i == 0 ? rebuild(term, found->term, term->arguments[1 % arity(term)])
                           : rebuild(term, term->arguments[0], found->term);
      result = cons(make_overlap(found->unifier, whole), result);
    }
  }
  return result;
}

/* Puts the critical pairs of one rule with another in front of the equations. */
static List* critical_pairs(const Rule* outer, const Rule* inner, List* equations) {
  enum { Apart = 1000 };
  const Rule* other = rename_rule(inner, Apart);
  for (List* cell = overlaps(outer->left, other); cell != NULL; cell = cell->tail) {
    const Overlap* overlap = cell->head;
    Term* left = resolve(overlap->term, overlap->unifier);
    equations = cons(make_rule(left, resolve(outer->right, overlap->unifier)), equations);
  }
  return equations;
}

/* Takes the smallest equation out of a list that has one. */
static Rule* take_smallest(List** equations) {
  Rule* smallest = NULL;
  size_t least = SIZE_MAX;
  for (List* cell = *equations; cell != NULL; cell = cell->tail) {
    Rule* equation = cell->head;
    const size_t sum = size(equation->left) + size(equation->right);
    if (sum < least) {
      least = sum;
      smallest = equation;
    }
  }
  List* rest = NULL;
  for (List* cell = *equations; cell != NULL; cell = cell->tail) {
    if (cell->head != smallest) rest = cons(cell->head, rest);
  }
  *equations = reverse(rest);
  return smallest;
}

/* The rules without those whose left side the new one reduces; these become equations again. */
static List* reduce_rules(const List* rules, Rule* added, List** equations) {
  List* kept = NULL;
  for (const List* cell = rules; cell != NULL; cell = cell->tail) {
    Rule* rule = cell->head;
    if (reducible(added, rule->left)) {
      *equations = cons(rule, *equations);
    } else {
      kept = cons(rule, kept);
    }
  }
  const List* all = cons(added, kept);
  List* result = NULL;
  for (const List* cell = all; cell != NULL; cell = cell->tail) {
    const Rule* rule = cell->head;
    result = cons(make_rule(rule->left, normal_form(all, rule->right)), result);
  }
  return result;
}

static List* complete(List* equations) {
  List* rules = NULL;
  while (equations != NULL) {
    const Rule* equation = take_smallest(&equations);
    Term* left = normal_form(rules, equation->left);
    Term* right = normal_form(rules, equation->right);
    if (equal(left, right)) continue;
    const bool downwards = greater(left, right);
    CHECK(downwards || greater(right, left), "an equation cannot be made a rule");
    Rule* rule = downwards ? make_rule(left, right) : make_rule(right, left);
    rule = rename_rule(rule, 0);
    rules = reduce_rules(rules, rule, &equations);
    for (const List* cell = rules; cell != NULL; cell = cell->tail) {
      equations = critical_pairs(cell->head, rule, equations);
      equations = critical_pairs(rule, cell->head, equations);
    }
  }
  return rules;
}

/* --- known completions ------------------------------------------------------------------------ */

static List* parse_rules(const char* const* texts, size_t count) {
  List* rules = NULL;
  for (size_t i = 0; i < count; i++) {
    const char* text = texts[2 * i];
    Term* left = parse(&text);
    text = texts[2 * i + 1];
    rules = cons(rename_rule(make_rule(left, parse(&text)), 0), rules);
  }
  return rules;
}

static List* complete_and_check(const char* const* axioms, size_t axiom_count,
                                const char* const* known, size_t known_count) {
  List* rules = complete(parse_rules(axioms, axiom_count));
  CHECK(length(rules) == known_count, "completion ends with %zu rules, not %zu", length(rules),
        known_count);
  size_t index = known_count;
  for (List* cell = parse_rules(known, known_count); cell != NULL; cell = cell->tail) {
    const Rule* expected = cell->head;
    bool found = false;
    index--;
    for (const List* other = rules; other != NULL; other = other->tail) {
      const Rule* rule = other->head;
      found = found || (equal(rule->left, expected->left) && equal(rule->right, expected->right));
    }
    CHECK(found, "completion does not find the rule %s -> %s", known[2 * index],
          known[2 * index + 1]);
  }
  return rules;
}

static List* complete_groups(void) {
  static const char* const axioms[] = {"*ex", "x", "*ixx", "e", "**xyz", "*x*yz"};
  static const char* const known[] = {"*ex",    "x",  "*xe",   "x",     "*ixx", "e",      "*xix",
                                      "e",      "ie", "e",     "iix",   "x",    "*ix*xy", "y",
                                      "*x*ixy", "y",  "**xyz", "*x*yz", "i*xy", "*iyix"};
  return complete_and_check(axioms, 3, known, 10);
}

static void complete_groupoids(void) {
  static const char* const axioms[] = {"**xy*yz", "y"};
  static const char* const known[] = {"**xy*yz", "y", "*x**xyz", "*xy", "**x*yzz", "*yz"};
  complete_and_check(axioms, 1, known, 3);
}

/* --- deep terms ------------------------------------------------------------------------------- */

/* An element of the free group, as a term and as a reduced word: letters, negative for inverses. */
enum { LongestWord = 8000 };
typedef struct Word {
  size_t length;
  int letters[LongestWord];
} Word;

static void append_letter(Word* word, int letter) {
  if (word->length > 0 && word->letters[word->length - 1] == -letter) {
    word->length--;
  } else {
    word->letters[word->length++] = letter;
  }
}

static void invert(Word* word) {
  for (size_t i = 0, j = word->length; i < j; i++) {
    const int letter = word->letters[i];
    word->letters[i] = -word->letters[--j];
    word->letters[j] = -letter;
  }
}

static Term* letter_term(int letter) {
  return letter > 0 ? constant(letter) : unary(Inverse, constant(-letter));
}

/* A product that leans to the left, with an inverse around every 700 factors. */
static Term* random_term(size_t factors, Word* word, uint64_t* random) {
  Term* term = constant(Unit);
  word->length = 0;
  for (size_t i = 1; i <= factors; i++) {
    const int letter = (int)(LetterA + random_below(random, 3));
    const int factor = random_below(random, 2) == 0 ? letter : -letter;
    term = binary(Product, term, letter_term(factor));
    append_letter(word, factor);
    if (i % 700 == 0) {
      term = unary(Inverse, term);
      invert(word);
    }
  }
  return term;
}

static void check_word(const Term* term, const Word* word) {
  if (word->length == 0) CHECK(term->symbol == Unit, "a word should have become the unit");
  for (size_t i = 0; i < word->length; i++) {
    const bool last = i + 1 == word->length;
    CHECK(last || term->symbol == Product, "a normal form has %zu letters, not %zu", i + 1,
          word->length);
    const Term* factor = last ? term : term->arguments[0];
    CHECK(equal(factor, letter_term(word->letters[i])), "letter %zu of a normal form", i);
    if (!last) term = term->arguments[1];
  }
}

static void run(long scale) {
  const long completions = scale == 0 ? 10 : 500 * scale;
  const long terms = scale == 0 ? 1 : 2 * scale;
  const size_t factors = scale == 0 ? 600 : 1600;
  static Word word;
  uint64_t random = 1;
  const List* rules = NULL;
  for (long i = 0; i < completions; i++) {
    rules = complete_groups();
    complete_groupoids();
  }
  size_t letters = 0;
  for (long i = 0; i < terms; i++) {
    Term* term = random_term(factors, &word, &random);
    check_word(normal_form(rules, term), &word);
    letters += word.length;
  }
  printf("knuth_bendix: %ld completions to %zu rules, %zu letters in normal forms\n", completions,
         length(rules), letters);
}

PROGRAM("knuth_bendix", run);

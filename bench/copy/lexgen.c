/*
 * lexgen: a lexer generator.
 *
 * Models: a tool in a functional language, after the Lexgen of the ISMM 1998 paper. Regular
 *   expressions are parsed to trees; the positions that may follow each position are computed as
 *   sets, which are search trees whose nodes never change; sets of positions become the states of
 *   an automaton, whose table is minimized, and written as the text of a C program. Then
 *   it is run, and makes an object of each token.
 * Live: the trees, sets and states of one automaton: up to 2.5 MB.
 * Sizes: nodes of all sizes from one to seven words, most of two and three; states and rows of
 *   tables by the characters that they tell apart, of 2 to 60 words, one in six objects without
 *   pointers; and the text that is written, which grows from 64 bytes to some ten KB.
 * Checked: (a|b)*a(a|b)^k needs 2^(k+1) states, no fewer; the tokens of a text in a small language
 *   (lexgen_text.h) are those that a matcher written by hand finds.
 */
#include "list.h"
#include "run.h"

#include "lexgen_regex.h"
#include "lexgen_text.h"

/* --- types ------------------------------------------------------------------------------------ */

/* What is known of a regular expression: whether it matches nothing at all, and the positions where
 * a match may begin and end. */
typedef struct Summary {
  OBJECT;
  bool nullable;
  Set* first;
  Set* last;
} Summary;
TYPE(Summary, first, last);

typedef struct Position {
  OBJECT;
  Node* node;
  Set* follow; /* what may come next */
} Position;
TYPE(Position, node, follow);

typedef struct Positions {
  OBJECT;
  size_t count;
  Position* at[];
} Positions;
ARRAY_TYPE(Positions, count, at, NONE, EACH_ELEMENT);

typedef struct State {
  OBJECT;
  size_t classes;
  long number;
  long token; /* that it accepts, or -1 */
  Set* positions;
  struct State* next[]; /* by classes of characters */
} State;
ARRAY_TYPE(State, classes, next, FIELDS(State, positions), EACH_ELEMENT);

/* The states by their sets: a search tree, ordered by mixed sets. */
typedef struct StateMap {
  OBJECT;
  uint64_t hash;
  State* state;
  struct StateMap* left;
  struct StateMap* right;
} StateMap;
TYPE(StateMap, state, left, right);

/* A row of a table. */
typedef struct Row {
  OBJECT;
  size_t count;
  int32_t at[];
} Row;
ARRAY_TYPE(Row, count, at, NONE, NONE);

typedef struct Table {
  OBJECT;
  size_t count;
  Row* tokens;  /* of the states */
  Row* classes; /* of the 256 characters */
  long start;
  Row* rows[]; /* of the states: the next one, by class, or -1 */
} Table;
ARRAY_TYPE(Table, count, rows, FIELDS(Table, tokens, classes), EACH_ELEMENT);

/* The rows seen in a round of minimization, and the block that each stands for. */
typedef struct RowMap {
  OBJECT;
  uint64_t hash;
  Row* row;
  long block;
  struct RowMap* left;
  struct RowMap* right;
} RowMap;
TYPE(RowMap, row, left, right);

typedef struct Text {
  OBJECT;
  size_t capacity;
  char text[];
} Text;
ARRAY_TYPE(Text, capacity, text, NONE, NONE);

typedef struct Token {
  OBJECT;
  long kind;
  Text* lexeme;
} Token;
TYPE(Token, lexeme);

TYPES(List, Node, CharactersNode, EndNode, UnaryNode, BinaryNode, Set, Summary, Position, Positions,
      State, StateMap, Row, Table, RowMap, Text, Token);

/* --- positions -------------------------------------------------------------------------------- */

static void add_follow(Positions* positions, const Set* from, Set* follow) {
  if (from == NULL) return;
  Position* position = positions->at[from->key];
  position->follow = join(position->follow, follow);
  add_follow(positions, from->left, follow);
  add_follow(positions, from->right, follow);
}

static Summary* make_summary(bool nullable, Set* first, Set* last) {
  Summary* summary = NEW(Summary);
  summary->nullable = nullable;
  summary->first = first;
  summary->last = last;
  return summary;
}

static Summary* summarize_position(Positions* positions, Node* node, long number) {
  Position* position = NEW(Position);
  position->node = node;
  positions->at[number] = position;
  Set* self = singleton(number);
  return make_summary(false, self, self);
}

static Summary* summarize(Positions* positions, Node* node) {
  if (node->kind == Empty) return make_summary(true, NULL, NULL);
  if (node->kind == Characters) {
    return summarize_position(positions, node, ((CharactersNode*)node)->position);
  }
  if (node->kind == End) return summarize_position(positions, node, ((EndNode*)node)->position);
  if (node->kind == Sequence || node->kind == Choice) {
    const Summary* left = summarize(positions, ((BinaryNode*)node)->left);
    const Summary* right = summarize(positions, ((BinaryNode*)node)->right);
    if (node->kind == Choice) {
      return make_summary(left->nullable || right->nullable, join(left->first, right->first),
                          join(left->last, right->last));
    }
    add_follow(positions, left->last, right->first);
    return make_summary(left->nullable && right->nullable,
                        left->nullable ? join(left->first, right->first) : left->first,
                        right->nullable ? join(left->last, right->last) : right->last);
  }
  const Summary* operand = summarize(positions, ((UnaryNode*)node)->operand);
  if (node->kind != Optional) add_follow(positions, operand->last, operand->first);
  return make_summary(node->kind != Plus || operand->nullable, operand->first, operand->last);
}

/* --- the automaton ---------------------------------------------------------------------------- */

typedef struct Automaton {
  Positions* positions;
  Row* classes;
  int representatives[256]; /* a character of each class */
  size_t class_count;
  StateMap* map;
  List* unfinished;
  List* states; /* the last one first */
  long state_count;
} Automaton;

static bool has_character(const Node* node, int c) {
  if (node->kind != Characters) return false;
  return (((const CharactersNode*)node)->set[c / 64] >> c % 64 & 1) != 0;
}

/* Characters that every position treats alike are of one class. */
static void find_classes(Automaton* automaton) {
  const Positions* positions = automaton->positions;
  automaton->classes = NEW_ARRAY(Row, 256);
  automaton->class_count = 0;
  for (int c = 0; c < 256; c++) {
    size_t found = 0;
    for (; found < automaton->class_count; found++) {
      const int other = automaton->representatives[found];
      size_t i = 0;
      while (i < positions->count && has_character(positions->at[i]->node, c) ==
                                         has_character(positions->at[i]->node, other)) {
        i++;
      }
      if (i == positions->count) break;
    }
    if (found == automaton->class_count) automaton->representatives[automaton->class_count++] = c;
    automaton->classes->at[c] = (int32_t)found;
  }
}

/* The first rule that ends at one of these positions, or -1. */
static long token_of(const Positions* positions, const Set* set) {
  if (set == NULL) return -1;
  const Node* node = positions->at[set->key]->node;
  long token = node->kind == End ? ((const EndNode*)node)->token : -1;
  const long others[2] = {token_of(positions, set->left), token_of(positions, set->right)};
  for (int i = 0; i < 2; i++) {
    if (others[i] >= 0 && (token < 0 || others[i] < token)) token = others[i];
  }
  return token;
}

static StateMap* insert_state(StateMap* map, uint64_t hash, Set* set, StateMap** found) {
  if (map == NULL) {
    *found = NEW(StateMap);
    (*found)->hash = hash;
    return *found;
  }
  const int order =
      hash != map->hash ? (hash < map->hash ? -1 : 1) : compare_sets(set, map->state->positions);
  if (order == 0) {
    *found = map;
  } else if (order < 0) {
    map->left = insert_state(map->left, hash, set, found);
  } else {
    map->right = insert_state(map->right, hash, set, found);
  }
  return map;
}

/* The state of a set of positions, which may be a new one. */
static State* state_of(Automaton* automaton, Set* set) {
  StateMap* entry = NULL;
  automaton->map = insert_state(automaton->map, hash_set(set), set, &entry);
  if (entry->state != NULL) return entry->state;
  State* state = NEW_ARRAY(State, automaton->class_count);
  state->positions = set;
  state->number = automaton->state_count++;
  state->token = token_of(automaton->positions, set);
  entry->state = state;
  automaton->unfinished = cons(state, automaton->unfinished);
  automaton->states = cons(state, automaton->states);
  return state;
}

static Set* positions_after(const Positions* positions, const Set* set, int c) {
  if (set == NULL) return NULL;
  Set* left = positions_after(positions, set->left, c);
  Set* both = join(left, positions_after(positions, set->right, c));
  const Position* position = positions->at[set->key];
  return has_character(position->node, c) ? join(both, position->follow) : both;
}

static void find_states(Automaton* automaton, Set* start) {
  state_of(automaton, start);
  while (automaton->unfinished != NULL) {
    State* state = automaton->unfinished->head;
    automaton->unfinished = automaton->unfinished->tail;
    for (size_t i = 0; i < automaton->class_count; i++) {
      Set* set =
          positions_after(automaton->positions, state->positions, automaton->representatives[i]);
      state->next[i] = set == NULL ? NULL : state_of(automaton, set);
    }
  }
}

static Table* table_of(const Automaton* automaton) {
  Table* table = NEW_ARRAY(Table, (size_t)automaton->state_count);
  table->classes = automaton->classes;
  table->tokens = NEW_ARRAY(Row, (size_t)automaton->state_count);
  table->start = 0;
  for (const List* cell = automaton->states; cell != NULL; cell = cell->tail) {
    const State* state = cell->head;
    Row* row = NEW_ARRAY(Row, state->classes);
    for (size_t i = 0; i < state->classes; i++) {
      row->at[i] = state->next[i] == NULL ? -1 : (int32_t)state->next[i]->number;
    }
    table->rows[state->number] = row;
    table->tokens->at[state->number] = (int32_t)state->token;
  }
  return table;
}

static Table* generate(const char* const* rules, size_t count) {
  Automaton automaton = {0};
  long positions = 0;
  Node* tree = parse_rules(rules, count, &positions);
  automaton.positions = NEW_ARRAY(Positions, (size_t)positions);
  const Summary* summary = summarize(automaton.positions, tree);
  find_classes(&automaton);
  find_states(&automaton, summary->first);
  return table_of(&automaton);
}

/* --- minimization ----------------------------------------------------------------------------- */

static uint64_t hash_row(const Row* row) {
  uint64_t hash = 0;
  for (size_t i = 0; i < row->count; i++) hash = mix(hash + (uint64_t)row->at[i]);
  return hash;
}

/* The block of the states with such a row: a new one if it is the first of its kind. */
static RowMap* insert_row(RowMap* map, uint64_t hash, Row* row, long* blocks, RowMap** found) {
  if (map == NULL) {
    RowMap* entry = NEW(RowMap);
    entry->hash = hash;
    entry->row = row;
    entry->block = (*blocks)++;
    *found = entry;
    return entry;
  }
  const int order = hash != map->hash
                        ? (hash < map->hash ? -1 : 1)
                        : memcmp(row->at, map->row->at, row->count * sizeof(row->at[0]));
  if (order == 0) {
    *found = map;
  } else if (order < 0) {
    map->left = insert_row(map->left, hash, row, blocks, found);
  } else {
    map->right = insert_row(map->right, hash, row, blocks, found);
  }
  return map;
}

/* Splits the blocks by where their states lead to. */
static Row* refine(const Table* table, const Row* block, long* blocks) {
  Row* result = NEW_ARRAY(Row, table->count);
  RowMap* map = NULL;
  *blocks = 0;
  for (size_t state = 0; state < table->count; state++) {
    const Row* next = table->rows[state];
    Row* signature = NEW_ARRAY(Row, next->count + 1);
    signature->at[0] = block->at[state];
    for (size_t i = 0; i < next->count; i++) {
      signature->at[i + 1] = next->at[i] < 0 ? -1 : block->at[next->at[i]];
    }
    RowMap* entry = NULL;
    map = insert_row(map, hash_row(signature), signature, blocks, &entry);
    result->at[state] = (int32_t)entry->block;
  }
  return result;
}

/* The table of the fewest states that accepts the same: states that nothing tells apart are one. */
static Table* minimize(const Table* table) {
  const Row* block = table->tokens;
  long blocks = 0;
  for (long before = -1; before != blocks;) {
    before = blocks;
    block = refine(table, block, &blocks);
  }
  Table* result = NEW_ARRAY(Table, (size_t)blocks);
  result->classes = table->classes;
  result->tokens = NEW_ARRAY(Row, (size_t)blocks);
  result->start = block->at[table->start];
  for (size_t state = 0; state < table->count; state++) {
    const long at = block->at[state];
    if (result->rows[at] != NULL) continue;
    const Row* next = table->rows[state];
    Row* row = NEW_ARRAY(Row, next->count);
    for (size_t i = 0; i < next->count; i++) {
      row->at[i] = next->at[i] < 0 ? -1 : block->at[next->at[i]];
    }
    result->rows[at] = row;
    result->tokens->at[at] = table->tokens->at[state];
  }
  return result;
}

/* --- the program that comes of it ------------------------------------------------------------- */

/* Writes at the end of a text, which is copied to one of twice the size when it is full. */
static Text* append(Text* text, size_t* length, const char* what) {
  const size_t more = strlen(what);
  if (*length + more + 1 > text->capacity) {
    Text* larger = NEW_ARRAY(Text, 2 * text->capacity + more);
    memcpy(larger->text, text->text, *length);
    text = larger;
  }
  memcpy(text->text + *length, what, more + 1);
  *length += more;
  return text;
}

static Text* emit(const Table* table) {
  Text* text = NEW_ARRAY(Text, 64);
  size_t length = 0;
  text = append(text, &length, "static const short next[][] = {\n");
  for (size_t state = 0; state < table->count; state++) {
    const Row* row = table->rows[state];
    for (size_t i = 0; i < row->count; i++) {
      char number[16];
      snprintf(number, sizeof(number), "%d,", row->at[i]);
      text = append(text, &length, number);
    }
    text = append(text, &length, "\n");
  }
  return append(text, &length, "};\n");
}

static void check_emitted(const Table* table, const Text* text) {
  const char* at = strchr(text->text, '{') + 1;
  for (size_t state = 0; state < table->count; state++) {
    const Row* row = table->rows[state];
    for (size_t i = 0; i < row->count; i++) {
      char* end = NULL;
      CHECK(strtol(at, &end, 10) == row->at[i] && *end == ',', "the text of state %zu", state);
      at = end + 1;
    }
  }
}

/* --- runs ------------------------------------------------------------------------------------- */

/* The longest match from here on: its length, 0 if there is none. */
static size_t match_by_table(const Table* table, const char* at, long* token) {
  size_t longest = 0;
  long state = table->start;
  for (size_t i = 0;; i++) {
    if (table->tokens->at[state] >= 0) {
      *token = table->tokens->at[state];
      longest = i;
    }
    if (at[i] == '\0') return longest;
    state = table->rows[state]->at[table->classes->at[(unsigned char)at[i]]];
    if (state < 0) return longest;
  }
}

/* What matches nothing is a token of one character. */
static List* tokens_of(const Table* table, const char* text) {
  List* tokens = NULL;
  while (*text != '\0') {
    Token* token = NEW(Token);
    token->kind = -1;
    size_t length = match_by_table(table, text, &token->kind);
    if (length == 0) length = 1;
    token->lexeme = NEW_ARRAY(Text, length);
    memcpy(token->lexeme->text, text, length);
    tokens = cons(token, tokens);
    text += length;
  }
  return reverse(tokens);
}

static size_t check_language(const char* text) {
  const Table* table = minimize(generate(language, TokenCount));
  check_emitted(table, emit(table));
  const char* at = text;
  for (const List* cell = tokens_of(table, text); cell != NULL; cell = cell->tail) {
    const Token* token = cell->head;
    int kind = -1;
    const char* end = match_by_hand(at, &kind);
    if (end == NULL) {
      kind = -1;
      end = at + 1;
    }
    CHECK(token->kind == kind && token->lexeme->capacity == (size_t)(end - at),
          "character %zu begins token %ld of %zu characters, not %d of %zu", (size_t)(at - text),
          token->kind, token->lexeme->capacity, kind, (size_t)(end - at));
    at = end;
  }
  CHECK(*at == '\0', "the text has more tokens");
  return table->count;
}

/* (a|b)*a(a|b)^k, whose automaton must remember which of the last k+1 characters were an a. */
static void check_memory(size_t k) {
  static const char beginning[] = "(a|b)*a";
  static const char either[] = "(a|b)";
  char rule[128];
  size_t length = sizeof(beginning) - 1;
  memcpy(rule, beginning, sizeof(beginning));
  for (size_t i = 0; i < k; i++, length += sizeof(either) - 1) {
    memcpy(rule + length, either, sizeof(either));
  }
  const char* const rules[] = {rule};
  const Table* table = minimize(generate(rules, 1));
  CHECK(table->count == (size_t)2 << k, "%s has %zu states", rule, table->count);
  check_emitted(table, emit(table));
}

static void run(long scale) {
  enum { TextSize = 20000 };
  static char text[TextSize];
  const long languages = scale == 0 ? 10 : 200 * scale;
  const long memories = scale == 0 ? 3 : 30 * scale;
  const size_t k = scale == 0 ? 9 : 11;
  uint64_t random = 1;
  size_t states = 0;
  for (long i = 0; i < languages; i++) {
    write_program(text, TextSize, &random);
    states = check_language(text);
  }
  for (long i = 0; i < memories; i++) check_memory(k);
  printf("lexgen: %ld automata of %zu states, %ld of %zu\n", languages, states, memories,
         (size_t)2 << k);
}

PROGRAM("lexgen", run);

/*
 * lexgen_regex.h - what lexgen's automata are made of: regular expressions, as trees of nodes of
 * many sizes, and sets of numbers, as search trees whose nodes never change.
 */
#pragma once

#include "run.h"

/* --- nodes ------------------------------------------------------------------------------------ */

enum Kind { Characters, End, Empty, Sequence, Choice, Star, Plus, Optional };

/* A regular expression: what all nodes have in common. */
typedef struct Node {
  OBJECT;
  enum Kind kind;
} Node;
LEAF_TYPE(Node);

/* One character of a set. */
typedef struct CharactersNode {
  OBJECT;
  enum Kind kind;
  long position;
  uint64_t set[4];
} CharactersNode;
LEAF_TYPE(CharactersNode);

/* The end of a rule. */
typedef struct EndNode {
  OBJECT;
  enum Kind kind;
  long position;
  long token;
} EndNode;
LEAF_TYPE(EndNode);

typedef struct UnaryNode {
  OBJECT;
  enum Kind kind;
  Node* operand;
} UnaryNode;
TYPE(UnaryNode, operand);

typedef struct BinaryNode {
  OBJECT;
  enum Kind kind;
  Node* left;
  Node* right;
} BinaryNode;
TYPE(BinaryNode, left, right);

/* A set of numbers: a search tree, and a heap by mixed numbers, so that equal sets are equal trees.
 * Null is the empty one. */
typedef struct Set {
  OBJECT;
  struct Set* left;
  struct Set* right;
  long key;
} Set;
TYPE(Set, left, right);

/* --- parsing ---------------------------------------------------------------------------------- */

typedef struct Parser {
  const char* at;
  long positions;
} Parser;

static Node* make_binary(enum Kind kind, Node* left, Node* right) {
  BinaryNode* node = NEW(BinaryNode);
  node->kind = kind;
  node->left = left;
  node->right = right;
  return (Node*)node;
}

static Node* make_unary(enum Kind kind, Node* operand) {
  UnaryNode* node = NEW(UnaryNode);
  node->kind = kind;
  node->operand = operand;
  return (Node*)node;
}

static void add_range(CharactersNode* node, int from, int to) {
  for (int c = from; c <= to; c++) node->set[c / 64] |= UINT64_C(1) << c % 64;
}

static int parse_character(Parser* parser) {
  if (*parser->at == '\\') parser->at++;
  return (unsigned char)*parser->at++;
}

static Node* parse_characters(Parser* parser) {
  CharactersNode* node = NEW(CharactersNode);
  node->kind = Characters;
  node->position = parser->positions++;
  memset(node->set, 0, sizeof(node->set));
  if (*parser->at != '[') {
    const int c = parse_character(parser);
    add_range(node, c, c);
    return (Node*)node;
  }
  const bool negated = *++parser->at == '^';
  if (negated) parser->at++;
  while (*parser->at != ']') {
    const int from = parse_character(parser);
    const bool range = *parser->at == '-';
    if (range) parser->at++;
    add_range(node, from, range ? parse_character(parser) : from);
  }
  parser->at++;
  if (negated) {
    for (int i = 0; i < 4; i++) node->set[i] = ~node->set[i];
    node->set[0] &= ~UINT64_C(1); /* no null */
  }
  return (Node*)node;
}

static Node* parse_choice(Parser* parser);

static Node* parse_repeated(Parser* parser) {
  Node* node = NULL;
  if (*parser->at == '(') {
    parser->at++;
    node = parse_choice(parser);
    parser->at++;
  } else {
    node = parse_characters(parser);
  }
  for (;; parser->at++) {
    if (*parser->at == '*') {
      node = make_unary(Star, node);
    } else if (*parser->at == '+') {
      node = make_unary(Plus, node);
    } else if (*parser->at == '?') {
      node = make_unary(Optional, node);
    } else {
      return node;
    }
  }
}

static Node* parse_sequence(Parser* parser) {
  if (*parser->at == '\0' || *parser->at == ')' || *parser->at == '|') {
    Node* empty = NEW(Node);
    empty->kind = Empty;
    return empty;
  }
  Node* first = parse_repeated(parser);
  if (*parser->at == '\0' || *parser->at == ')' || *parser->at == '|') return first;
  return make_binary(Sequence, first, parse_sequence(parser));
}

static Node* parse_choice(Parser* parser) {
  Node* node = parse_sequence(parser);
  while (*parser->at == '|') {
    parser->at++;
    node = make_binary(Choice, node, parse_sequence(parser));
  }
  return node;
}

/* All rules in one expression: each with its end, one or another. */
static Node* parse_rules(const char* const* rules, size_t count, long* positions) {
  Parser parser = {NULL, 0};
  Node* all = NULL;
  for (size_t i = 0; i < count; i++) {
    parser.at = rules[i];
    Node* rule = parse_choice(&parser);
    EndNode* end = NEW(EndNode);
    end->kind = End;
    end->position = parser.positions++;
    end->token = (long)i;
    rule = make_binary(Sequence, rule, (Node*)end);
    all = all == NULL ? rule : make_binary(Choice, all, rule);
  }
  *positions = parser.positions;
  return all;
}

/* --- sets ------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t number) { return random_next(&number); }

static Set* make_set(Set* left, long key, Set* right) {
  Set* set = NEW(Set);
  set->left = left;
  set->right = right;
  set->key = key;
  return set;
}

static Set* singleton(long key) { return make_set(NULL, key, NULL); }

/* The members below a number, or those above it. */
static Set* below(Set* set, long key) {
  if (set == NULL) return NULL;
  if (set->key >= key) return below(set->left, key);
  return make_set(set->left, set->key, below(set->right, key));
}

static Set* above(Set* set, long key) {
  if (set == NULL) return NULL;
  if (set->key <= key) return above(set->right, key);
  return make_set(above(set->left, key), set->key, set->right);
}

static Set* join(Set* a, Set* b) {
  if (a == NULL || a == b) return b;
  if (b == NULL) return a;
  if (mix((uint64_t)a->key) < mix((uint64_t)b->key)) {
    Set* other = a;
    a = b;
    b = other;
  }
  Set* left = join(a->left, below(b, a->key));
  return make_set(left, a->key, join(a->right, above(b, a->key)));
}

static int compare_sets(const Set* a, const Set* b) {
  if (a == b) return 0;
  if (a == NULL || b == NULL) return a == NULL ? -1 : 1;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  const int left = compare_sets(a->left, b->left);
  return left != 0 ? left : compare_sets(a->right, b->right);
}

static uint64_t hash_set(const Set* set) {
  if (set == NULL) return 0;
  return mix((uint64_t)set->key + 1000) + hash_set(set->left) + hash_set(set->right);
}

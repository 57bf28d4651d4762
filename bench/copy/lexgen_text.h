/*
 * lexgen_text.h - what lexgen checks its lexers with: the rules of a small language, a text in it,
 * and a matcher that was written by hand. No object is allocated here.
 */
#pragma once

#include "run.h"

#include <ctype.h>

enum { Blank = 20, Comment, Name, Hexadecimal, Real, Integer, String, Operator, TokenCount };

/* Regular expressions, the first of which wins among equally long matches. The first twenty are
 * the keywords. */
static const char* const language[TokenCount] = {
    "if",
    "else",
    "while",
    "for",
    "return",
    "struct",
    "union",
    "enum",
    "switch",
    "case",
    "break",
    "continue",
    "default",
    "do",
    "goto",
    "sizeof",
    "static",
    "typedef",
    "void",
    "const",
    [Blank] = "[ \t\n]+",
    [Comment] = "/\\*([^*]|\\*+[^*/])*\\*+/",
    [Name] = "[a-zA-Z_][a-zA-Z0-9_]*",
    [Hexadecimal] = "0[xX][0-9a-fA-F]+",
    [Real] = "[0-9]+\\.[0-9]*([eE][+\\-]?[0-9]+)?",
    [Integer] = "[0-9]+",
    [String] = "\"([^\"\\\\\n]|\\\\[ -~])*\"",
    [Operator] = "[+\\-*/%=<>!&|^~?:;,.(){}]|<<|>>|<=|>=|==|!=|&&|\\|\\||->|\\+\\+|--",
};

/* --- a text ------------------------------------------------------------------------------------*/

typedef struct Writer {
  char* text;
  size_t length;
  uint64_t* random;
} Writer;

static void write_char(Writer* writer, char c) { writer->text[writer->length++] = c; }

static void write_text(Writer* writer, const char* text) {
  for (; *text != '\0'; text++) write_char(writer, *text);
}

/* 1 to `most` characters out of a set. */
static void write_some(Writer* writer, const char* set, uint64_t most) {
  const size_t size = strlen(set);
  for (uint64_t i = 1 + random_below(writer->random, most); i > 0; i--) {
    write_char(writer, set[random_below(writer->random, size)]);
  }
}

static void write_token(Writer* writer) {
  static const char digits[] = "0123456789";
  static const char* const operators[] = {"+", "->", "<=", ">>", "=", "==", "*", "/", "(",
                                          ")", "{",  "}",  ";",  ",", "||", "&", ".", "--"};
  switch (random_below(writer->random, 8)) {
    case 0:
      write_text(writer, language[random_below(writer->random, Blank)]);
      break;
    case 1:
      write_text(writer, "/* ");
      write_some(writer, "abc */\n\"", 12);
      write_text(writer, "*/");
      break;
    case 2:
      write_text(writer, random_below(writer->random, 2) == 0 ? "0x" : "");
      write_some(writer, digits, 6);
      break;
    case 3:
      write_some(writer, digits, 3);
      write_char(writer, '.');
      if (random_below(writer->random, 2) == 0) write_some(writer, digits, 4);
      if (random_below(writer->random, 2) == 0) write_text(writer, "e-1");
      break;
    case 4:
      write_char(writer, '"');
      write_some(writer, "xyz */0.", 10);
      if (random_below(writer->random, 2) == 0) write_text(writer, "\\\"");
      write_char(writer, '"');
      break;
    case 5:
    case 6:
      write_text(writer,
                 operators[random_below(writer->random, sizeof(operators) / sizeof(operators[0]))]);
      break;
    default:
      write_some(writer, "ifdowhexyz_", 8);
  }
  /* Now and then nothing: what follows may join with it. */
  write_text(writer, random_below(writer->random, 8) == 0 ? "" : " ");
}

enum { LongestToken = 32 };

/* Fills the text with tokens, up to `size` characters, and ends it with a null. */
static size_t write_program(char* text, size_t size, uint64_t* random) {
  Writer writer = {text, 0, random};
  while (writer.length + LongestToken < size) write_token(&writer);
  text[writer.length] = '\0';
  return writer.length;
}

/* --- the matcher -------------------------------------------------------------------------------*/

static const char* skip_digits(const char* at) {
  while (isdigit((unsigned char)*at)) at++;
  return at;
}

static const char* match_name(const char* at, int* token) {
  const char* end = at;
  while (isalnum((unsigned char)*end) || *end == '_') end++;
  *token = Name;
  for (int i = 0; i < Blank; i++) {
    const size_t length = strlen(language[i]);
    if ((size_t)(end - at) == length && strncmp(at, language[i], length) == 0) *token = i;
  }
  return end;
}

static const char* match_number(const char* at, int* token) {
  if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X') && isxdigit((unsigned char)at[2])) {
    *token = Hexadecimal;
    at += 2;
    while (isxdigit((unsigned char)*at)) at++;
    return at;
  }
  *token = Integer;
  at = skip_digits(at);
  if (*at != '.') return at;
  *token = Real;
  at = skip_digits(at + 1);
  if (*at != 'e' && *at != 'E') return at;
  const char* exponent = at + 1 + (at[1] == '+' || at[1] == '-');
  return isdigit((unsigned char)*exponent) ? skip_digits(exponent) : at;
}

/* A string that ends, or null. */
static const char* match_string(const char* at) {
  for (at++; *at != '\0' && *at != '\n'; at++) {
    if (*at == '"') return at + 1;
    if (*at == '\\' && *++at < ' ') return NULL;
  }
  return NULL;
}

/* The end of the longest token that begins here, and which it is; null if none does. */
static const char* match_by_hand(const char* at, int* token) {
  static const char* const pairs[] = {
      "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "++", "--"};
  if (isalpha((unsigned char)*at) || *at == '_') return match_name(at, token);
  if (isdigit((unsigned char)*at)) return match_number(at, token);
  const char* end = at;
  while (*end == ' ' || *end == '\t' || *end == '\n') end++;
  if (end != at) {
    *token = Blank;
    return end;
  }
  if (*at == '"') {
    *token = String;
    return match_string(at);
  }
  if (at[0] == '/' && at[1] == '*') {
    end = strstr(at + 2, "*/");
    if (end != NULL) {
      *token = Comment;
      return end + 2;
    }
  }
  *token = Operator;
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
    if (strncmp(at, pairs[i], 2) == 0) return at + 2;
  }
  return *at != '\0' && strchr("+-*/%=<>!&|^~?:;,.(){}", *at) != NULL ? at + 1 : NULL;
}

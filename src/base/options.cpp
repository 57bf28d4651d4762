#include "base/options.hpp"

#include <stdlib.h>

#include <initializer_list>

#include "base/text.hpp"

extern "C" char** environ;

namespace jd::base {
namespace {

const char* without_blanks(const char* text) {
  while (*text == ' ' || *text == '\t') ++text;
  return text;
}

// Is the text this word, with or without blanks around it?
bool is_word(const char* text, const char* word) {
  const char* rest = after(without_blanks(text), word);
  return rest != nullptr && *without_blanks(rest) == '\0';
}

// A number as the text has it. One that 64 bits do not hold does not fit, and is the largest that
// they do.
struct Number {
  std::uint64_t value = 0;
  bool fits = true;

  void times(std::uint64_t factor) {
    if (__builtin_mul_overflow(value, factor, &value)) value = kNoLimit, fits = false;
  }
  void plus(std::uint64_t summand) {
    if (__builtin_add_overflow(value, summand, &value)) value = kNoLimit, fits = false;
  }
};

// With the blanks around them, as strtoul and sscanf take a number.
bool parse_digits(const char** cursor, Number* number) {
  const char* p = without_blanks(*cursor);
  if (*p < '0' || *p > '9') return false;
  Number n;
  for (; *p >= '0' && *p <= '9'; ++p) {
    n.times(10);
    n.plus(static_cast<std::uint64_t>(*p - '0'));
  }
  *cursor = p;
  *number = n;
  return true;
}

// Digits with a suffix k, M or G or none, and blanks around them.
bool parse_bytes(const char* text, Number* number) {
  if (!parse_digits(&text, number)) return false;
  unsigned shift = 0;
  switch (*text) {
    case 'k':
    case 'K':
      shift = 10;
      break;
    case 'm':
    case 'M':
      shift = 20;
      break;
    case 'g':
    case 'G':
      shift = 30;
      break;
    default:
      break;
  }
  if (shift != 0) ++text;
  if (*without_blanks(text) != '\0') return false;
  number->times(std::uint64_t{1} << shift);
  return true;
}

// bdwgc's switches are on by their mere presence; 0, no, off and false are the way to say no.
// False for what is neither, which is on, too.
bool parse_flag(const char* text, std::uint64_t* value) {
  for (const char* no : {"0", "no", "off", "false"}) {
    if (is_word(text, no)) {
      *value = 0;
      return true;
    }
  }
  *value = 1;
  for (const char* yes : {"", "yes", "on", "true"}) {
    if (is_word(text, yes)) return true;
  }
  Number number;
  return parse_digits(&text, &number) && *without_blanks(text) == '\0';
}

// The value's place in a range like "none, grey, ring".
bool parse_choice(const char* text, const char* range, std::uint64_t* value) {
  text = without_blanks(text);
  std::uint64_t index = 0;
  for (const char* word = range; *word != '\0'; ++index) {
    const char* p = text;
    while (*word != '\0' && *word != ',' && *p == *word) ++p, ++word;
    if ((*word == '\0' || *word == ',') && *without_blanks(p) == '\0') {
      *value = index;
      return true;
    }
    while (*word != '\0' && *word != ',') ++word;
    while (*word == ',' || *word == ' ') ++word;
  }
  return false;
}

// Of an entry NAME=value of the environment. Where the program has its file's privileges, the text
// is another's, and standard error may be, too.
bool may_be_read(const char* variable) {
  Text name;
  while (*variable != '\0' && *variable != '=') name.add(*variable++);
  return secure_getenv(name.c_str()) != nullptr;
}

// Which options read_options found.
bool given[sizeof kOptions / sizeof kOptions[0]];

bool parse_number(const OptionInfo& option, const char* text, Number* number) {
  switch (option.type) {
    case OptionType::Flag:
      return parse_flag(text, &number->value);
    case OptionType::Choice:
      return parse_choice(text, option.range, &number->value);
    case OptionType::Size:
      return parse_bytes(text, number);
    case OptionType::Count:
      return parse_digits(&text, number) && *without_blanks(text) == '\0';
    case OptionType::Path:
      break;
  }
  return false;
}

// The nearest that there is: a limit that is refused would be none.
std::uint64_t nearest(const OptionInfo& option, std::uint64_t value) {
  if (value == 0 && option.zero_allowed) return value;
  return value < option.least ? option.least : value > option.most ? option.most : value;
}
bool has_range(const OptionInfo& option) {
  return option.type == OptionType::Size || option.type == OptionType::Count;
}

}  // namespace

bool parse_size(const char* text, std::uint64_t* value) {
  Number number;
  if (!parse_bytes(text, &number) || !number.fits) return false;
  *value = number.value;
  return true;
}

void read_options(Options* options, Complain* complain) {
  for (const OptionInfo& option : kOptions) {
    // Not in a program with its file's privileges: whoever calls it may name any file.
    const char* text = secure_getenv(option.name);
    if (text == nullptr) continue;
    if (option.type == OptionType::Path) {
      if (*text == '\0') {
        complain(option, text, false);
      } else {
        options->*option.text = text;
      }
      continue;
    }
    Number number;
    const bool understood = parse_number(option, text, &number);
    std::uint64_t value = number.value;
    if (understood && has_range(option)) {
      value = nearest(option, number.value);
      if (value != number.value || !number.fits) complain(option, text, true);
    }
    if (understood || option.type == OptionType::Flag) {
      options->*option.number = value;
      given[&option - kOptions] = true;
    }
    if (!understood) complain(option, text, false);
  }
}

bool was_given(std::uint64_t Options::*number) {
  for (const OptionInfo& option : kOptions) {
    if (option.number == number) return given[&option - kOptions];
  }
  return false;
}

void find_unknown_options(void (*found)(const char* variable)) {
  constexpr char kOurs[] = "JACKDAW_";
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (after(*variable, kOurs) == nullptr) continue;
    bool known = false;
    for (const OptionInfo& option : kOptions) {
      const char* value = after(*variable, option.name);
      known |= value != nullptr && *value == '=';
    }
    if (!known && may_be_read(*variable)) found(*variable);
  }
}

}  // namespace jd::base

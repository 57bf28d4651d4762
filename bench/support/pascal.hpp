// The small Pascal that bench/syntax.cpp translates: a text made up by rules, the words in it, and
// the strings that a translator handles.
//
//   PROGRAM   = program NAME ; [const {NAME = NUMBER ;}] [var NAME {, NAME} ;]
//               {procedure NAME ( NAME {, NAME} ) ; [var NAME {, NAME} ;] STATEMENT ;} STATEMENT .
//   STATEMENT = begin [STATEMENT {; STATEMENT}] end | NAME := EXPRESSION | CALL
//             | if EXPRESSION then STATEMENT [else STATEMENT] | while EXPRESSION do STATEMENT
//             | for NAME := EXPRESSION to EXPRESSION do STATEMENT
//   CALL      = NAME ( EXPRESSION {, EXPRESSION} )
//   FACTOR    = NUMBER | 'STRING' | NAME | CALL | - FACTOR | not FACTOR | ( EXPRESSION )
//
// Between the factors of an EXPRESSION stand = <> < <= > >=, which bind least, + - or, and
// * div mod and, which bind most. {Comments} are skipped.
#pragma once

#include <initializer_list>

#include "support/bench.hpp"

namespace pascal {

// --- strings -------------------------------------------------------------------------------------

struct View {
  const char* data;
  size_t length;
  View(const char* from, size_t count) : data(from), length(count) {}
  View(const char* text) : data(text), length(strlen(text)) {}  // NOLINT: "literals" are views
};

// A pointer-free object: the length, then so many characters.
struct String {
  size_t length;

  char* data() { return reinterpret_cast<char*>(this + 1); }
  [[nodiscard]] View view() const { return {reinterpret_cast<const char*>(this + 1), length}; }
  [[nodiscard]] size_t bytes() const { return sizeof(String) + length; }
};

inline String* join(std::initializer_list<View> parts) {
  size_t length = 0;
  for (const View& part : parts) length += part.length;
  auto* whole = bench::must(static_cast<String*>(GC_MALLOC_ATOMIC(sizeof(String) + length)));
  whole->length = length;
  char* at = whole->data();
  for (const View& part : parts) {
    memcpy(at, part.data, part.length);
    at += part.length;
  }
  return whole;
}

inline String* decimal(int64_t value) {
  char digits[24];
  char* at = digits + sizeof digits;
  uint64_t rest = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do *--at = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) != 0);
  if (value < 0) *--at = '-';
  return join({{at, static_cast<size_t>(digits + sizeof digits - at)}});
}

// FNV-1a.
constexpr uint64_t kHashSeed = UINT64_C(0xCBF29CE484222325);
inline uint64_t hash(uint64_t sum, View text) {
  for (size_t i = 0; i < text.length; ++i) {
    sum = (sum ^ static_cast<unsigned char>(text.data[i])) * UINT64_C(0x100000001B3);
  }
  return sum;
}

// Text that grows; its old bodies are garbage.
class Buffer {
 public:
  void add(std::initializer_list<View> parts) {
    for (const View& part : parts) {
      if (part.length == 0) continue;
      if (part.length > room_ - length_) grow(part.length);
      memcpy(data_ + length_, part.data, part.length);
      length_ += part.length;
    }
  }
  [[nodiscard]] uint64_t hash(uint64_t sum) const { return pascal::hash(sum, {data_, length_}); }

 private:
  void grow(size_t more) {
    size_t room = room_ == 0 ? 128 : 2 * room_;
    while (room < length_ + more) room *= 2;
    char* data = bench::must(static_cast<char*>(GC_MALLOC_ATOMIC(room)));
    if (length_ != 0) memcpy(data, data_, length_);
    data_ = data;
    room_ = room;
  }

  char* data_ = nullptr;
  size_t length_ = 0;
  size_t room_ = 0;
};

// --- words ---------------------------------------------------------------------------------------

// clang-format off
enum class Token : uint32_t {
  // The operators, from the lowest rank to the highest.
  Equal, Unequal, Less, NotMore, More, NotLess,  Plus, Minus, Or,  Times, Divide, Modulo, And,
  Not, Assign, Open, Close, Comma, Semicolon, Period,
  Begin, End, If, Then, Else, While, Do, For, To, Procedure, Program, Const, Var,
  Name, Number, String,
};
// clang-format on

constexpr int kRanks = 3;
constexpr int rank_of(Token t) {
  if (t <= Token::NotLess) return 0;
  if (t <= Token::Or) return 1;
  return t <= Token::And ? 2 : -1;
}

inline const char* in_c(Token t) {
  constexpr const char* kOperators[] = {" == ", " != ", " < ", " <= ", " > ", " >= ", " + ",
                                        " - ",  " | ",  " * ", " / ",  " % ", " & ",  "!"};
  return kOperators[static_cast<size_t>(t)];
}

// Without overflow: as the unsigned numbers of the same bits. `right` is not 0 for / and %.
inline int64_t compute(Token sign, int64_t left, int64_t right) {
  const auto a = static_cast<uint64_t>(left);
  const auto b = static_cast<uint64_t>(right);
  switch (sign) {
    case Token::Equal:
      return left == right;
    case Token::Unequal:
      return left != right;
    case Token::Less:
      return left < right;
    case Token::NotMore:
      return left <= right;
    case Token::More:
      return left > right;
    case Token::NotLess:
      return left >= right;
    case Token::Plus:
      return static_cast<int64_t>(a + b);
    case Token::Minus:
      return static_cast<int64_t>(a - b);
    case Token::Or:
      return static_cast<int64_t>(a | b);
    case Token::Times:
      return static_cast<int64_t>(a * b);
    case Token::Divide:
      return static_cast<int64_t>(a / b);
    case Token::Modulo:
      return static_cast<int64_t>(a % b);
    case Token::And:
      return static_cast<int64_t>(a & b);
    default:
      return right == 0;  // not
  }
}

// A name or a word of the language, once for all places where it occurs.
struct Symbol {
  Symbol* next;  // in its bucket
  String* text;
  uint64_t hash;
  Token token;      // Name, unless the language has a meaning for it
  void* innermost;  // the declaration that holds at this point of a pass
};

class Names {
 public:
  Names() : buckets_(make_buckets(kFirstBuckets)), bucket_count_(kFirstBuckets) {
    constexpr struct {
      const char* word;
      Token token;
    } kWords[] = {{"begin", Token::Begin},     {"end", Token::End},
                  {"if", Token::If},           {"then", Token::Then},
                  {"else", Token::Else},       {"while", Token::While},
                  {"do", Token::Do},           {"for", Token::For},
                  {"to", Token::To},           {"procedure", Token::Procedure},
                  {"program", Token::Program}, {"const", Token::Const},
                  {"var", Token::Var},         {"or", Token::Or},
                  {"div", Token::Divide},      {"mod", Token::Modulo},
                  {"and", Token::And},         {"not", Token::Not}};
    for (const auto& w : kWords) find(w.word)->token = w.token;
  }

  Symbol* find(View text) {
    const uint64_t hash = pascal::hash(kHashSeed, text);
    Symbol** bucket = &buckets_[hash % bucket_count_];
    for (Symbol* s = *bucket; s != nullptr; s = s->next) {
      if (s->hash == hash && s->text->length == text.length &&
          memcmp(s->text->data(), text.data, text.length) == 0) {
        return s;
      }
    }
    auto* symbol = bench::must(static_cast<Symbol*>(GC_MALLOC(sizeof(Symbol))));
    symbol->text = join({text});
    symbol->hash = hash;
    symbol->token = Token::Name;
    symbol->next = *bucket;
    *bucket = symbol;
    bytes_ += sizeof(Symbol) + symbol->text->bytes();
    if (++count_ > bucket_count_) grow();
    return symbol;
  }

  [[nodiscard]] size_t live_bytes() const { return bytes_ + bucket_count_ * sizeof(Symbol*); }

 private:
  static constexpr size_t kFirstBuckets = 64;

  static Symbol** make_buckets(size_t count) {
    return bench::must(static_cast<Symbol**>(GC_MALLOC(count * sizeof(Symbol*))));
  }

  void grow() {
    Symbol** const old = buckets_;
    const size_t old_count = bucket_count_;
    buckets_ = make_buckets(2 * old_count);
    bucket_count_ = 2 * old_count;
    for (size_t i = 0; i < old_count; ++i) {
      for (Symbol* s = old[i]; s != nullptr;) {
        Symbol* const next = s->next;
        Symbol** bucket = &buckets_[s->hash % bucket_count_];
        s->next = *bucket;
        *bucket = s;
        s = next;
      }
    }
  }

  Symbol** buckets_;
  size_t bucket_count_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

// Reads one word ahead.
class Lexer {
 public:
  // The text ends with a line's end.
  Lexer(const char* begin, const char* end) : at_(begin), end_(end) { advance(); }

  [[nodiscard]] Token token() const { return token_; }
  [[nodiscard]] uint32_t line() const { return line_; }
  [[nodiscard]] int64_t number() const { return number_; }
  [[nodiscard]] size_t live_bytes() const { return names_.live_bytes(); }

  bool accept(Token t) {
    if (token_ != t) return false;
    if (t != Token::Period) advance();
    return true;
  }
  void expect(Token t) {
    if (!accept(t)) bench::die("the source text is not understood");
  }
  Symbol* take_name() {
    Symbol* const symbol = symbol_;
    expect(Token::Name);
    return symbol;
  }
  String* take_string() {
    String* const string = string_;
    string_ = nullptr;
    expect(Token::String);
    return string;
  }

  void advance() {
    skip_blanks();
    if (at_ == end_) bench::die("the source text has no end");
    const char* const begin = at_++;
    if (is_letter(*begin)) {
      while (is_letter(*at_) || is_digit(*at_)) ++at_;
      symbol_ = names_.find({begin, static_cast<size_t>(at_ - begin)});
      token_ = symbol_->token;
    } else if (is_digit(*begin)) {
      number_ = *begin - '0';
      while (is_digit(*at_)) number_ = number_ * 10 + (*at_++ - '0');
      token_ = Token::Number;
    } else if (*begin == '\'') {
      while (*at_ != '\'') ++at_;
      string_ = join({{begin + 1, static_cast<size_t>(at_ - begin - 1)}});
      ++at_;
      token_ = Token::String;
    } else {
      token_ = sign(*begin);
    }
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void skip_blanks() {
    for (; at_ != end_; ++at_) {
      if (*at_ == '{') {
        while (*at_ != '}') ++at_;
      } else if (*at_ == '\n') {
        ++line_;
      } else if (*at_ != ' ') {
        return;
      }
    }
  }

  bool then(char c) {
    if (*at_ != c) return false;
    ++at_;
    return true;
  }

  Token sign(char c) {
    switch (c) {
      case '=':
        return Token::Equal;
      case '<':
        return then('>') ? Token::Unequal : then('=') ? Token::NotMore : Token::Less;
      case '>':
        return then('=') ? Token::NotLess : Token::More;
      case '+':
        return Token::Plus;
      case '-':
        return Token::Minus;
      case '*':
        return Token::Times;
      case '(':
        return Token::Open;
      case ')':
        return Token::Close;
      case ',':
        return Token::Comma;
      case ';':
        return Token::Semicolon;
      case '.':
        return Token::Period;
      case ':':
        if (then('=')) return Token::Assign;
        break;
      default:
        break;
    }
    bench::die("the source text has a sign without meaning");
  }

  Names names_;
  const char* at_;
  const char* end_;
  uint32_t line_ = 1;
  Token token_ = Token::End;
  Symbol* symbol_ = nullptr;
  String* string_ = nullptr;
  int64_t number_ = 0;
};

// --- the source text -----------------------------------------------------------------------------

// The same text for the same number of procedures, about 1100 bytes for each, outside of the
// collected heap, as a mapped file is.
class Source {
 public:
  explicit Source(size_t procedures) : capacity_((procedures + 1) * kMostBytes), room_(capacity_) {
    put("program translated;\nconst\n");
    for (size_t i = 0; i < kGlobals; ++i) put_all({"  limit", number(i), " = ", number(i * 37)});
    put("var total0");
    for (size_t i = 1; i < kGlobals; ++i) put_all({", total", number(i)}, "");
    put(";\nprocedure write(item);\nbegin\nend;\n");
    for (procedure_ = 0; procedure_ < procedures; ++procedure_) put_procedure();
    procedure_ = procedures - 1;
    in_procedure_ = false;
    put("begin\n");
    for (int i = 0; i < 20; ++i) put_statement(2, ";\n");
    put("end.\n");
  }

  char* begin() { return &room_[0]; }
  char* end() { return &room_[length_]; }

 private:
  // Twice what a procedure has at most, as far as was seen.
  static constexpr size_t kMostBytes = 8192;
  static constexpr size_t kGlobals = 60;
  static constexpr size_t kLocals = 6;

  struct Digits {
    char text[24];
    operator View() const { return View(text); }  // NOLINT: a part of put_all's list
  };
  static Digits number(size_t value) {
    Digits d;
    snprintf(d.text, sizeof d.text, "%zu", value);
    return d;
  }

  void put(View text) {
    if (text.length > capacity_ - length_) bench::die("the source text is too long");
    memcpy(&room_[length_], text.data, text.length);
    length_ += text.length;
  }
  void put_all(std::initializer_list<View> parts, const char* then = ";\n") {
    for (const View& part : parts) put(part);
    put(then);
  }

  void put_procedure() {
    put_all({"{ step ", number(procedure_), " of the translated program }\n", "procedure step",
             number(procedure_), "(first, second)"});
    // The names of locals recur from procedure to procedure.
    base_ = random_.below(40);
    put_all({"var ", local(0)}, "");
    for (size_t i = 1; i < kLocals; ++i) put_all({", ", local(i)}, "");
    put(";\nbegin\n");
    for (int i = 0; i < 10; ++i) put_statement(2, ";\n");
    put("end;\n");
  }

  struct Word {
    char text[32];
    operator View() const { return View(text); }  // NOLINT: a part of put_all's list
  };
  Word local(size_t i) const {
    constexpr const char* kStems[] = {"count", "width", "index", "offset", "height", "level"};
    Word w;
    snprintf(w.text, sizeof w.text, "%sOf%zu", kStems[i], base_ + i);
    return w;
  }
  Word variable() {
    const uint64_t which = in_procedure_ ? random_.below(10) : 9;
    if (which == 0) return {"first"};
    if (which == 1) return {"second"};
    if (which < 8) return local(which - 2);
    Word w;
    snprintf(w.text, sizeof w.text, "total%zu", static_cast<size_t>(random_.below(kGlobals)));
    return w;
  }

  void put_statement(int depth, const char* then) {
    const uint64_t which = depth == 0 ? 0 : random_.below(10);
    if (which < 4) {
      put_all({variable(), " := "}, "");
      put_expression(4);
    } else if (which == 4) {
      put_call(3);
    } else if (which == 5) {
      put_all({"write('", local(random_.below(kLocals)), " is at ", number(procedure_), "')"}, "");
    } else if (which < 8) {
      put("if ");
      put_expression(2);
      put(" then\n");
      put_statement(depth - 1, "");
      if (random_.below(2) == 0) {
        put("\nelse\n");
        put_statement(0, "");
      }
    } else {
      if (which == 8) {
        put("while ");
      } else {
        put_all({"for ", variable(), " := "}, "");
        put_expression(1);
        put(" to ");
      }
      put_expression(2);
      put(" do begin\n");
      put_statement(depth - 1, ";\n");
      put_statement(depth - 1, "\n");
      put("end");
    }
    put(then);
  }

  // A procedure calls itself or one above it.
  void put_call(int depth) {
    put_all({"step", number(random_.below(procedure_ + 1)), "("}, "");
    put_expression(depth - 1);
    put(", ");
    put_expression(depth - 1);
    put(")");
  }

  void put_expression(int depth) {
    const uint64_t which = depth == 0 ? random_.below(9) : random_.below(20);
    if (which < 5) {
      put(variable());
    } else if (which < 7) {
      put(number(random_.below(1000)));
    } else if (which < 9) {
      put_all({"limit", number(random_.below(kGlobals))}, "");
    } else if (which == 9) {
      put("-");
      put_expression(0);
    } else if (which == 10) {
      put_call(depth);
    } else {
      constexpr const char* kSigns[] = {" + ", " - ",  " * ",  " div ", " mod ", " and ",
                                        " < ", " or ", " <> ", " >= ",  " = ",   " <= "};
      put("(");
      put_expression(depth - 1);
      put(kSigns[random_.below(12)]);
      put_expression(depth - 1);
      put(")");
    }
  }

  size_t capacity_;
  bench::Scratch<char> room_;
  bench::Random random_;
  size_t length_ = 0;
  size_t procedure_ = 0;
  size_t base_ = 0;
  bool in_procedure_ = true;
};

}  // namespace pascal

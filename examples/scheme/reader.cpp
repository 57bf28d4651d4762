#include <cctype>
#include <cmath>
#include <cstdlib>

#include "datum.hpp"

namespace scheme {
namespace {

constexpr std::int64_t kMostFixnum = (std::int64_t{1} << 61) - 1;

class Reader {
 public:
  Reader(const std::string& text, Pool<Datum>* pool) : text_(text), pool_(pool) {}

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  Datum* read() {
    if (++depth_ > kMostNested) throw Error(line_, "nested too deeply");
    Datum* datum = read_datum();
    --depth_;
    return datum;
  }

 private:
  Datum* read_datum() {
    if (at_end()) throw Error(line_, "the text ends inside of a list");
    const char c = text_[at_++];
    switch (c) {
      case '(':
        return read_list(true);
      case ')':
        throw Error(line_, "a ) without a (");
      case '\'': {
        Datum* quoted = make(Datum::List);
        quoted->items = {make_text(Datum::Symbol, "quote"), read()};
        return quoted;
      }
      case '"':
        return read_string();
      case '#':
        return read_hash();
      default:
        --at_;
        return read_atom();
    }
  }

  Datum* make(Datum::Kind kind) { return pool_->make(kind, line_); }
  Datum* make_text(Datum::Kind kind, std::string text) {
    Datum* made = make(kind);
    made->text = std::move(text);
    return made;
  }
  Datum* make_integer(Datum::Kind kind, std::int64_t integer) {
    Datum* made = make(kind);
    made->integer = integer;
    return made;
  }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == ';') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size() || std::isspace(static_cast<unsigned char>(text_[at_])) == 0) return;
      if (text_[at_] == '\n') ++line_;
    }
  }

  // A dot that is an atom of its own.
  [[nodiscard]] bool is_at_dot() const {
    return at_ < text_.size() && text_[at_] == '.' && is_end_of_word(at_ + 1);
  }

  Datum* read_list(bool may_have_tail) {
    Datum* list = make(Datum::List);
    for (;;) {
      if (!at_end() && text_[at_] == ')') break;
      if (may_have_tail && !list->items.empty() && is_at_dot()) {
        ++at_;
        list->tail = read();
        // (a . (b c)) is (a b c).
        if (list->tail->kind == Datum::List) {
          const Datum* rest = list->tail;
          list->items.insert(list->items.end(), rest->items.begin(), rest->items.end());
          list->tail = rest->tail;
        }
        if (at_end() || text_[at_] != ')') throw Error(line_, "more than one datum after a dot");
        break;
      }
      list->items.push_back(read());
    }
    ++at_;
    return list;
  }

  Datum* read_string() {
    std::string content;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\n') ++line_;
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      content += c;
    }
    if (at_++ >= text_.size()) throw Error(line_, "the text ends inside of a string");
    return make_text(Datum::String, content);
  }

  [[nodiscard]] bool is_end_of_word(std::size_t at) const {
    return at >= text_.size() || std::isspace(static_cast<unsigned char>(text_[at])) != 0 ||
           std::string("()\";'").find(text_[at]) != std::string::npos;
  }
  std::string read_word() {
    const std::size_t begin = at_;
    while (!is_end_of_word(at_)) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Datum* read_hash() {
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      Datum* vector = read_list(false);
      vector->kind = Datum::Vector;
      return vector;
    }
    if (at_ + 1 < text_.size() && text_[at_] == '\\') {
      const char first = text_[at_ + 1];
      at_ += 2;
      const std::string word = first + read_word();
      if (word == "space") return make_integer(Datum::Character, ' ');
      if (word == "newline") return make_integer(Datum::Character, '\n');
      if (word.size() != 1) throw Error(line_, "no such character: #\\" + word);
      return make_integer(Datum::Character, static_cast<unsigned char>(first));
    }
    const std::string word = read_word();
    if (word == "t" || word == "f") return make_integer(Datum::Boolean, word == "t" ? 1 : 0);
    throw Error(line_, "cannot read #" + word);
  }

  Datum* read_atom() {
    const std::string word = read_word();
    if (word == ".") throw Error(line_, "a dot cannot stand here");
    char* end = nullptr;
    const char first = word[word[0] == '-' && word.size() > 1 ? 1 : 0];
    if (std::isdigit(static_cast<unsigned char>(first)) == 0) {
      return make_text(Datum::Symbol, word);
    }
    const std::int64_t integer = std::strtoll(word.c_str(), &end, 10);
    if (*end == '\0') {
      if (integer > kMostFixnum || integer < -kMostFixnum - 1) {
        throw Error(line_, word + " is too large for a fixnum");
      }
      return make_integer(Datum::Fixnum, integer);
    }
    Datum* made = make(Datum::Flonum);
    made->number = std::strtod(word.c_str(), &end);
    if (*end != '\0') throw Error(line_, word + " is no number");
    if (std::isinf(made->number)) throw Error(line_, word + " is too large for a flonum");
    return made;
  }

  const std::string& text_;
  Pool<Datum>* pool_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
};

}  // namespace

std::vector<Datum*> read_all(const std::string& text, Pool<Datum>* pool) {
  std::vector<Datum*> all;
  Reader reader(text, pool);
  while (!reader.at_end()) all.push_back(reader.read());
  return all;
}

}  // namespace scheme

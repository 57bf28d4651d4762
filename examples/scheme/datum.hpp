// What the reader makes of a program's text.
#pragma once

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace scheme {

// The passes follow lists within lists, and expressions within expressions, by calling themselves.
constexpr int kMostNested = 1000;

struct Datum {
  enum Kind { Boolean, Fixnum, Flonum, Character, String, Symbol, List, Vector };
  Kind kind;
  int line;
  std::int64_t integer = 0;  // also a boolean's and a character's
  double number = 0;
  std::string text = {};           // a string's, a symbol's
  std::vector<Datum*> items = {};  // a list's, a vector's
  Datum* tail = nullptr;           // of an improper list

  [[nodiscard]] bool is_symbol() const { return kind == Symbol; }
  [[nodiscard]] bool is_list() const { return kind == List && tail == nullptr; }
};

struct Error : std::runtime_error {
  Error(int line, const std::string& what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what) {}
};

// What a compilation makes lasts until its end.
template <class T>
class Pool {
 public:
  template <class... Arguments>
  T* make(Arguments&&... arguments) {
    return &all_.emplace_back(T{std::forward<Arguments>(arguments)...});
  }

 private:
  std::deque<T> all_;
};

// All data of a text.
std::vector<Datum*> read_all(const std::string& text, Pool<Datum>* pool);

}  // namespace scheme

// Text without <string>: usable from signal handlers, in a stopped world and when memory has run
// out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jd::base {

// What follows in a text behind the words that it begins with; null if it begins with others.
inline const char* after(const char* text, const char* beginning) {
  while (*beginning != '\0' && *text == *beginning) ++text, ++beginning;
  return *beginning == '\0' ? text : nullptr;
}

// A number to be printed in hexadecimal with a leading 0x.
struct Hex {
  std::uint64_t value;
};

// A line of text built in a fixed buffer. What does not fit is cut, and the cut is marked with
// "...".
class Text {
 public:
  Text& add(const char* text);
  Text& add(char c);
  Text& add(Hex hex);
  Text& add(std::uint64_t number);
  Text& add(std::int64_t number);
  Text& add(int number) { return add(static_cast<std::int64_t>(number)); }
  Text& add(unsigned number) { return add(static_cast<std::uint64_t>(number)); }
  Text& add(long long number) { return add(static_cast<std::int64_t>(number)); }
  Text& add(unsigned long long number) { return add(static_cast<std::uint64_t>(number)); }
  Text& add(const void* pointer) { return add(Hex{reinterpret_cast<std::uintptr_t>(pointer)}); }

  template <class First, class Second, class... Rest>
  Text& add(First first, Second second, Rest... rest) {
    add(first);
    return add(second, rest...);
  }

  // A newline, for which there is room in any case. Nothing may follow.
  void end_line() { buffer_[size_++] = '\n'; }

  [[nodiscard]] const char* data() const { return buffer_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // The text with a terminating NUL, for interfaces that want one.
  const char* c_str() {
    buffer_[size_] = '\0';
    return buffer_;
  }

 private:
  static constexpr std::size_t kCapacity = 1000;  // one line of a log; far under a signal stack
  char buffer_[kCapacity + 4];
  std::size_t size_ = 0;
};

}  // namespace jd::base

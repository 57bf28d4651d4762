#include "base/text.hpp"

namespace jd::base {

Text& Text::add(char c) {
  if (size_ < kCapacity - 3) {
    buffer_[size_++] = c;
  } else if (size_ == kCapacity - 3) {
    for (int dots = 0; dots < 3; ++dots) buffer_[size_++] = '.';
  }
  return *this;
}

Text& Text::add(const char* text) {
  for (const char* p = text != nullptr ? text : "(null)"; *p != '\0'; ++p) add(*p);
  return *this;
}

Text& Text::add(std::uint64_t number) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) add(digits[--count]);
  return *this;
}

Text& Text::add(std::int64_t number) {
  if (number >= 0) return add(static_cast<std::uint64_t>(number));
  add('-');
  return add(~static_cast<std::uint64_t>(number) + 1);
}

Text& Text::add(Hex hex) {
  add("0x");
  int shift = 60;
  while (shift > 0 && (hex.value >> shift) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) add("0123456789abcdef"[(hex.value >> shift) & 15]);
  return *this;
}

}  // namespace jd::base

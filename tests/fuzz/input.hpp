// What a fuzzer gives: bytes, read as the decisions of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  [[nodiscard]] bool empty() const { return at_ == end_; }
  // Zeros behind the end, so that half an operation is one, too.
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : *at_++; }
  std::uint32_t number(int bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }
  std::size_t below(std::size_t limit) { return byte() % limit; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

// The finding: libFuzzer keeps the input of a program that aborts.
inline void check(bool holds, const char* condition, const char* file, int line) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: it is not so that %s\n", file, line, condition);
  std::abort();
}

}  // namespace fuzz

#define FUZZ_CHECK(condition) fuzz::check((condition), #condition, __FILE__, __LINE__)

// Each program's, called with one input after another. The name is libFuzzer's.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

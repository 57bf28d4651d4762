// Integer helpers that every room uses. Nothing here knows of memory or the system
// (base.req.plain).
#pragma once

#include <cstddef>
#include <cstdint>

namespace jd::base {

using Word = std::uintptr_t;

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;
// A cache line: what processors hand to one another as a whole.
inline constexpr std::size_t kLine = 64;

constexpr std::size_t align_down(std::size_t n, std::size_t power) { return n & ~(power - 1); }
constexpr std::size_t align_up(std::size_t n, std::size_t power) {
  return (n + power - 1) & ~(power - 1);
}
constexpr bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }
constexpr std::size_t div_up(std::size_t n, std::size_t d) { return n / d + (n % d != 0); }

// Position of the highest set bit. Pre: n != 0.
constexpr unsigned log2_floor(std::uint64_t n) {
  return 63u - static_cast<unsigned>(__builtin_clzll(n));
}
// Position of the lowest set bit. Pre: n != 0.
constexpr unsigned lowest_bit(std::uint64_t n) { return static_cast<unsigned>(__builtin_ctzll(n)); }

// Position of the lowest clear bit; 64 if there is none.
constexpr unsigned lowest_zero(std::uint64_t n) { return ~n == 0 ? 64 : lowest_bit(~n); }

// Set bits in a word. Spelled out because the baseline x86-64 has no instruction for it and the
// compiler would call libgcc.
constexpr unsigned count_ones(std::uint64_t n) {
  n -= (n >> 1) & 0x5555555555555555u;
  n = (n & 0x3333333333333333u) + ((n >> 2) & 0x3333333333333333u);
  n = (n + (n >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<unsigned>((n * 0x0101010101010101u) >> 56);
}

// 2^64 by the golden ratio. A number times it has its bits mixed, the upper ones most: for hashing,
// and for seeds that are close to each other (Knuth, The Art of Computer Programming, vol. 3, 6.4).
inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

// The digest of a row of words, one after another: of words that differ, wherever their bits do, it
// is the same only by chance.
[[nodiscard]] constexpr std::uint64_t add_to_digest(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * kGolden;
  return digest ^ (digest >> 32);  // else upper bits would never change lower ones
}

// The same of a text's characters and of its end.
[[nodiscard]] inline std::uint64_t add_text_to_digest(std::uint64_t digest, const char* text) {
  for (;;) {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < sizeof word; ++i) {
      if (*text == '\0') return add_to_digest(digest, word | std::uint64_t{0xff} << 8 * i);
      word |= std::uint64_t{static_cast<unsigned char>(*text++)} << 8 * i;
    }
    digest = add_to_digest(digest, word);
  }
}

// A size that says whether the arithmetic that made it overflowed: every request for memory is
// computed with these (alloc.req.overflow).
[[nodiscard]] constexpr bool checked_add(std::size_t a, std::size_t b, std::size_t* sum) {
  return !__builtin_add_overflow(a, b, sum);
}
[[nodiscard]] constexpr bool checked_multiply(std::size_t a, std::size_t b, std::size_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

template <class T>
constexpr T min_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}

inline char* as_pointer(Word address) { return reinterpret_cast<char*>(address); }
inline Word as_word(const void* pointer) { return reinterpret_cast<Word>(pointer); }

// Copying and clearing through the compiler's own idea of memcpy and memset, which needs no
// <cstring>.
inline void clear_bytes(void* p, std::size_t n) { __builtin_memset(p, 0, n); }
inline void copy_bytes(void* to, const void* from, std::size_t n) { __builtin_memcpy(to, from, n); }

}  // namespace jd::base

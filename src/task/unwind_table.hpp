// The table of unwind information that linkers put beside .eh_frame: its encodings, and the entry
// of a function in it. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace jd::task {

using base::Word;
using Byte = std::uint8_t;

// Encodings of pointers in .eh_frame (DW_EH_PE_*).
inline constexpr Byte kAbsolute = 0x00, kUleb = 0x01, kUnsigned2 = 0x02, kUnsigned4 = 0x03,
                      kUnsigned8 = 0x04, kSleb = 0x09, kSigned2 = 0x0a, kSigned4 = 0x0b,
                      kSigned8 = 0x0c;
inline constexpr Byte kRelativeToHere = 0x10, kRelativeToData = 0x30, kIndirect = 0x80,
                      kOmitted = 0xff;

inline const Byte* bytes_at(Word address) { return reinterpret_cast<const Byte*>(address); }

class Reader {
 public:
  explicit Reader(const Byte* at) : at_(at) {}
  const Byte* at() const { return at_; }
  void skip(Word bytes) { at_ += bytes; }

  template <class T>
  T read() {
    T value;
    __builtin_memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  Word uleb() {
    Word value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const Byte byte = *at_++;
      if (shift < 64) value |= Word{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::int64_t sleb() {
    Word value = 0;
    for (unsigned shift = 0;;) {
      const Byte byte = *at_++;
      if (shift < 64) value |= Word{byte & 0x7fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~Word{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  // A pointer; false if the encoding is one that no linker uses here.
  bool pointer(Byte encoding, Word data, Word* value) {
    *value = 0;
    if (encoding == kOmitted) return true;
    Word base = 0;
    if ((encoding & 0x70) == kRelativeToHere) {
      base = base::as_word(at_);
    } else if ((encoding & 0x70) == kRelativeToData) {
      base = data;
    } else if ((encoding & 0x70) != kAbsolute) {
      return false;
    }
    Word read_value = 0;
    switch (encoding & 0x0f) {
      case kAbsolute:
      case kUnsigned8:
      case kSigned8:
        read_value = read<std::uint64_t>();
        break;
      case kUleb:
        read_value = uleb();
        break;
      case kUnsigned2:
        read_value = read<std::uint16_t>();
        break;
      case kUnsigned4:
        read_value = read<std::uint32_t>();
        break;
      case kSleb:
        read_value = static_cast<Word>(sleb());
        break;
      case kSigned2:
        read_value = static_cast<Word>(std::int64_t{read<std::int16_t>()});
        break;
      case kSigned4:
        read_value = static_cast<Word>(std::int64_t{read<std::int32_t>()});
        break;
      default:
        return false;
    }
    if (read_value == 0) return true;
    read_value += base;
    if ((encoding & kIndirect) != 0) {
      __builtin_memcpy(&read_value, base::as_pointer(read_value), sizeof read_value);
    }
    *value = read_value;
    return true;
  }

 private:
  const Byte* at_;
};

// One function's entry in the table, with what its common part says.
struct Entry {
  Word low = 0;
  Word high = 0;
  const Byte* common_program = nullptr;
  const Byte* common_end = nullptr;
  const Byte* program = nullptr;
  const Byte* end = nullptr;
  Word code_factor = 1;
  std::int64_t data_factor = 1;
};

// Finds the entry of the function that contains the address. False if there is none, or one that is
// written in a way that no compiler uses here.
bool read_entry(Word address, Entry* entry);

// A digest of all that read_entry reads: the same as before if the entry is the same, at the same
// place. 0 if there is none.
Word digest_entry(Word address);

}  // namespace jd::task

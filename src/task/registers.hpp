// The registers of a frame, as the unwind tables number them.
#pragma once

#include <cstdint>

#include "base/bits.hpp"

namespace jd::task {

using base::Word;

// By DWARF's numbers for x86-64; the last is the program counter.
enum RegisterNumber : std::uint8_t {
  kRax = 0,
  kRdx = 1,
  kRbx = 3,
  kRbp = 6,
  kRsp = 7,
  kR12 = 12,
  kR15 = 15,
  kPc = 16,
  kRegisters = 17
};
struct Registers {
  Word value[kRegisters];
};

}  // namespace jd::task

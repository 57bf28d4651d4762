// Rows of the unwind tables: what an entry's programs and expressions say of an address, and the
// step from a frame to its caller by it. Async-signal-safe.
#pragma once

#include "base/bits.hpp"
#include "task/registers.hpp"
#include "task/unwind_table.hpp"

namespace jd::task {

// Where the caller's value of a register is.
struct Place {
  enum Kind : Byte { Same, AtOffset, AtExpression, IsOffset, IsExpression, InRegister, Lost };
  Kind kind = Same;
  std::int64_t offset = 0;
  const Byte* expression = nullptr;
};

// How to come from a frame to its caller.
struct Row {
  bool by_expression = false;
  Word frame_register = 0;
  std::int64_t frame_offset = 0;
  const Byte* frame_expression = nullptr;
  Place places[kRegisters];
  // The addresses that it holds for.
  Word low = 0;
  Word high = 0;
};

// What the tables say of a function, as far as it concerns one address in it.
struct Described {
  Row row;
  Word function_end = 0;
  // Some row of the function saves rax or rdx: only functions that __builtin_eh_return leaves do,
  // and what they have saved may be another frame's registers already.
  bool returns_oddly = false;
};

// False if the tables say nothing of it, or in a way that is not understood here; returns_oddly
// holds for what was read.
bool describe(Word address, Described* described);

// The frame's address: the value of rsp in the caller when this frame has returned.
bool frame_of(const Row& row, const Registers& registers, Word* frame);
// Makes the registers those of the caller. False, and nothing is changed, if that is not possible.
bool step_by(const Row& row, Registers* registers);

inline Word load(Word address) {
  Word value = 0;
  __builtin_memcpy(&value, base::as_pointer(address), sizeof value);
  return value;
}

}  // namespace jd::task

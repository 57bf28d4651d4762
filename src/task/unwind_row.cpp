#include "task/unwind_row.hpp"

namespace jd::task {
namespace {

// DW_CFA_..., by the DWARF standard. The first three have an operand in the lower six bits.
enum Instruction : Byte {
  kAdvance = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kAdvance1 = 0x02,
  kAdvance2 = 0x03,
  kAdvance4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefineFrame = 0x0c,
  kDefineFrameRegister = 0x0d,
  kDefineFrameOffset = 0x0e,
  kDefineFrameExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSigned = 0x11,
  kDefineFrameSigned = 0x12,
  kDefineFrameOffsetSigned = 0x13,
  kValueOffset = 0x14,
  kValueExpression = 0x16,
  kArgumentsSize = 0x2e,  // GNU's
};

// Runs an entry's programs for a row: the common part's, and then its own, which begins where that
// has ended.
class Interpreter {
 public:
  explicit Interpreter(const Entry& entry) : entry_(entry) {}

  // The row of the address. False if there is something in it that no compiler writes.
  bool run(const Byte* from, const Byte* to, Word address) {
    address_ = address;
    row_ = initial_ = result_;
    location_ = entry_.low;
    passed_ = false;
    depth_ = 0;
    in_ = Reader(from);
    while (in_.at() < to) {
      if (!run_instruction(in_.read<Byte>())) return false;
    }
    if (!passed_) end_row(entry_.high);
    return true;
  }
  [[nodiscard]] const Row& result() const { return result_; }
  // Described::returns_oddly.
  [[nodiscard]] bool saves_results() const { return saves_results_; }

 private:
  void end_row(Word high) {
    result_ = row_;
    result_.low = location_;
    result_.high = high;
  }
  void advance(Word by) {
    const Word next = location_ + by * entry_.code_factor;
    if (next > address_ && !passed_) {
      passed_ = true;
      end_row(next);
    }
    location_ = next;
  }
  void place(Word number, Place where) {
    if ((number == kRax || number == kRdx) && where.kind != Place::Same) saves_results_ = true;
    if (number < kRegisters) row_.places[number] = where;
  }
  void place_initially(Word number) {
    if (number < kRegisters) row_.places[number] = initial_.places[number];
  }
  std::int64_t offset() { return static_cast<std::int64_t>(in_.uleb()); }
  std::int64_t factored() { return offset() * entry_.data_factor; }
  std::int64_t factored_signed() { return in_.sleb() * entry_.data_factor; }
  const Byte* expression() {
    const Byte* const at = in_.at();
    const Word size = in_.uleb();
    in_.skip(size);
    return at;
  }

  bool run_instruction(Byte instruction) {
    const Byte operand = instruction & 0x3f;
    switch (instruction & 0xc0) {
      case kAdvance:
        advance(operand);
        return true;
      case kOffset:
        place(operand, {Place::AtOffset, factored(), nullptr});
        return true;
      case kRestore:
        place_initially(operand);
        return true;
      default:
        return run_extended(instruction);
    }
  }

  bool run_extended(Byte instruction) {
    switch (instruction) {
      case kNop:
        return true;
      case kAdvance1:
        advance(in_.read<std::uint8_t>());
        return true;
      case kAdvance2:
        advance(in_.read<std::uint16_t>());
        return true;
      case kAdvance4:
        advance(in_.read<std::uint32_t>());
        return true;
      case kRememberState:
        if (depth_ == kDepth) return false;
        stack_[depth_++] = row_;
        return true;
      case kRestoreState:
        if (depth_ == 0) return false;
        row_ = stack_[--depth_];
        return true;
      case kDefineFrame:
      case kDefineFrameSigned:
      case kDefineFrameRegister:
      case kDefineFrameOffset:
      case kDefineFrameOffsetSigned:
      case kDefineFrameExpression:
        define_frame(instruction);
        return true;
      case kArgumentsSize:
        in_.uleb();
        return true;
      default:
        return place_register(instruction);
    }
  }

  void define_frame(Byte instruction) {
    const bool is_signed =
        instruction == kDefineFrameSigned || instruction == kDefineFrameOffsetSigned;
    if (instruction == kDefineFrameExpression) {
      row_.by_expression = true;
      row_.frame_expression = expression();
      return;
    }
    if (instruction != kDefineFrameOffset && instruction != kDefineFrameOffsetSigned) {
      row_.by_expression = false;
      row_.frame_register = in_.uleb();
    }
    if (instruction != kDefineFrameRegister) {
      row_.frame_offset = is_signed ? factored_signed() : offset();
    }
  }

  // Those whose first operand is a register.
  bool place_register(Byte instruction) {
    const Word number = in_.uleb();
    switch (instruction) {
      case kOffsetExtended:
        place(number, {Place::AtOffset, factored(), nullptr});
        break;
      case kOffsetExtendedSigned:
        place(number, {Place::AtOffset, factored_signed(), nullptr});
        break;
      case kRestoreExtended:
        place_initially(number);
        break;
      case kUndefined:
        place(number, {Place::Lost, 0, nullptr});
        break;
      case kSameValue:
        place(number, {});
        break;
      case kRegister:
        place(number, {Place::InRegister, offset(), nullptr});
        break;
      case kExpression:
        place(number, {Place::AtExpression, 0, expression()});
        break;
      case kValueOffset:
        place(number, {Place::IsOffset, factored(), nullptr});
        break;
      case kValueExpression:
        place(number, {Place::IsExpression, 0, expression()});
        break;
      default:
        return false;
    }
    return true;
  }

  static constexpr int kDepth = 8;  // of remembered rows; a guess: compilers nest few

  const Entry& entry_;
  Row initial_;  // what registers are restored to
  Row row_;      // of the present location
  Row result_;   // of the address
  Word address_ = 0;
  Word location_ = 0;
  bool passed_ = false;  // the address
  bool saves_results_ = false;
  Reader in_{nullptr};
  Row stack_[kDepth];
  int depth_ = 0;
};

// DW_OP_..., by the DWARF standard.
enum Operation : Byte {
  kDeref = 0x06,
  kConst1u = 0x08,
  kConst1s = 0x09,
  kConst2u = 0x0a,
  kConst2s = 0x0b,
  kConst4u = 0x0c,
  kConst4s = 0x0d,
  kConst8u = 0x0e,
  kConst8s = 0x0f,
  kConstu = 0x10,
  kConsts = 0x11,
  kDup = 0x12,
  kAnd = 0x1a,
  kMinus = 0x1c,
  kOr = 0x21,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kShr = 0x25,
  kEq = 0x29,
  kGe = 0x2a,
  kLit0 = 0x30,
  kLit31 = 0x4f,
  kBreg0 = 0x70,
  kBreg31 = 0x8f,
};

// A DWARF expression over the registers; only what compilers and the C library use in such tables.
bool evaluate(const Byte* expression, const Registers& registers, bool with_initial, Word initial,
              Word* result) {
  constexpr int kMost = 16;
  Word stack[kMost];
  int depth = 0;
  const auto push = [&](Word value) {
    if (depth == kMost) return false;
    stack[depth++] = value;
    return true;
  };
  if (with_initial) push(initial);
  Reader in(expression);
  const Word size = in.uleb();
  const Byte* end = in.at() + size;
  while (in.at() < end) {
    const Byte operation = in.read<Byte>();
    Word value = 0;
    if (operation >= kLit0 && operation <= kLit31) {
      value = static_cast<Word>(operation - kLit0);
    } else if (operation >= kBreg0 && operation <= kBreg31) {
      const std::int64_t offset = in.sleb();
      const auto number = static_cast<unsigned>(operation - kBreg0);
      if (number >= kRegisters) return false;
      value = registers.value[number] + static_cast<Word>(offset);
    } else {
      switch (operation) {
        case kConst1u:
          value = in.read<std::uint8_t>();
          break;
        case kConst1s:
          value = static_cast<Word>(std::int64_t{in.read<std::int8_t>()});
          break;
        case kConst2u:
          value = in.read<std::uint16_t>();
          break;
        case kConst2s:
          value = static_cast<Word>(std::int64_t{in.read<std::int16_t>()});
          break;
        case kConst4u:
          value = in.read<std::uint32_t>();
          break;
        case kConst4s:
          value = static_cast<Word>(std::int64_t{in.read<std::int32_t>()});
          break;
        case kConst8u:
        case kConst8s:
          value = in.read<std::uint64_t>();
          break;
        case kConstu:
          value = in.uleb();
          break;
        case kConsts:
          value = static_cast<Word>(in.sleb());
          break;
        case kDeref:
          if (depth < 1) return false;
          stack[depth - 1] = load(stack[depth - 1]);
          continue;
        case kPlusUconst:
          if (depth < 1) return false;
          stack[depth - 1] += in.uleb();
          continue;
        case kDup:
          if (depth < 1) return false;
          value = stack[depth - 1];
          break;
        case kAnd:
        case kMinus:
        case kOr:
        case kPlus:
        case kShl:
        case kShr:
        case kEq:
        case kGe: {
          if (depth < 2) return false;
          const Word right = stack[--depth];
          Word& left = stack[depth - 1];
          if (operation == kAnd) left &= right;
          if (operation == kMinus) left -= right;
          if (operation == kOr) left |= right;
          if (operation == kPlus) left += right;
          if (operation == kShl) left = right < 64 ? left << right : 0;
          if (operation == kShr) left = right < 64 ? left >> right : 0;
          if (operation == kEq) left = left == right ? 1 : 0;
          if (operation == kGe) {
            left = static_cast<std::int64_t>(left) >= static_cast<std::int64_t>(right) ? 1 : 0;
          }
          continue;
        }
        default:
          return false;
      }
    }
    if (!push(value)) return false;
  }
  if (depth == 0) return false;
  *result = stack[depth - 1];
  return true;
}

}  // namespace

bool describe(Word address, Described* described) {
  Entry entry;
  if (!read_entry(address, &entry)) return false;
  described->function_end = entry.high;
  Interpreter interpreter(entry);
  // The common part's program has no locations.
  const bool is_understood = interpreter.run(entry.common_program, entry.common_end, ~Word{0}) &&
                             interpreter.run(entry.program, entry.end, address);
  described->returns_oddly = interpreter.saves_results();
  described->row = interpreter.result();
  return is_understood;
}

bool frame_of(const Row& row, const Registers& registers, Word* frame) {
  if (row.by_expression) return evaluate(row.frame_expression, registers, false, 0, frame);
  if (row.frame_register >= kRegisters) return false;
  *frame = registers.value[row.frame_register] + static_cast<Word>(row.frame_offset);
  return true;
}

bool step_by(const Row& row, Registers* registers) {
  Word frame = 0;
  if (!frame_of(row, *registers, &frame)) return false;
  Registers caller = *registers;
  caller.value[kRsp] = frame;
  for (int i = 0; i < kRegisters; ++i) {
    const Place& place = row.places[i];
    Word where = 0;
    switch (place.kind) {
      case Place::Same:
        break;
      case Place::AtOffset:
        caller.value[i] = load(frame + static_cast<Word>(place.offset));
        break;
      case Place::IsOffset:
        caller.value[i] = frame + static_cast<Word>(place.offset);
        break;
      case Place::AtExpression:
        if (!evaluate(place.expression, *registers, true, frame, &where)) return false;
        caller.value[i] = load(where);
        break;
      case Place::IsExpression:
        if (!evaluate(place.expression, *registers, true, frame, &where)) return false;
        caller.value[i] = where;
        break;
      case Place::InRegister:
        if (place.offset < 0 || place.offset >= kRegisters) return false;
        caller.value[i] = registers->value[place.offset];
        break;
      case Place::Lost:
        if (i == kPc) return false;
        break;
    }
  }
  *registers = caller;
  return true;
}

}  // namespace jd::task

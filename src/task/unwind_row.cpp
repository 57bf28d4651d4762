#include "task/unwind_row.hpp"

namespace jd::task {
namespace {

// Runs one of the table's programs up to the address; *returns_oddly is set if any row of it, up to
// the end, saves rax or rdx.
bool run_program(const Byte* from, const Byte* to, const Entry& entry, Word address,
                 const Row& initial, Row* result, bool* returns_oddly) {
  constexpr int kDepth = 8;
  Row stack[kDepth];
  int depth = 0;
  Row row = *result;
  Word location = entry.low;
  bool passed = false;
  const auto end_row = [&](Word high) {
    *result = row;
    result->low = location;
    result->high = high;
  };
  const auto advance = [&](Word by) {
    const Word next = location + by * entry.code_factor;
    if (next > address && !passed) {
      passed = true;
      end_row(next);
    }
    location = next;
  };
  const auto place = [&](Word number, Place where) {
    if ((number == kRax || number == kRdx) && where.kind != Place::Same) *returns_oddly = true;
    if (number < kRegisters) row.places[number] = where;
  };
  Reader in(from);
  while (in.at() < to) {
    const Byte operation = in.read<Byte>();
    const Byte low = operation & 0x3f;
    switch (operation >> 6) {
      case 1:  // advance_loc
        advance(low);
        continue;
      case 2:  // offset
        place(low,
              {Place::AtOffset, static_cast<std::int64_t>(in.uleb()) * entry.data_factor, nullptr});
        continue;
      case 3:  // restore
        if (low < kRegisters) row.places[low] = initial.places[low];
        continue;
      default:
        break;
    }
    switch (operation) {
      case 0x00:  // nop
        break;
      case 0x02:  // advance_loc1
        advance(in.read<std::uint8_t>());
        break;
      case 0x03:  // advance_loc2
        advance(in.read<std::uint16_t>());
        break;
      case 0x04:  // advance_loc4
        advance(in.read<std::uint32_t>());
        break;
      case 0x05: {  // offset_extended
        const Word number = in.uleb();
        place(number,
              {Place::AtOffset, static_cast<std::int64_t>(in.uleb()) * entry.data_factor, nullptr});
        break;
      }
      case 0x06: {  // restore_extended
        const Word number = in.uleb();
        if (number < kRegisters) row.places[number] = initial.places[number];
        break;
      }
      case 0x07:  // undefined
        place(in.uleb(), {Place::Lost, 0, nullptr});
        break;
      case 0x08: {  // same_value
        const Word number = in.uleb();
        if (number < kRegisters) row.places[number] = {};
        break;
      }
      case 0x09: {  // register
        const Word number = in.uleb();
        place(number, {Place::InRegister, static_cast<std::int64_t>(in.uleb()), nullptr});
        break;
      }
      case 0x0a:  // remember_state
        if (depth == kDepth) return false;
        stack[depth++] = row;
        break;
      case 0x0b:  // restore_state
        if (depth == 0) return false;
        row = stack[--depth];
        break;
      case 0x0c:  // def_cfa
        row.by_expression = false;
        row.frame_register = in.uleb();
        row.frame_offset = static_cast<std::int64_t>(in.uleb());
        break;
      case 0x0d:  // def_cfa_register
        row.by_expression = false;
        row.frame_register = in.uleb();
        break;
      case 0x0e:  // def_cfa_offset
        row.frame_offset = static_cast<std::int64_t>(in.uleb());
        break;
      case 0x0f: {  // def_cfa_expression
        row.by_expression = true;
        row.frame_expression = in.at();
        const Word size = in.uleb();
        in.skip(size);
        break;
      }
      case 0x10:    // expression
      case 0x16: {  // val_expression
        const Word number = in.uleb();
        place(number, {operation == 0x10 ? Place::AtExpression : Place::IsExpression, 0, in.at()});
        const Word size = in.uleb();
        in.skip(size);
        break;
      }
      case 0x11: {  // offset_extended_sf
        const Word number = in.uleb();
        place(number, {Place::AtOffset, in.sleb() * entry.data_factor, nullptr});
        break;
      }
      case 0x12:  // def_cfa_sf
        row.by_expression = false;
        row.frame_register = in.uleb();
        row.frame_offset = in.sleb() * entry.data_factor;
        break;
      case 0x13:  // def_cfa_offset_sf
        row.frame_offset = in.sleb() * entry.data_factor;
        break;
      case 0x14: {  // val_offset
        const Word number = in.uleb();
        place(number,
              {Place::IsOffset, static_cast<std::int64_t>(in.uleb()) * entry.data_factor, nullptr});
        break;
      }
      case 0x2e:  // GNU_args_size
        in.uleb();
        break;
      default:
        return false;
    }
  }
  if (!passed) end_row(entry.high);
  return true;
}

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
  Row initial;
  // The common part's program has no locations.
  if (!run_program(entry.common_program, entry.common_end, entry, ~Word{0}, initial, &initial,
                   &described->returns_oddly)) {
    return false;
  }
  described->row = initial;
  return run_program(entry.program, entry.end, entry, address, initial, &described->row,
                     &described->returns_oddly);
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

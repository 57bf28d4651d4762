#include "task/unwind.hpp"

#include "jackdaw/task.h"
#include "os/memory.hpp"
#include "os/modules.hpp"
#include "task/unwind_table.hpp"

namespace jd::task {
namespace {

constexpr Byte kSavedRegisters[Rule::kCalleeSaved] = {kRbx, kRbp, kR12, 13, 14, kR15};

// Where the caller's value of a register is.
struct Place {
  enum Kind : Byte { Same, AtOffset, AtExpression, IsOffset, IsExpression, InRegister, Lost };
  Kind kind = Same;
  std::int64_t offset = 0;
  const Byte* expression = nullptr;
};

// One row of the table: how to come from a frame to its caller.
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

// Runs one of the table's programs up to the address. *returns_oddly is set if any row of it, up to
// the end, saves rax or rdx: only functions that __builtin_eh_return leaves do, and what they have
// saved may be another frame's registers already.
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

bool read_row(Word address, Entry* entry, Row* row, bool* returns_oddly) {
  if (!read_entry(address, entry)) return false;
  Row initial;
  // The common part's program has no locations.
  if (!run_program(entry->common_program, entry->common_end, *entry, ~Word{0}, initial, &initial,
                   returns_oddly)) {
    return false;
  }
  *row = initial;
  return run_program(entry->program, entry->end, *entry, address, initial, row, returns_oddly);
}

Word load(Word address) {
  Word value = 0;
  __builtin_memcpy(&value, base::as_pointer(address), sizeof value);
  return value;
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

bool frame_of(const Row& row, const Registers& registers, Word* frame) {
  if (row.by_expression) return evaluate(row.frame_expression, registers, false, 0, frame);
  if (row.frame_register >= kRegisters) return false;
  *frame = registers.value[row.frame_register] + static_cast<Word>(row.frame_offset);
  return true;
}

constexpr Byte kNoOperation[4] = {0x0f, 0x1f, 0x84, 0x00};
constexpr std::uint32_t kMark = JD_TASK_SITE;

// Is the return address behind a call of a fork's? Pre: the bytes there are the function's own.
bool has_mark(Word return_address) {
  const auto* code = bytes_at(return_address);
  return __builtin_memcmp(code, kNoOperation, sizeof kNoOperation) == 0 &&
         __builtin_memcmp(code + sizeof kNoOperation, &kMark, sizeof kMark) == 0;
}

// GCC describes a frame that it has aligned anew by what rbp points to, as an expression for the
// frame's address and for each saved register. In the prologue's first instructions and the
// epilogue's last, rbp is the caller's, and only the former expression is replaced.
bool leans_on_callers_rbp(const Row& row) {
  if (row.by_expression || row.frame_register == kRbp) return false;
  for (const Place& place : row.places) {
    if (place.kind == Place::AtExpression || place.kind == Place::IsExpression) return true;
  }
  return false;
}

// What the table says of the address, and of which others it says the same.
void fill(Word address, Rule* rule, Word* low, Word* high) {
  *low = address;
  *high = address + 1;
  Rule fresh;
  fresh.address = address;
  fresh.kind = Rule::None;
  fresh.stays = os::stays_loaded(base::as_pointer(address));
  Entry entry;
  Row row;
  bool returns_oddly = false;
  const bool is_there = read_row(address, &entry, &row, &returns_oddly);
  fresh.returns_oddly = returns_oddly;
  if (is_there && row.places[kPc].kind != Place::Lost) {
    *low = row.low;
    *high = row.high;
    fresh.can_be_site = address + 1 + sizeof kNoOperation + sizeof kMark <= entry.high;
    fresh.is_site = fresh.can_be_site && has_mark(address + 1);
    fresh.half_restored = leans_on_callers_rbp(row);
    constexpr std::int64_t kReturnAddress = -static_cast<std::int64_t>(sizeof(Word));
    const Place& pc = row.places[kPc];
    bool simple = !row.by_expression && row.frame_register < kRegisters &&
                  row.frame_offset == static_cast<std::int32_t>(row.frame_offset) &&
                  pc.kind == Place::AtOffset && pc.offset == kReturnAddress;
    for (int i = 0; i < kRegisters && simple; ++i) {
      if (i == kPc) continue;
      int index = 0;
      while (index < Rule::kCalleeSaved && kSavedRegisters[index] != i) ++index;
      const Place& place = row.places[i];
      if (index == Rule::kCalleeSaved) {
        // What a callee may change says nothing about the caller.
        simple = place.kind == Place::Same || i != kRsp;
      } else if (place.kind == Place::Same) {
        fresh.saved[index] = Rule::kSame;
      } else if (place.kind == Place::AtOffset && place.offset > INT16_MIN &&
                 place.offset <= INT16_MAX) {
        fresh.saved[index] = static_cast<std::int16_t>(place.offset);
      } else {
        simple = false;
      }
    }
    fresh.frame_register = static_cast<std::uint8_t>(row.frame_register);
    fresh.frame_offset = static_cast<std::int32_t>(row.frame_offset);
    fresh.kind = simple ? Rule::Simple : Rule::Complex;
  }
  *rule = fresh;
}

}  // namespace

Rule read_rule(Word address) {
  Rule rule;
  Word low = 0;
  Word high = 0;
  fill(address, &rule, &low, &high);
  return rule;
}

bool Unwinder::prepare() {
  if (cache_ != nullptr) return true;
  auto* memory = static_cast<char*>(os::map(kEntries * (sizeof(Rule) + sizeof(Word))));
  if (memory == nullptr) return false;
  cache_ = static_cast<Rule*>(static_cast<void*>(memory));
  digests_ = static_cast<Word*>(static_cast<void*>(memory + kEntries * sizeof(Rule)));
  return true;
}

void Unwinder::forget() {
  for (std::size_t i = 0; cache_ != nullptr && i < kEntries; ++i) cache_[i] = Rule{};
  for (Span& span : spans_) span = Span{};
}

void Unwinder::begin_walk() {
  // Once in four thousand million times.
  if (++walk_ == 0) forget();
}

const Rule* Unwinder::rule_for(const Registers& registers, bool exactly) {
  const Word pc = registers.value[kPc];
  const Rule* rule = exactly ? rule_at_interruption(pc) : rule_at_return(pc - 1);
  return rule->kind == Rule::None ? nullptr : rule;
}

bool Unwinder::holds(Rule* rule, Word digest, Word address) const {
  if (rule->kind == Rule::Unknown) return false;
  if (rule->walk == walk_) return true;
  if (!rule->stays) {
    if (digest_entry(address) != digest) return false;
    // The table says nothing about the code itself.
    rule->is_site = rule->can_be_site && has_mark(rule->address + 1);
  }
  rule->walk = walk_;
  return true;
}

const Rule* Unwinder::rule_at_interruption(Word address) {
  for (Span& span : spans_) {
    if (address >= span.low && address < span.high && holds(&span.rule, span.digest, address)) {
      return &span.rule;
    }
  }
  Span* span = &spans_[next_span_];
  next_span_ = (next_span_ + 1) % kSpans;
  fill(address, &span->rule, &span->low, &span->high);
  span->digest = span->rule.stays ? 0 : digest_entry(address);
  span->rule.walk = walk_;
  return &span->rule;
}

const Rule* Unwinder::rule_at_return(Word address) {
  std::size_t place = (address * base::kGolden) >> (64 - kEntryBits);
  // Two addresses of one walk that share a place would drive each other out in each walk.
  if (cache_[place].address != address && cache_[place].kind != Rule::Unknown) place ^= 1;
  Rule* rule = &cache_[place];
  if (rule->address != address || !holds(rule, digests_[place], address)) {
    Word low = 0;
    Word high = 0;
    fill(address, rule, &low, &high);
    digests_[place] = rule->stays ? 0 : digest_entry(address);
    rule->walk = walk_;
  }
  return rule;
}

Word Unwinder::frame_address(const Rule& rule, const Registers& registers) {
  if (rule.kind == Rule::Simple) {
    return registers.value[rule.frame_register] +
           static_cast<Word>(std::int64_t{rule.frame_offset});
  }
  Entry entry;
  Row row;
  bool odd = false;
  Word frame = 0;
  if (!read_row(rule.address, &entry, &row, &odd) || !frame_of(row, registers, &frame)) return 0;
  return frame;
}

bool Unwinder::step(const Rule& rule, Registers* registers) {
  if (__builtin_expect(rule.kind == Rule::Simple, 1)) {
    const Word frame = frame_address(rule, *registers);
    for (int i = 0; i < Rule::kCalleeSaved; ++i) {
      if (rule.saved[i] == Rule::kSame) continue;
      registers->value[kSavedRegisters[i]] =
          load(frame + static_cast<Word>(std::int64_t{rule.saved[i]}));
    }
    registers->value[kPc] = load(frame - sizeof(Word));
    registers->value[kRsp] = frame;
    return true;
  }
  Entry entry;
  Row row;
  bool odd = false;
  Word frame = 0;
  if (!read_row(rule.address, &entry, &row, &odd) || !frame_of(row, *registers, &frame)) {
    return false;
  }
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

bool unwinding_is_possible() {
  return os::find_unwind_table(reinterpret_cast<const void*>(&unwinding_is_possible)) != nullptr;
}

}  // namespace jd::task

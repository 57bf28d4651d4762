#include "task/unwind.hpp"

#include "jackdaw/task.h"
#include "os/memory.hpp"
#include "os/modules.hpp"

namespace jd::task {
namespace {

using Byte = std::uint8_t;

constexpr Byte kSavedRegisters[Rule::kCalleeSaved] = {kRbx, kRbp, kR12, 13, 14, kR15};

// Encodings of pointers in .eh_frame (DW_EH_PE_*).
constexpr Byte kAbsolute = 0x00, kUleb = 0x01, kUnsigned2 = 0x02, kUnsigned4 = 0x03,
               kUnsigned8 = 0x04, kSleb = 0x09, kSigned2 = 0x0a, kSigned4 = 0x0b, kSigned8 = 0x0c;
constexpr Byte kRelativeToHere = 0x10, kRelativeToData = 0x30, kIndirect = 0x80, kOmitted = 0xff;

const Byte* bytes_at(Word address) { return reinterpret_cast<const Byte*>(address); }

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

// The length field of a record; *end is where the record ends.
bool read_length(Reader* reader, const Byte** end) {
  constexpr std::uint32_t kLong = 0xffffffff;
  Word length = reader->read<std::uint32_t>();
  if (length == 0) return false;
  if (length == kLong) length = reader->read<std::uint64_t>();
  *end = reader->at() + length;
  return true;
}

// Finds the record of the function that contains the address, in the sorted table that linkers put
// beside .eh_frame.
const Byte* find_record(Word address, Word header) {
  constexpr Byte kVersion = 1;
  Reader reader(bytes_at(header));
  if (reader.read<Byte>() != kVersion) return nullptr;
  const Byte pointer_encoding = reader.read<Byte>();
  const Byte count_encoding = reader.read<Byte>();
  if (reader.read<Byte>() != (kRelativeToData | kSigned4)) return nullptr;
  Word ignored = 0;
  Word count = 0;
  if (!reader.pointer(pointer_encoding, header, &ignored)) return nullptr;
  if (!reader.pointer(count_encoding, header, &count) || count == 0) return nullptr;
  struct Row {
    std::int32_t low;
    std::int32_t record;
  };
  const Byte* table = reader.at();
  const auto row = [table](Word index) {
    Row r;
    __builtin_memcpy(&r, table + index * sizeof(Row), sizeof r);
    return r;
  };
  const auto wanted = static_cast<std::int64_t>(address - header);
  if (wanted < row(0).low) return nullptr;
  Word low = 0;
  for (Word high = count; high - low > 1;) {
    const Word middle = low + (high - low) / 2;
    (row(middle).low <= wanted ? low : high) = middle;
  }
  return bytes_at(header + static_cast<Word>(std::int64_t{row(low).record}));
}

bool read_entry(Word address, Entry* entry) {
  const Word header = base::as_word(os::find_unwind_table(base::as_pointer(address)));
  if (header == 0) return false;
  const Byte* record = find_record(address, header);
  if (record == nullptr) return false;

  Reader function(record);
  if (!read_length(&function, &entry->end)) return false;
  const Byte* here = function.at();
  const auto back = function.read<std::uint32_t>();
  Reader common(here - back);
  if (!read_length(&common, &entry->common_end)) return false;
  common.skip(sizeof(std::uint32_t));
  const Byte version = common.read<Byte>();
  const auto* augmentation = reinterpret_cast<const char*>(common.at());
  while (common.read<Byte>() != 0) {
  }
  entry->code_factor = common.uleb();
  entry->data_factor = common.sleb();
  if (version == 1) {
    common.skip(1);
  } else {
    common.uleb();
  }
  Byte encoding = kAbsolute;
  bool sized = false;
  const Byte* program = nullptr;
  for (const char* letter = augmentation; *letter != '\0'; ++letter) {
    Word ignored = 0;
    switch (*letter) {
      case 'z': {
        const Word size = common.uleb();
        program = common.at() + size;
        sized = true;
        break;
      }
      case 'R':
        encoding = common.read<Byte>();
        break;
      case 'P': {
        const Byte personality = common.read<Byte>();
        if (!common.pointer(personality & ~kIndirect, header, &ignored)) return false;
        break;
      }
      case 'L':
        common.skip(1);
        break;
      case 'B':
        break;
      // 'S', a signal's frame: what was interrupted is not at a call, and not ours to change.
      default:
        return false;
    }
  }
  entry->common_program = sized ? program : common.at();

  Word length = 0;
  if (!function.pointer(encoding, header, &entry->low)) return false;
  if (!function.pointer(encoding & 0x0f, header, &length)) return false;
  entry->high = entry->low + length;
  if (address < entry->low || address >= entry->high) return false;
  if (sized) {
    const Word size = function.uleb();
    function.skip(size);
  }
  entry->program = function.at();
  return true;
}

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
};

// Runs one of the table's programs up to the address. *returns_oddly is set if any row of it, up to
// the end, saves rax or rdx: only functions that __builtin_eh_return leaves do, and in their last
// instructions the table is wrong.
bool run_program(const Byte* from, const Byte* to, const Entry& entry, Word address,
                 const Row& initial, Row* result, bool* returns_oddly) {
  constexpr int kDepth = 8;
  Row stack[kDepth];
  int depth = 0;
  Row row = *result;
  Word location = entry.low;
  bool passed = false;
  const auto advance = [&](Word by) {
    location += by * entry.code_factor;
    if (location > address && !passed) {
      passed = true;
      *result = row;
    }
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
  if (!passed) *result = row;
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
    if (operation >= 0x30 && operation <= 0x4f) {  // lit0 to lit31
      value = operation - 0x30u;
    } else if (operation >= 0x70 && operation <= 0x8f) {  // breg0 to breg31
      const std::int64_t offset = in.sleb();
      const unsigned number = operation - 0x70u;
      if (number >= kRegisters) return false;
      value = registers.value[number] + static_cast<Word>(offset);
    } else {
      switch (operation) {
        case 0x08:
          value = in.read<std::uint8_t>();
          break;
        case 0x09:
          value = static_cast<Word>(std::int64_t{in.read<std::int8_t>()});
          break;
        case 0x0a:
          value = in.read<std::uint16_t>();
          break;
        case 0x0b:
          value = static_cast<Word>(std::int64_t{in.read<std::int16_t>()});
          break;
        case 0x0c:
          value = in.read<std::uint32_t>();
          break;
        case 0x0d:
          value = static_cast<Word>(std::int64_t{in.read<std::int32_t>()});
          break;
        case 0x0e:
        case 0x0f:
          value = in.read<std::uint64_t>();
          break;
        case 0x10:
          value = in.uleb();
          break;
        case 0x11:
          value = static_cast<Word>(in.sleb());
          break;
        case 0x06:  // deref
          if (depth < 1) return false;
          stack[depth - 1] = load(stack[depth - 1]);
          continue;
        case 0x23:  // plus_uconst
          if (depth < 1) return false;
          stack[depth - 1] += in.uleb();
          continue;
        case 0x12:  // dup
          if (depth < 1) return false;
          value = stack[depth - 1];
          break;
        case 0x1a:    // and
        case 0x1c:    // minus
        case 0x21:    // or
        case 0x22:    // plus
        case 0x24:    // shl
        case 0x25:    // shr
        case 0x29:    // eq
        case 0x2a: {  // ge
          if (depth < 2) return false;
          const Word right = stack[--depth];
          Word& left = stack[depth - 1];
          if (operation == 0x1a) left &= right;
          if (operation == 0x1c) left -= right;
          if (operation == 0x21) left |= right;
          if (operation == 0x22) left += right;
          if (operation == 0x24) left = right < 64 ? left << right : 0;
          if (operation == 0x25) left = right < 64 ? left >> right : 0;
          if (operation == 0x29) left = left == right ? 1 : 0;
          if (operation == 0x2a) {
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

// Is the return address behind a call of a fork's? The bytes there must be the function's own.
bool is_fork_site(Word return_address, const Entry& entry) {
  constexpr Byte kNoOperation[4] = {0x0f, 0x1f, 0x84, 0x00};
  constexpr std::uint32_t kMark = JD_TASK_SITE;
  if (return_address + sizeof kNoOperation + sizeof kMark > entry.high) return false;
  const auto* code = bytes_at(return_address);
  return __builtin_memcmp(code, kNoOperation, sizeof kNoOperation) == 0 &&
         __builtin_memcmp(code + sizeof kNoOperation, &kMark, sizeof kMark) == 0;
}

void fill(Word address, Rule* rule) {
  Rule fresh;
  fresh.address = address;
  fresh.kind = Rule::None;
  Entry entry;
  Row row;
  if (read_row(address, &entry, &row, &fresh.returns_oddly) &&
      row.places[kPc].kind != Place::Lost) {
    fresh.is_site = is_fork_site(address + 1, entry);
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

bool Unwinder::prepare() {
  if (cache_ == nullptr) cache_ = static_cast<Rule*>(os::map(kEntries * sizeof(Rule)));
  return cache_ != nullptr;
}

void Unwinder::forget() {
  for (std::size_t i = 0; i < kEntries; ++i) cache_[i] = Rule{};
}

const Rule* Unwinder::rule_for(const Registers& registers, bool exactly) {
  constexpr Word kGolden = 0x9e3779b97f4a7c15u;
  const Word address = registers.value[kPc] - (exactly ? 0 : 1);
  Rule* rule = &cache_[(address * kGolden) >> (64 - 12)];
  static_assert(kEntries == std::size_t{1} << 12);
  if (rule->address != address || rule->kind == Rule::Unknown) fill(address, rule);
  return rule->kind == Rule::None ? nullptr : rule;
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

#include "task/unwind.hpp"

#include "base/bits.hpp"
#include "jackdaw/task.h"
#include "os/memory.hpp"
#include "os/modules.hpp"
#include "task/unwind_row.hpp"
#include "task/unwind_table.hpp"

namespace jd::task {
namespace {

constexpr Byte kSavedRegisters[Rule::kCalleeSaved] = {kRbx, kRbp, kR12, 13, 14, kR15};

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
  Described described;
  const bool is_there = describe(address, &described);
  fresh.returns_oddly = described.returns_oddly;
  const Row& row = described.row;
  if (is_there && row.places[kPc].kind != Place::Lost) {
    *low = row.low;
    *high = row.high;
    fresh.can_be_site = address + 1 + sizeof kNoOperation + sizeof kMark <= described.function_end;
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
  auto* memory = static_cast<char*>(
      os::map(base::align_up(kEntries * (sizeof(Rule) + sizeof(Word)), os::page_size())));
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
  Described complex;
  Word frame = 0;
  if (!describe(rule.address, &complex) || !frame_of(complex.row, registers, &frame)) return 0;
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
  Described complex;
  return describe(rule.address, &complex) && step_by(complex.row, registers);
}

bool unwinding_is_possible() {
  return os::find_unwind_table(reinterpret_cast<const void*>(&unwinding_is_possible)) != nullptr;
}

}  // namespace jd::task

// Walking a stack by the unwind tables (.eh_frame), from any registers: those of a signal, or those
// of a frame that an earlier walk has reached.
//
// Async-signal-safe: no locks (the loader's table of objects is read without one), no allocation.
// Each worker has its own Unwinder, whose cache remembers what the tables say of an address.
// Another library may be loaded by now where one was, and nobody can be asked without the loader's
// lock: so what is remembered is compared with the tables once in each walk, unless it is of code
// that stays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bits.hpp"
#include "task/registers.hpp"

namespace jd::task {

// What the tables say of one address.
struct Rule {
  enum Kind : std::uint8_t { Unknown, Simple, Complex, None };
  static constexpr std::int16_t kSame = INT16_MIN;
  static constexpr int kCalleeSaved = 6;

  Word address = 0;
  std::int32_t frame_offset = 0;          // Simple: the frame's address is this register plus this
  std::uint32_t walk = 0;                 // the last one that has found it to be true
  std::int16_t saved[kCalleeSaved] = {};  // Simple: offsets from the frame's address, or kSame
  std::uint8_t frame_register = 0;
  Kind kind = Unknown;
  bool is_site : 1 = false;        // a return address behind it is a fork's
  bool returns_oddly : 1 = false;  // part of a function that writes others over its saved registers
  bool half_restored : 1 = false;  // in code that is interrupted here, saved ones may be wrong
  bool can_be_site : 1 = false;    // the function is long enough for a fork's mark behind it
  bool stays : 1 = false;          // of code that is never unloaded
};
static_assert(sizeof(Rule) == 32, "two a cache line: walks find them cold");

// What the tables say of an address: of an interrupted instruction, or of the last byte of a call.
Rule read_rule(Word address);

class Unwinder {
 public:
  // The cache's memory. False if there is none.
  bool prepare();
  // Forgets all but that memory: the child of a fork() may have found a rule half written.
  void forget();
  // Before a walk: code that it comes to stays until it ends, since it is on the stack.
  void begin_walk();

  // What is known about the frame at `registers`, or null. `exactly`: the pc is that of the next
  // instruction, not a return address.
  const Rule* rule_for(const Registers& registers, bool exactly);
  // The frame's address: the value of rsp in the caller when this frame has returned. 0 if unknown.
  static Word frame_address(const Rule& rule, const Registers& registers);
  // Makes the registers those of the caller. False if that is not possible.
  static bool step(const Rule& rule, Registers* registers);

 private:
  // A rule, and the addresses that have the same, but for is_site: one row of a function's table.
  struct Span {
    Word low = 0;
    Word high = 0;
    Rule rule;
    Word digest = 0;
  };

  // Does a rule, made when the tables had this digest, still hold? It may be looked up at another
  // address of its row.
  bool holds(Rule* rule, Word digest, Word address) const;
  const Rule* rule_at_return(Word address);
  const Rule* rule_at_interruption(Word address);

  static constexpr unsigned kEntryBits = 8;  // 10 KiB a worker; a walk has some ten addresses
  static constexpr std::size_t kEntries = std::size_t{1} << kEntryBits;
  Rule* cache_ = nullptr;
  Word* digests_ = nullptr;  // of the tables that the cache's rules were made from
  std::uint32_t walk_ = 0;
  // Of interrupted code, whose addresses hardly ever come again, but whose rows do: the newest.
  static constexpr unsigned kSpans = 8;
  Span spans_[kSpans];
  unsigned next_span_ = 0;
};

// Can this process's stacks be walked at all?
bool unwinding_is_possible();

}  // namespace jd::task

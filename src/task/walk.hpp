// Finding forks on a stack: task.md, "The steal", steps 4 and 5. Async-signal-safe.
#pragma once

#include <cstdint>

#include "task/stacks.hpp"
#include "task/unwind.hpp"
#include "task/worker.hpp"

namespace jd::task {

inline bool is_in(const Stack& stack, Word address) {
  return address >= base::as_word(stack.low) && address < base::as_word(stack.high);
}

// Walks a stack from its new end to its old, from one fork to the next.
class Walk {
 public:
  // `exactly`: the registers are those of an interrupted instruction, not of a call.
  Walk(Unwinder* unwinder, const Stack& stack, const Registers& registers, bool exactly)
      : unwinder_(unwinder), stack_(&stack), registers_(registers), exactly_(exactly) {
    unwinder->begin_walk();
  }

  enum class Result : std::uint8_t { Fork, End, Elsewhere };

  // The next fork that is not behind a barrier: then slot() holds its return address and task() is
  // it. End: there is none, or the tables do not lead on. Elsewhere: this is no place to look from,
  // but a later one may be.
  Result next();

  void** slot() const { return static_cast<void**>(static_cast<void*>(base::as_pointer(slot_))); }
  jd_task* task() const {
    return static_cast<jd_task*>(static_cast<void*>(base::as_pointer(registers_.value[kR12])));
  }
  // To go on later from the fork that next() has found.
  const Registers& registers() const { return registers_; }

 private:
  Unwinder* unwinder_;
  const Stack* stack_;
  Registers registers_;
  bool exactly_;
  Word slot_ = 0;         // where the present frame's child has its return address
  bool reported_ = true;  // the present frame's fork is told already
};

}  // namespace jd::task

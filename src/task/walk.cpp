#include "task/walk.hpp"

#include "task/machine.hpp"
#include "task/switch.hpp"

#if JD_TASK_STACKS

namespace jd::task {

static_assert(offsetof(jd_task, resume) == 8, "x86_64.S knows it");

namespace {

bool is_runtime_code(Word pc) {
  return pc >= base::as_word(jd_task_code_begin) && pc < base::as_word(jd_task_code_end);
}

bool is_barrier(Word slot) {
  return *static_cast<const void* const*>(static_cast<void*>(base::as_pointer(slot))) ==
         jd_task_barrier;
}

}  // namespace

Walk::Result Walk::next() {
  for (;;) {
    if (is_runtime_code(registers_.value[kPc])) return Result::Elsewhere;
    const Rule* rule = unwinder_->rule_for(registers_, exactly_);
    if (rule == nullptr) return exactly_ ? Result::Elsewhere : Result::End;
    // The C++ unwinder writes the registers of the frame it is about to go on in over those that
    // its own callers want back: what the table says of it leads past the frames between.
    if (rule->returns_oddly || (exactly_ && rule->half_restored)) return Result::Elsewhere;
    if (rule->is_site && slot_ != 0 && !reported_) {
      reported_ = true;
      const Word task = registers_.value[kR12];
      if (task > slot_ && task % alignof(jd_task) == 0 && is_in(*stack_, task)) {
        return Result::Fork;
      }
    }
    const Word frame = Unwinder::frame_address(*rule, registers_);
    if (frame % sizeof(Word) != 0 || frame <= registers_.value[kRsp] ||
        !is_in(*stack_, frame - 1)) {
      return Result::End;
    }
    slot_ = frame - sizeof(Word);
    reported_ = false;
    if (is_barrier(slot_) || !Unwinder::step(*rule, &registers_)) return Result::End;
    exactly_ = false;
  }
}

}  // namespace jd::task

#endif

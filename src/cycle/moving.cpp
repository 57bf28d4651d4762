#include "cycle/moving.hpp"

#include "copy/evacuate.hpp"
#include "copy/holders.hpp"
#include "copy/mcc.hpp"
#include "copy/policy.hpp"
#include "copy/roles.hpp"
#include "cycle/finalization.hpp"
#include "cycle/growth.hpp"
#include "cycle/roots.hpp"
#include "cycle/settings.hpp"
#include "os/cpu.hpp"

namespace jd::cycle {
namespace {

using base::Word;

// Under the heap's lock.
copy::Wish wish = copy::Wish::Automatic;

// Calls visit(word, past_end) for each ambiguous word of the heap's. Not for what the program
// declared as precise roots, which may lie in static data.
template <class Visit>
class AmbiguousRoots final : public world::RootVisitor {
 public:
  explicit AmbiguousRoots(Visit visit) : visit_(visit) {}

 private:
  void visit_range(const void* low, const void* high) override { look(low, high, false); }
  // As in marking.
  void visit_stack(const void* low, const void* high) override {
    look(low, high, ends_hold_objects());
  }
  [[gnu::no_sanitize_address]] void look(const void* low, const void* high, bool past_end) {
    const Word begin = base::align_up(base::as_word(low), sizeof(Word));
    const Word end = base::align_down(base::as_word(high), sizeof(Word));
    for (Word at = begin; at < end; at += sizeof(Word)) {
      const Word word = *reinterpret_cast<const Word*>(at);
      // The last object of the heap ends where the heap does.
      if (!heap::in_heap(word) && !heap::in_heap(word - 1)) continue;
      if (!copy::is_precise_root(at)) visit_(word, past_end);
    }
  }
  Visit visit_;
};

std::uint64_t lap(std::uint64_t* since) {
  const std::uint64_t now = os::now_ns();
  const std::uint64_t took = now - *since;
  *since = now;
  return took;
}

}  // namespace

void wish_to_compact() { wish = copy::Wish::Compact; }

bool move_objects(char* stack_top) {
  if (!copy::in_use || copy::policy.mcc) return false;
  std::uint64_t at = os::now_ns();
  const bool moving = copy::choose_sources(wish, {commit_for_copies, may_grow});
  wish = copy::Wish::Automatic;
  if (!moving) return false;
  copy::counts.pinned_last = 0;
  AmbiguousRoots pinning(copy::pin_meaning_of);
  visit_ambiguous_roots(&pinning, stack_top);
  visit_immovable([](Word address) { copy::pin_meaning_of(address, false); });
  copy::pin_from_objects();
  copy::counts.pin_ns += lap(&at);
  copy::move_objects();
  copy::counts.move_ns += lap(&at);
  copy::fix_words();
  rekey_finalizers(copy::moved);
  copy::counts.fix_ns += lap(&at);
  return true;
}

bool copy_everything(char* stack_top, std::size_t* root_bytes) {
  namespace mcc = copy::mcc;
  std::uint64_t at = os::now_ns();
  if (!mcc::begin(commit_quietly)) return false;
  AmbiguousRoots promoting(mcc::promote);
  visit_ambiguous_roots(&promoting, stack_top);
  visit_immovable([](Word address) { mcc::promote(address, false); });
  mcc::promote_from_objects();
  mcc::leave_holes();
  *root_bytes = promoting.bytes();
  copy::counts.pin_ns += lap(&at);
  AmbiguousRoots reaching(mcc::reach);
  visit_ambiguous_roots(&reaching, stack_top);
  copy::visit_program_pins([](Word memory) { mcc::reach(memory, false); });
  copy::visit_precise_roots(mcc::reach_slot);
  mcc::traverse();
  copy::counts.move_ns += lap(&at);
  rekey_finalizers(mcc::moved);
  visit_table(FinalizationTable::Finalizers,
              [](void* object, void**) { mcc::repair_from(base::as_word(object)); });
  mcc::repair_from_disclaimable();
  copy::counts.fix_ns += lap(&at);
  return true;
}

}  // namespace jd::cycle

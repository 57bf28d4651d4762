#include "cycle/marking.hpp"

#include "alloc/totals.hpp"
#include "cycle/measured.hpp"
#include "cycle/roots.hpp"
#include "cycle/settings.hpp"
#include "mark/choice.hpp"
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"

namespace jd::cycle {
namespace {

using mark::marker;
using mark::MarkStrategy;

class MarkRoots final : public world::RootVisitor {
 public:
  // When the first stack came: all come one after another, and little behind them
  // (visit_ambiguous_roots). 0: none did.
  std::uint64_t stacks_began = 0;

 private:
  void visit_range(const void* low, const void* high) override { marker.scan_roots(low, high); }
  void visit_stack(const void* low, const void* high) override {
    if (stacks_began == 0) stacks_began = os::now_ns();
    marker.scan_stack(low, high, ends_hold_objects());
  }
};

// By what collections before this one took; the first if JACKDAW_MARK_STRATEGY leaves it open.
// Under the lock.
constinit mark::StrategyChoices strategy_choices;
constinit mark::CompanyChoices company_choices;

MarkStrategy strategy_now() {
  const auto strategy = static_cast<MarkStrategy>(options.mark_strategy);
  if (strategy != MarkStrategy::Measured) return strategy;
  return strategy_choices.next(measured.live_objects, measured.live_bytes,
                               alloc::totals().allocated_since_gc);
}

}  // namespace

// At most one of the two is a trial.
void choose_how_to_mark(Marking marking) {
  marker.set_stop_question(nullptr);
  if (marking == Marking::PartialOrInSteps) {
    const auto strategy = static_cast<MarkStrategy>(options.mark_strategy);
    const bool measured = strategy == MarkStrategy::Measured;
    marker.set_strategy(measured ? MarkStrategy::Ring : strategy);
    mark::team.begin_collection(false);
    return;
  }
  marker.set_strategy(strategy_now());
  mark::team.begin_collection(mark::team.is_measured() &&
                              company_choices.next(measured.live_objects, measured.mark_last,
                                                   mark::team.most_markers(),
                                                   !strategy_choices.is_trial()));
}

void note_how_marked(std::size_t objects, Reaching reaching) {
  if (!reaching.had_choice || !company_choices.is_trial()) {
    strategy_choices.note(objects, reaching.ns);
  }
  if (reaching.had_choice && !strategy_choices.is_trial()) {
    company_choices.note(objects, reaching.ns);
  }
}

void queue_roots(char* stack_top) {
  MarkRoots roots;
  marker.mark_uncollectable();
  const std::uint64_t began = os::now_ns();
  visit_all_roots(&roots, stack_top);
  const std::uint64_t ended = os::now_ns();
  measured.root_total += ended - began;
  if (roots.stacks_began != 0) measured.stack_total += ended - roots.stacks_began;
  measured.root_bytes = roots.bytes();
}

}  // namespace jd::cycle

// For how long a marker stays in the loop (loop.cpp): until all is marked, until it shares its
// work, for a step, or until the program says no.
#include "mark/marker.hpp"
#include "mark/team.hpp"
#include "os/cpu.hpp"

namespace jd::mark {
namespace {

// About a tenth of a millisecond (by hand: 613 questions in 73 ms, a tree of 4 million nodes).
constexpr std::uint64_t kEntriesBetweenQuestions = 4096;
// In steps words count, too, so that as many take some tenths of a millisecond. A guess.
constexpr std::uint64_t kEntriesInSteps = 8192;

}  // namespace

bool Marker::run_until(std::uint64_t ns) {
  // Under stress many steps, each of little.
  constexpr std::uint64_t kStressEntries = 32;
  const bool is_stress = team.is_stress();
  bool done = false;
  do {
    done = run_turn<Company::Steps>(is_stress ? kStressEntries : kEntriesInSteps);
  } while (!done && !is_stress && os::now_ns() < ns);
  page_map_.close();
  return top_ == bottom_;
}

bool Marker::run_beside(bool leaves) {
  constexpr std::uint64_t kStressEntries = 16;
  // When so many are put aside, a step is to come before the next turn. A guess.
  constexpr std::size_t kMostAside = 4096;
  beside_ = true;
  leaves_ = leaves;
  run_turn<Company::Steps>(team.is_stress() ? kStressEntries : kEntriesInSteps);
  beside_ = leaves_ = false;
  return top_ != bottom_ && put_aside_.count() < kMostAside && !overflowed_;
}

void Marker::run_while_allowed() {
  if (was_stopped_) return forget_queued();
  while (!run_turn<Company::Alone>(kEntriesBetweenQuestions)) {
    if (!stop_question_()) continue;
    was_stopped_ = true;
    return forget_queued();
  }
}

void Marker::run() {
  if (__builtin_expect(stop_question_ != nullptr, 0)) {
    run_while_allowed();
  } else {
    run_with_patience();
  }
  page_map_.close();
}

// Alone, until the patience ends.
void Marker::run_with_patience() {
  for (std::uint64_t patience = team.patience(); !run_turn<Company::Alone>(patience);) {
    if (patience == 0) continue;  // for ever
    patience -= taken_;
    if (patience == 0 && team.mark(this)) return;
  }
}

void Marker::run_in_team() {
  in_team_ = true;
  hungry_objects_ = kHungryObjects;
  while (!run_turn<Company::Team>(0)) {
  }
  in_team_ = false;
  bottom_ = top_ = stack_;
  page_map_.close();
}

}  // namespace jd::mark

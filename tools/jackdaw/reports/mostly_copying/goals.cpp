// The figures to reach of `jackdaw bench mostly-copying`.
#include <fmt/core.h>

#include <algorithm>

#include "figures/units.hpp"
#include "page/goals.hpp"
#include "reports/mostly_copying/results.hpp"

namespace jackdaw {
namespace {

// A run's worst phase.
Figure worst_compacted() {
  return [](const RunFigures& f) -> std::optional<double> {
    std::optional<double> worst;
    for (int phase = 1;; ++phase) {
      const auto live = named(fmt::format("phase{}_live", phase))(f);
      const auto left = named(fmt::format("phase{}_compacted", phase))(f);
      if (!live || !left || *live <= 0) return worst;
      worst = std::max(worst.value_or(0), *left / *live);
    }
  };
}

// A quotient in all programs, at one heap size.
std::vector<std::optional<Summary>> by_peer(const CopyResults& results, double factor,
                                            const Figure& figure) {
  std::vector<std::optional<Summary>> ratios;
  for (const std::string& program : copy_programs()) {
    ratios.push_back(
        quotient(results.find(kHeaps, program, factor), kEvacuateHomogeneous, kPeerHeap, figure));
  }
  return ratios;
}

Goal mean_goal(const std::string& what, const std::vector<std::optional<Summary>>& ratios,
               double bound, bool known) {
  Goal goal;
  goal.what = what;
  goal.goal = fmt::format("geometric mean at most {:g}", bound);
  const auto mean = geometric_mean(ratios);
  const auto count = std::count_if(ratios.begin(), ratios.end(),
                                   [](const auto& ratio) { return ratio.has_value(); });
  if (mean) {
    goal.measured = fmt::format("{:.2f}, of {} programs", *mean, count);
    goal.known = known;
    goal.reached = *mean <= bound;
  }
  return goal;
}

// Did all programs run in heaps of that size, or try to? A series may be only begun.
bool tried_all(const CopyResults& results, double factor) {
  return std::all_of(
      copy_programs().begin(), copy_programs().end(),
      [&](const std::string& program) { return results.find(kHeaps, program, factor) != nullptr; });
}

Goal count_goal(const std::string& what, std::size_t count, std::size_t of, bool known) {
  Goal goal;
  goal.what = what;
  goal.goal = fmt::format("all {}", copy_programs().size());
  goal.measured = fmt::format("{} of {}", count, of);
  goal.known = known;
  goal.reached = count == copy_programs().size();
  return goal;
}

// Does the program run on ours, and need more memory than that on the peer?
bool runs_alone(const CopyRow* row) {
  if (row == nullptr || !row->find(kEvacuateHomogeneous)) return false;
  return std::any_of(row->cells.begin(), row->cells.end(), [](const CopyCell& cell) {
    return cell.collector == kPeerHeap && cell.failure.starts_with(kDoesNotFit);
  });
}

Goal faster_goal(const CopyResults& results, double factor,
                 const std::vector<std::optional<Summary>>& ratios) {
  std::size_t faster = 0;
  std::size_t compared = 0;
  for (const auto& ratio : ratios) {
    if (!ratio) continue;
    ++compared;
    if (ratio->median < 1) ++faster;
  }
  const auto alone = static_cast<std::size_t>(std::count_if(
      copy_programs().begin(), copy_programs().end(), [&](const std::string& program) {
        return runs_alone(results.find(kHeaps, program, factor));
      }));
  Goal goal = count_goal(
      fmt::format("heap of {:g} times the live data: programs faster than libgc", factor),
      faster + alone, compared + alone, tried_all(results, factor));
  if (alone != 0) goal.measured += fmt::format(", of which {} don't run on libgc", alone);
  return goal;
}

void add_heap_goals(const CopyResults& results, std::vector<Goal>* goals) {
  for (const double factor : {2.0, 4.0}) {
    const auto total = by_peer(results, factor, whole);
    if (std::none_of(total.begin(), total.end(), [](const auto& r) { return r.has_value(); })) {
      continue;
    }
    goals->push_back(faster_goal(results, factor, total));
    goals->push_back(mean_goal(
        fmt::format("heap of {:g} times the live data: client and collector, by libgc's", factor),
        total, 0.7, tried_all(results, factor)));
    goals->push_back(
        mean_goal(fmt::format("heap of {:g} times the live data: collector, by libgc's", factor),
                  by_peer(results, factor, collecting), 0.4, tried_all(results, factor)));
  }
  constexpr double kTight = 1.5;
  std::size_t fit = 0;
  std::size_t tried = 0;
  for (const std::string& program : copy_programs()) {
    const CopyRow* row = results.find(kHeaps, program, kTight);
    if (row == nullptr) continue;
    ++tried;
    if (row->find(kEvacuateHomogeneous)) ++fit;
  }
  if (tried != 0) {
    goals->push_back(
        count_goal(fmt::format("programs that run in a heap of {:g} times the live data", kTight),
                   fit, tried, true));
  }
}

void add_client_goals(const CopyResults& results, std::vector<Goal>* goals) {
  constexpr double kAmple = 4;
  for (const char* program : {"mergesort", "checksum", "groebner"}) {
    const CopyRow* row = results.find(kHeaps, program, kAmple);
    if (row == nullptr) continue;
    goals->push_back(
        at_most(fmt::format("{}: client time, by that on our non-moving heap (heap of {:g} times)",
                            program, kAmple),
                quotient(row, kEvacuateHomogeneous, kOurHeap, client), 1));
  }
  for (const char* program : {"lexgen", "logic"}) {
    const CopyRow* row = results.find(kOrder, program);
    if (row == nullptr) continue;
    goals->push_back(
        at_most(fmt::format("{}: client time in the order of allocation, by that in blocks by size",
                            program),
                quotient(row, kEvacuateHeader, kEvacuateSegregated, client), 1));
  }
  const CopyRow* row = results.find(kPrograms, "knuth_bendix");
  if (row != nullptr) {
    Goal goal = at_most("knuth_bendix: stacks, of the collector's time",
                        median_in(row, kEvacuateHomogeneous, stack_share), 0.15);
    goal.goal = "below 15%";
    goal.measured = show_percent(median_in(row, kEvacuateHomogeneous, stack_share));
    goals->push_back(goal);
  }
}

void add_other_goals(const CopyResults& results, std::vector<Goal>* goals) {
  if (const CopyRow* row = results.find(kResolve, kResolve)) {
    for (const auto& [key, where] : {std::pair{kEvacuateHomogeneous, "homogeneous blocks"},
                                     {kEvacuateSegregated, "blocks by size"},
                                     {kEvacuateHeader, "mixed blocks"}}) {
      for (const auto& [figure, what] :
           {std::pair{"beginning_ns", "a first byte"}, {"middle_ns", "a middle"}}) {
        goals->push_back(at_most(
            fmt::format("an ambiguous word, {} in {}, by our non-moving heap's", what, where),
            quotient(row, key, kOurHeap, named(figure)), 1.5));
      }
    }
  }
  if (const CopyRow* row = results.find(kFragmentation, kFragmentation)) {
    for (const char* key : {kEvacuateHomogeneous, kEvacuateSelf, kEvacuateHeader}) {
      goals->push_back(
          at_most(fmt::format("fragmentation, {}: resident after compaction, by the live data, "
                              "worst phase (libgc: {})",
                              key, show_ratio(median_in(row, kPeerHeap, worst_compacted()))),
                  median_in(row, key, worst_compacted()), 1.3));
    }
  }
}

}  // namespace

std::vector<Goal> copy_goals(const CopyResults& results) {
  std::vector<Goal> goals;
  add_heap_goals(results, &goals);
  add_client_goals(results, &goals);
  add_other_goals(results, &goals);
  return goals;
}

}  // namespace jackdaw

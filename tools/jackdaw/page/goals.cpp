#include "page/goals.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "figures/table.hpp"
#include "figures/units.hpp"

namespace jackdaw {
namespace {

Goal bounded(const std::string& what, const std::optional<Summary>& measured, const char* how,
             double bound, const char* unit, const std::string& peer) {
  Goal goal;
  goal.what = what;
  goal.goal = fmt::format("at {} {:g}{}", how, bound, unit);
  goal.measured = *unit == '\0' ? show_ratio(measured) : show_figure(measured, unit);
  goal.peer = peer;
  goal.known = measured.has_value();
  return goal;
}

}  // namespace

Goal at_most(const std::string& what, const std::optional<Summary>& measured, double bound,
             const char* unit, const std::string& peer) {
  Goal goal = bounded(what, measured, "most", bound, unit, peer);
  goal.reached = measured && measured->median <= bound;
  return goal;
}

Goal at_least(const std::string& what, const std::optional<Summary>& measured, double bound,
              const char* unit, const std::string& peer) {
  Goal goal = bounded(what, measured, "least", bound, unit, peer);
  goal.reached = measured && measured->median >= bound;
  return goal;
}

std::string goal_table(const std::vector<Goal>& goals, bool quick) {
  const bool peers =
      std::any_of(goals.begin(), goals.end(), [](const Goal& goal) { return !goal.peer.empty(); });
  std::vector<std::string> headings = {"what", "goal", "measured", "reached"};
  if (peers) headings.insert(headings.end() - 1, "the peer");
  Table table(headings);
  for (const Goal& goal : goals) {
    const bool measured = !goal.measured.empty() && goal.measured != "-";
    std::vector<std::string> cells = {goal.what, goal.goal,
                                      measured ? goal.measured : "not measured"};
    if (peers) cells.push_back(goal.peer);
    cells.emplace_back(quick || !goal.known ? "-" : goal.reached ? "yes" : "no");
    table.add(cells);
  }
  return table.markdown();
}

}  // namespace jackdaw

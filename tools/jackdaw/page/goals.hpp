// Figures that are to be reached, beside what was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "figures/statistics.hpp"

namespace jackdaw {

struct Goal {
  std::string what;
  std::string goal;
  std::string measured;
  std::string peer;    // the same for the peer, where that says something
  bool known = false;  // was all of it measured?
  bool reached = false;
};

// What was measured, a ratio where the unit is empty, is to be at most, or at least, the bound.
Goal at_most(const std::string& what, const std::optional<Summary>& measured, double bound,
             const char* unit = "", const std::string& peer = "");
Goal at_least(const std::string& what, const std::optional<Summary>& measured, double bound,
              const char* unit = "", const std::string& peer = "");

// Of runs of small sizes, nothing is said to be reached.
std::string goal_table(const std::vector<Goal>& goals, bool quick);

}  // namespace jackdaw

// The page of `jackdaw bench mostly-copying`, and its plots.
#include <fmt/core.h>

#include <algorithm>

#include "figures/table.hpp"
#include "reports/mostly_copying/results.hpp"

namespace jackdaw {
namespace {

std::size_t most_rounds(const CopyResults& results) {
  std::size_t most = 0;
  for (const CopyRow& row : results.rows) {
    for (const auto& runs : row.row.runs) most = std::max(most, runs.size());
  }
  return most;
}

// Curves of those collectors that tell apart; the page's tables have all.
constexpr const char* kDrawn[] = {kPeerHeap, kOurHeap, kEvacuateHomogeneous, kEvacuateHeader,
                                  kMccHeader};

Curves curves_of(const CopyResults& results, const char* title, const Figure& figure) {
  Curves curves{title, "heap, MiB", "s", {}, {}};
  for (const char* key : kDrawn) curves.series.emplace_back(key);
  for (const std::string& program : copy_programs()) {
    Curves::Panel panel{program, {}};
    bool any = false;
    for (const char* key : kDrawn) {
      auto& points = panel.points.emplace_back();
      const auto add = [&](const CopyRow* row, double bytes) {
        const auto time = median_in(row, key, figure);
        if (time && bytes > 0) points.emplace_back(bytes / (1 << 20), time->median);
      };
      const CopyRow* least = results.find(kLeast, program);
      const auto smallest = median_in(least, key, named("least"));
      if (smallest) add(least, smallest->median);
      for (const double factor : heap_factors(results.quick)) {
        const CopyRow* row = results.find(kHeaps, program, factor);
        // The least heap may be one of them.
        if (row == nullptr || (smallest && row->heap_bytes <= smallest->median)) continue;
        add(row, row->heap_bytes);
      }
      any |= !points.empty();
    }
    if (any) curves.panels.push_back(std::move(panel));
  }
  return curves;
}

}  // namespace

std::string copy_page(const CopyResults& results, const std::vector<std::string>& plots) {
  std::string text = fmt::format(
      "# Mostly copying\n\nWritten by `jackdaw bench mostly-copying`.{}\n\n```\n{}runs     up to "
      "{} rounds, in each of them "
      "every collector once, each in its own process; medians\n         (smallest..largest); "
      "ratios are taken round by round\n```\n\nAfter Smith and Morrisett, \"Comparing "
      "Mostly-Copying and Mark-Sweep Conservative Collection\" (ISMM 1998). Its eight programs, "
      "written anew from what they did, run on *libgc* (the peer), on our libgc (*untyped*), and "
      "on the typed heap, where objects stay (*non-moving*), are moved out of sparse blocks "
      "(*evacuate*) or all move but for those that are pinned (*mcc*); layouts come from blocks "
      "(*homogeneous*), an object's first word (*self*) or a word before it (*header*). Every "
      "collector has one marker.\n\nThe paper's own figures are not beside them: its text was not "
      "to be had where this was written, and none are quoted from memory. So neither is the shape "
      "of its figure 1.\n",
      results.quick ? " **Small sizes (`--quick`): the figures mean nothing.**" : "",
      to_text(results), most_rounds(results));
  if (!results.notes.empty()) text += "\n";
  for (const std::string& note : results.notes) text += fmt::format("- {}\n", note);
  if (const std::vector<Goal> goals = copy_goals(results); !goals.empty()) {
    text += "\n## Goals\n\nOf *evacuate, homogeneous*, unless they name another.\n\n" +
            goal_table(goals, results.quick);
  }
  for (const std::string& plot : plots) text += fmt::format("\n![]({})\n", plot);
  text += programs_section(results);
  text += header_section(results);
  text += heaps_section(results);
  text += order_section(results);
  text += resolve_section(results);
  text += fragmentation_section(results);
  return text;
}

std::vector<Plot> copy_plots(const CopyResults& results) {
  std::vector<Plot> plots;
  plots.push_back(
      {"-heaps", {}, curves_of(results, "Client and collector, by heap size (figure 1)", whole)});
  plots.push_back({"-collector", {}, curves_of(results, "Collector, by heap size", collecting)});
  return plots;
}

}  // namespace jackdaw

// What the reports of `jackdaw bench` share: their cells, and the files they write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "figures/statistics.hpp"
#include "page/plot.hpp"

namespace jackdaw {

// Cells of a table: the median, with the smallest and the largest value where there are several.
// "-": not measured.
std::string show_percent(const std::optional<Summary>& s);
std::string show_figure(const std::optional<Summary>& s, const char* unit);
std::string show_ratio(const std::optional<Summary>& s);

// Where a report goes: to the file that the settings name; else into docs/results of the sources,
// if all of it is run, in full size, or added to what was; else nowhere (empty). Throws Failure if
// its folder is not there: before minutes of runs, not after them.
std::string report_target(const BenchSettings& settings, const std::string& name);

// A plot, and how the name of its file ends.
struct Plot {
  std::string suffix;  // "-saved"
  Bars bars;
  Curves curves = {};  // instead of bars, if it has panels
};
// Draws those that have groups or panels beside the report's page, if there is a gnuplot that does;
// else says so. The names of their files.
std::vector<std::string> draw_plots(const std::vector<Plot>& plots,
                                    const std::filesystem::path& page);

}  // namespace jackdaw

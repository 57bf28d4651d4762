// What the reports of `jackdaw bench` share: the files they write.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "page/plot.hpp"

namespace jackdaw {

// Where a report goes: to the file that the settings name; else into docs/results of the sources,
// if all of it is run, in full size, or added to what was; else nowhere (empty). Throws Failure if
// its folder is not there, or it cannot be written: before minutes of runs, not after them.
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

// What was measured, as JSON and as a page, which is made of the names of its plots' files.
struct WrittenReport {
  std::string json;
  std::vector<Plot> plots;
  std::function<std::string(const std::vector<std::string>& plots)> page;
};
// Writes the files of a report whose runs are over: the one of --json, then the page and its plots
// at the target, where there are such. The figures come first: without them the runs were in vain.
void write_report(const BenchSettings& settings, const std::string& target,
                  const WrittenReport& report);

}  // namespace jackdaw

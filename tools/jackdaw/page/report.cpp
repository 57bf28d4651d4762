#include "page/report.hpp"

#include <fmt/core.h>

#include "failure.hpp"
#include "figures/output.hpp"
#include "program/places.hpp"

namespace jackdaw {

namespace fs = std::filesystem;

std::string report_target(const BenchSettings& settings, const std::string& name) {
  std::string target = settings.markdown;
  if (target.empty()) {
    // The page there tells of everything, in full size.
    const bool is_part = settings.names.size() > 1 && !settings.add;
    if (settings.quick || is_part) return {};
    if (const auto folder = source_results_folder()) target = *folder / name;
  }
  if (const fs::path folder = fs::path(target).parent_path();
      !folder.empty() && !fs::is_directory(folder)) {
    throw Failure(kExitUsage, fmt::format("there is no folder {}", folder.string()));
  }
  require_writable(target, kExitRefused);
  return target;
}

std::vector<std::string> draw_plots(const std::vector<Plot>& plots, const fs::path& page) {
  std::vector<std::string> names;
  if (!can_draw()) {
    fmt::print("\nno plots: there is no gnuplot here (Debian: apt-get install gnuplot-nox)\n");
    return names;
  }
  // What was measured is worth a page without plots, too.
  try {
    for (const Plot& plot : plots) {
      if (plot.bars.groups.empty() && plot.curves.panels.empty()) continue;
      const std::string name = page.stem().string() + plot.suffix + ".svg";
      if (plot.curves.panels.empty()) {
        draw_bars(plot.bars, page.parent_path() / name);
      } else {
        draw_curves(plot.curves, page.parent_path() / name);
      }
      names.push_back(name);
    }
  } catch (const Failure& why) {
    fmt::print("\n{} plots: {}\n", names.empty() ? "no" : "no more", why.what());
  }
  return names;
}

void write_report(const BenchSettings& settings, const std::string& target,
                  const WrittenReport& report) {
  if (!settings.json.empty()) write_file(settings.json, report.json);
  if (target.empty()) return;
  write_file(target, report.page(draw_plots(report.plots, target)));
  fmt::print("\nwritten: {}\n", target);
}

}  // namespace jackdaw

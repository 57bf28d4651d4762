#include "reports/catalogue.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "failure.hpp"
#include "reports/cache_misses/cache_misses.hpp"
#include "reports/mostly_copying/mostly_copying.hpp"
#include "reports/scale/scale.hpp"
#include "reports/work_stealing/work_stealing.hpp"

namespace jackdaw {
namespace {

constexpr std::array kReports = {
    Report{"cache-misses", "the tables of Boehm's \"Reducing Garbage Collector Cache Misses\"",
           nullptr, cache_misses_command},
    Report{"mostly-copying",
           "objects that move and objects that stay, after Smith and Morrisett's paper",
           mostly_copying_parts, mostly_copying_command},
    Report{"scale", "threads by markers, after bdwgc's notes on scalability", scale_parts,
           scale_command},
    Report{"work-stealing", "tasks, after Kumar and Blackburn's papers", work_stealing_parts,
           work_stealing_command},
};

}  // namespace

const Report* chosen_report(const BenchSettings& settings) {
  if (settings.names.empty()) return nullptr;
  const auto* const found =
      std::find_if(kReports.begin(), kReports.end(),
                   [&](const Report& report) { return report.name == settings.names.front(); });
  if (found != kReports.end()) return found;
  for (const std::string& name : settings.names) {
    for (const Report& report : kReports) {
      if (report.name != name) continue;
      throw Failure(kExitUsage,
                    fmt::format("the report {0} runs by itself: jackdaw bench {0}", name));
    }
  }
  return nullptr;
}

std::vector<std::string> chosen_parts(const BenchSettings& settings) {
  const Report& report = *chosen_report(settings);
  auto all = report.parts == nullptr ? std::vector<std::string>() : report.parts();
  if (settings.names.size() == 1) return all;
  std::vector<std::string> chosen;
  for (std::size_t i = 1; i < settings.names.size(); ++i) {
    const std::string& part = settings.names[i];
    if (std::find(chosen.begin(), chosen.end(), part) == chosen.end()) chosen.push_back(part);
    if (std::find(all.begin(), all.end(), part) != all.end()) continue;
    throw Failure(kExitUsage, all.empty()
                                  ? fmt::format("the report {} has no parts; '{}' cannot follow it",
                                                report.name, part)
                                  : fmt::format("no part '{}' of the report {}; there are {}", part,
                                                report.name, fmt::join(all, ", ")));
  }
  return chosen;
}

std::string description_of(const Report& report) {
  std::string lines = fmt::format("{:<15}{}\n", report.name, report.about);
  if (report.parts != nullptr) {
    lines += fmt::format("{:<15}parts, which may follow its name: {}\n", "",
                         fmt::join(report.parts(), " "));
  }
  return lines;
}

std::string list_of_reports() {
  std::string list;
  for (const Report& report : kReports) list += description_of(report);
  return list;
}

std::string reports_with_parts() {
  std::vector<std::string> names;
  for (const Report& report : kReports) {
    if (report.parts != nullptr) names.emplace_back(report.name);
  }
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

}  // namespace jackdaw

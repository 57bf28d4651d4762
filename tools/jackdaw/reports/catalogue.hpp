// The reports of `jackdaw bench`: benchmarks that fill a page of tables, some in parts that can be
// run one by one.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"

namespace jackdaw {

struct Report {
  const char* name;
  const char* about;
  std::vector<std::string> (*parts)();  // null: it is one piece
  int (*run)(const BenchSettings& settings);
};

// The report that settings.names begins with; null if that names none.
const Report* chosen_report(const BenchSettings& settings);
// The parts that follow its name, or all. Throws Failure if there is no such part.
std::vector<std::string> chosen_parts(const BenchSettings& settings);

// What a report is about, and its parts.
std::string description_of(const Report& report);
// The same of all.
std::string list_of_reports();
// The names of those that have parts, for a sentence: their rounds can be added to earlier ones.
std::string reports_with_parts();

}  // namespace jackdaw

// Programs run under several settings in turn, for comparisons within a round: neighbours in time
// saw the same machine.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "figures/statistics.hpp"
#include "figures/table.hpp"
#include "measure/catalogue.hpp"
#include "program/places.hpp"

namespace jackdaw {

// One way to run a row's program.
struct Setting {
  std::string key;
  Library library;
  std::vector<std::string> variables;
  // Instead of the benchmark's own, if there are any.
  std::vector<std::string> arguments = {};
  // Where the library is no libgc: what the program, which is linked with one, gets as its libgc.
  std::filesystem::path libgc = {};
};

// What one run gave. Absent where the library does not say.
struct RunFigures {
  // There was no such run: it keeps the place of its round, in which others ran.
  bool absent = false;
  double seconds = 0;  // the row's own figure: the whole run, or nanoseconds an object
  std::optional<double> mark_seconds;
  std::optional<double> sweep_seconds;     // of the records, in collections
  std::optional<double> finding_seconds;   // of free slots, at allocation
  std::optional<double> clearing_seconds;  // of free slots, at allocation
  double collections = 0;
  double heap_bytes = 0;
  double peak_bytes = 0;
  // Everything that the program and the library said in numbers, by name.
  std::map<std::string, double> named = {};
};

nlohmann::ordered_json to_json(const RunFigures& figures);
RunFigures run_figures_from(const nlohmann::ordered_json& json);

// A row: a program that each setting runs, and what all runs gave: runs[setting][round].
struct Row {
  std::string name;
  std::string what;
  std::function<RunFigures(const Setting&)> run;
  std::vector<std::vector<RunFigures>> runs;
  bool ours_only = false;  // no other library can run it
  std::string failure;     // why it could not be run, or did not end well; empty: it did
};

// A row that runs a program of the benchmarks' folder.
Row benchmark_row(const std::string& name, const std::string& what, Benchmark benchmark, bool quick,
                  int limit_seconds);
// A row that runs any command; its time is the process's.
Row command_row(const std::string& name, const std::string& what,
                const std::vector<std::string>& command,
                const std::vector<std::filesystem::path>& preload, int limit_seconds);

// Runs every setting so many times, each round beginning with another one, every second one in
// reverse: what a run finds of the machine depends on the run before it, which should not be the
// same one each time.
void run_rounds(Row* row, const std::vector<Setting>& settings, int rounds,
                const std::string& prefix, Progress* progress);

// A figure of one setting divided by the same of another, round by round, in those that measured
// both. Nothing if the divisor is zero in any of these, as with ratio_of().
using Figure = std::function<std::optional<double>(const RunFigures&)>;
std::optional<Summary> share(const Row& row, std::size_t setting, const Figure& part,
                             std::size_t of_setting, const Figure& whole);
std::optional<Summary> median_of(const Row& row, std::size_t setting, const Figure& figure);

double whole(const RunFigures& f);
// One of the named figures.
Figure named(const std::string& name);

}  // namespace jackdaw

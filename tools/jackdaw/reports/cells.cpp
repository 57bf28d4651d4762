#include "reports/cells.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace jackdaw {

using Json = nlohmann::ordered_json;

std::vector<unsigned> powers_up_to(unsigned most) {
  std::vector<unsigned> list;
  for (unsigned n = 1; n <= most; n *= 2) list.push_back(n);
  return list;
}

Json runs_to_json(const Row& row, std::size_t cell) {
  Json runs = Json::array();
  if (cell < row.runs.size()) {
    for (const RunFigures& run : row.runs[cell]) runs.push_back(to_json(run));
  }
  return runs;
}

std::vector<RunFigures> runs_from(const Json& cell) {
  std::vector<RunFigures> runs;
  for (const Json& run : cell.at("runs")) runs.push_back(run_figures_from(run));
  return runs;
}

std::optional<Json> earlier_results(const BenchSettings& settings) {
  if (!settings.add) return std::nullopt;
  if (settings.json.empty()) {
    throw Failure(kExitUsage, "--add adds to the results in the file that --json names");
  }
  if (!std::filesystem::exists(settings.json)) return std::nullopt;
  std::ifstream file(settings.json);
  return Json::parse(file, nullptr, false);
}

void read_results(const std::function<void()>& read) {
  try {
    read();
  } catch (const Json::exception& e) {
    throw Failure(kExitUsage, fmt::format("--add: {}", e.what()));
  }
}

bool has_runs(const Row& row, std::size_t cell) {
  return cell < row.runs.size() && std::any_of(row.runs[cell].begin(), row.runs[cell].end(),
                                               [](const RunFigures& run) { return !run.absent; });
}

std::size_t rounds_of(const Row& row) {
  std::size_t most = 0;
  for (const std::vector<RunFigures>& runs : row.runs) most = std::max(most, runs.size());
  return most;
}

void add_in_front(std::vector<RunFigures> before, std::size_t rounds_before, std::size_t rounds_now,
                  std::vector<RunFigures>* runs) {
  RunFigures absent;
  absent.absent = true;
  before.resize(std::max(rounds_before, before.size()), absent);
  runs->resize(std::max(rounds_now, runs->size()), absent);
  runs->insert(runs->begin(), before.begin(), before.end());
}

}  // namespace jackdaw

#include "measure/rounds.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "measure/sample.hpp"
#include "program/process.hpp"
#include "program/temporary.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What the library wrote for JACKDAW_STATISTICS.
class StatisticsFile {
 public:
  [[nodiscard]] std::string variable() const {
    return "JACKDAW_STATISTICS=" + file_.path().string();
  }

  // Null if the library wrote none.
  [[nodiscard]] Json read() const {
    std::ifstream file(file_.path());
    Json json = Json::parse(file, nullptr, false);
    return json.is_discarded() ? Json() : json;
  }

 private:
  TemporaryFile file_;
};

std::optional<double> seconds_of(const Json& statistics, const char* name) {
  if (!statistics.contains(name)) return std::nullopt;
  return statistics.at(name).get<double>() / 1e9;
}

void add_statistics(const Json& statistics, RunFigures* figures) {
  if (statistics.is_null()) return;
  for (const auto& [name, value] : statistics.items()) {
    if (value.is_number()) figures->named[name] = value.get<double>();
  }
  figures->mark_seconds = seconds_of(statistics, "mark_ns");
  figures->sweep_seconds = seconds_of(statistics, "sweep_ns");
  figures->finding_seconds = seconds_of(statistics, "finding_ns");
  figures->clearing_seconds = seconds_of(statistics, "clearing_ns");
  figures->collections = statistics.value("collections", 0.0);
  figures->heap_bytes = statistics.value("peak_heap_bytes", 0.0);
}

std::optional<double> figure_named(const Sample& sample, const std::string& name) {
  for (std::size_t i = 0; i < sample.names.size(); ++i) {
    if (sample.names[i].name == name) return sample.values[i];
  }
  return std::nullopt;
}

RunFigures run_row_benchmark(const Benchmark& benchmark, bool quick, int limit_seconds,
                             const Setting& setting) {
  const StatisticsFile file;
  std::vector<std::string> variables = setting.variables;
  variables.push_back(file.variable());
  std::vector<fs::path> preload = {setting.library.path};
  if (!setting.libgc.empty()) preload.push_back(setting.libgc);
  const Sample sample =
      run_benchmark({benchmark, setting.library.path, preload,
                     setting.arguments.empty() ? benchmark.arguments : setting.arguments, variables,
                     quick, limit_seconds});
  RunFigures figures;
  for (std::size_t i = 0; i < sample.names.size(); ++i) {
    figures.named[sample.names[i].name] = sample.values[i];
  }
  for (const auto& [name, value] : sample.facts.items()) {
    if (value.is_number()) figures.named[name] = value.get<double>();
  }
  figures.seconds = sample.values.front();
  figures.mark_seconds = figure_named(sample, "in marking");
  figures.collections = sample.facts.value("collections", 0.0);
  figures.heap_bytes = sample.facts.value("heap_bytes", 0.0);
  figures.peak_bytes = figure_named(sample, "peak memory").value_or(0);
  add_statistics(file.read(), &figures);
  return figures;
}

RunFigures run_row_command(const std::vector<std::string>& words,
                           const std::vector<fs::path>& preload, int limit_seconds,
                           const Setting& setting) {
  const StatisticsFile file;
  const File null(open("/dev/null", O_RDWR | O_CLOEXEC));
  Command command;
  command.file = words.front();
  command.arguments = words;
  std::vector<std::string> variables = setting.variables;
  variables.push_back(file.variable());
  command.environment = environment_with(preload, variables);
  command.in = command.out = command.err = null.fd();
  command.interactive = false;
  command.limit = std::chrono::seconds(limit_seconds);
  const Outcome outcome = run(command, nullptr);
  if (!outcome.succeeded()) throw Failure(kExitFailed, outcome.describe());
  RunFigures figures;
  figures.seconds = outcome.wall_seconds;
  figures.peak_bytes = static_cast<double>(outcome.resident_peak_kib) * 1024;
  add_statistics(file.read(), &figures);
  return figures;
}

}  // namespace

Json to_json(const RunFigures& f) {
  if (f.absent) return nullptr;
  Json json = {{"seconds", f.seconds},
               {"collections", f.collections},
               {"heap_bytes", f.heap_bytes},
               {"peak_bytes", f.peak_bytes}};
  const auto add = [&json](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  add("mark_seconds", f.mark_seconds);
  add("sweep_seconds", f.sweep_seconds);
  add("finding_seconds", f.finding_seconds);
  add("clearing_seconds", f.clearing_seconds);
  if (!f.named.empty()) json["named"] = f.named;
  return json;
}

RunFigures run_figures_from(const Json& json) {
  RunFigures f;
  f.absent = json.is_null();
  if (f.absent) return f;
  f.seconds = json.at("seconds");
  f.collections = json.at("collections");
  f.heap_bytes = json.at("heap_bytes");
  f.peak_bytes = json.at("peak_bytes");
  const auto get = [&json](const char* name) {
    return json.contains(name) ? std::optional<double>(json.at(name).get<double>()) : std::nullopt;
  };
  f.mark_seconds = get("mark_seconds");
  f.sweep_seconds = get("sweep_seconds");
  f.finding_seconds = get("finding_seconds");
  f.clearing_seconds = get("clearing_seconds");
  if (json.contains("named")) json.at("named").get_to(f.named);
  return f;
}

Row benchmark_row(const std::string& name, const std::string& what, Benchmark benchmark, bool quick,
                  int limit_seconds) {
  Row row;
  row.name = name;
  row.what = what;
  row.run = [benchmark = std::move(benchmark), quick, limit_seconds](const Setting& setting) {
    return run_row_benchmark(benchmark, quick, limit_seconds, setting);
  };
  return row;
}

Row command_row(const std::string& name, const std::string& what,
                const std::vector<std::string>& command, const std::vector<fs::path>& preload,
                int limit_seconds) {
  Row row;
  row.name = name;
  row.what = what;
  row.run = [command, preload, limit_seconds](const Setting& setting) {
    return run_row_command(command, preload, limit_seconds, setting);
  };
  return row;
}

void run_rounds(Row* row, const std::vector<Setting>& settings, int rounds,
                const std::string& prefix, Progress* progress) {
  row->runs.resize(settings.size());
  for (int round = 0; round < rounds; ++round) {
    const auto first = static_cast<std::size_t>(round);
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const std::size_t step = round % 2 == 0 ? i : settings.size() - i;
      const std::size_t s = (first + step) % settings.size();
      progress->say(fmt::format("{}{}: round {} of {}, {}", prefix, row->name, round + 1, rounds,
                                settings[s].key));
      try {
        row->runs[s].push_back(row->run(settings[s]));
      } catch (const Failure& failure) {
        row->failure = fmt::format("{}: {}", settings[s].key, failure.what());
        return;
      }
    }
  }
}

std::optional<Summary> share(const Row& row, std::size_t setting, const Figure& part,
                             std::size_t of_setting, const Figure& whole_figure) {
  if (!row.failure.empty() || setting >= row.runs.size() || of_setting >= row.runs.size()) {
    return std::nullopt;
  }
  std::vector<double> parts;
  std::vector<double> wholes;
  const std::size_t rounds = std::min(row.runs[setting].size(), row.runs[of_setting].size());
  for (std::size_t round = 0; round < rounds; ++round) {
    if (row.runs[setting][round].absent || row.runs[of_setting][round].absent) continue;
    const std::optional<double> a = part(row.runs[setting][round]);
    const std::optional<double> b = whole_figure(row.runs[of_setting][round]);
    if (!a || !b) continue;
    parts.push_back(*a);
    wholes.push_back(*b);
  }
  return ratio_of(parts, wholes);
}

std::optional<Summary> median_of(const Row& row, std::size_t setting, const Figure& figure) {
  if (!row.failure.empty() || setting >= row.runs.size()) return std::nullopt;
  std::vector<double> values;
  for (const RunFigures& run : row.runs[setting]) {
    if (run.absent) continue;
    if (const std::optional<double> value = figure(run)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return summarize(values);
}

double whole(const RunFigures& f) { return f.seconds; }

Figure named(const std::string& name) {
  return [name](const RunFigures& f) -> std::optional<double> {
    const auto found = f.named.find(name);
    if (found == f.named.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace jackdaw

#include "measure/sample.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "program/process.hpp"

namespace jackdaw {
namespace {

using Json = nlohmann::ordered_json;

void add_figure(Sample* sample, const char* name, const char* unit, double value) {
  sample->names.push_back({name, unit});
  sample->values.push_back(value);
}

// Throws Failure (with no program's name) if the run failed or its line is not as agreed.
Sample parse_line(const std::string& line, const Outcome& outcome) {
  if (!outcome.succeeded()) throw Failure(kExitFailed, outcome.describe());
  Sample sample;
  try {
    sample.facts = Json::parse(line);
    for (const Json& figure : sample.facts.at("figures")) {
      sample.names.push_back({figure.at("name"), figure.at("unit")});
      sample.values.push_back(figure.at("value"));
    }
    sample.facts.erase("figures");
  } catch (const Json::exception& e) {
    throw Failure(kExitFailed,
                  fmt::format("it printed something else than its line of JSON: {}", e.what()));
  }
  if (sample.names.empty()) throw Failure(kExitFailed, "it printed no figure");
  return sample;
}

}  // namespace

void require_library(const Json& line, const std::filesystem::path& wanted) {
  const std::string library = line.value("library", "an unknown library");
  if (library == wanted.string()) return;
  throw Failure(kExitFailed, fmt::format("it ran on {} instead of {}", library, wanted.string()));
}

void require_libjackdaw(const Json& line) {
  const std::string library = line.value("library", "an unknown library");
  if (is_own_libjackdaw(library)) return;
  throw Failure(kExitFailed,
                fmt::format("it ran on {} instead of the libjackdaw of this command", library));
}

Sample run_benchmark(const BenchmarkRun& wanted) {
  const Benchmark& b = wanted.benchmark;
  const File out = make_memory_file("jackdaw-bench");
  const File null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Command command;
  command.file = benchmark_folder() / b.program;
  command.arguments = {b.program};
  command.arguments.insert(command.arguments.end(), wanted.arguments.begin(),
                           wanted.arguments.end());
  if (wanted.quick) command.arguments.emplace_back("--quick");
  std::vector<std::string> variables = b.variables;
  variables.insert(variables.end(), wanted.variables.begin(), wanted.variables.end());
  command.environment = environment_with(wanted.preload, variables);
  command.in = null.fd();
  command.out = out.fd();
  command.interactive = false;
  command.limit = std::chrono::seconds(wanted.limit_seconds);
  const Outcome outcome = run(command, nullptr);
  Sample sample = parse_line(contents(out), outcome);
  require_library(sample.facts, wanted.measured);
  sample.facts.erase("library");
  if (b.process_time) {
    // In front: it is what such a benchmark is about.
    sample.names.insert(sample.names.begin(), {"process time", "s"});
    sample.values.insert(sample.values.begin(), outcome.wall_seconds);
  }
  add_figure(&sample, "peak memory", "B", static_cast<double>(outcome.resident_peak_kib) * 1024);
  return sample;
}

Sample run_benchmark(const Benchmark& b, const Library& library, bool quick, int limit_seconds,
                     const std::vector<std::string>& variables) {
  return run_benchmark(
      {b, library.path, {library.path}, b.arguments, variables, quick, limit_seconds});
}

}  // namespace jackdaw

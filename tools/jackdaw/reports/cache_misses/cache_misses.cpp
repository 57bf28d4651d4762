#include "reports/cache_misses/cache_misses.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "figures/output.hpp"
#include "measure/catalogue.hpp"
#include "measure/origin.hpp"
#include "measure/rounds.hpp"
#include "measure/sample.hpp"
#include "program/places.hpp"
#include "program/process.hpp"
#include "reports/cache_misses/results.hpp"
#include "reports/cells.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kOneMarker = "GC_MARKERS=1";
constexpr const char* kIncremental = "GC_ENABLE_INCREMENTAL=1";
constexpr const char* kNoPrefetch = "JACKDAW_MARK_STRATEGY=none";
constexpr const char* kOnGrey = "JACKDAW_MARK_STRATEGY=on-grey";
constexpr const char* kRing = "JACKDAW_MARK_STRATEGY=ring";

// One marker everywhere: the paper's collector had one.
std::vector<Setting> settings_for(const Library& ours, const Library& peer) {
  return {
      {"normal", ours, {kOneMarker, kNoPrefetch}},
      {"timed", ours, {kOneMarker, kNoPrefetch, "JACKDAW_TIME_SWEEP=1"}},
      {"eager", ours, {kOneMarker, kNoPrefetch, "JACKDAW_SWEEP=eager"}},
      {"on-grey", ours, {kOneMarker, kOnGrey}},
      {"ring", ours, {kOneMarker, kRing}},
      {"peer", peer, {kOneMarker}},
  };
}

struct Plan {
  BenchSettings settings;
  Library ours;
  Library peer;
};

Benchmark known(const std::string& name, const std::vector<std::string>& more_variables = {}) {
  Benchmark benchmark = choose_benchmarks({name}).front();
  for (const std::string& variable : more_variables) benchmark.variables.push_back(variable);
  return benchmark;
}

// --- what is measured ----------------------------------------------------------------------------

Row program(const Plan& plan, const std::string& name, const std::string& what,
            const Benchmark& benchmark) {
  return benchmark_row(name, what, benchmark, false, plan.settings.limit_seconds);
}

// Ghostscript draws a page set of this repository: Debian's packages hold none of its examples.
Row ghostscript(const Plan& plan, const std::string& name, const std::string& what,
                const std::vector<std::string>& variables) {
  const std::optional<fs::path> gs = find_program("gs");
  const std::optional<fs::path> preload = malloc_library();
  const fs::path drawing = benchmark_folder() / "drawing.ps";
  Row row;
  if (!gs) {
    row.failure =
        fmt::format("{}there is no gs here (Debian: apt-get install ghostscript)", kNotRun);
  } else if (!preload) {
    row.failure = fmt::format("{}lib/libjackdaw-malloc.so was not built", kNotRun);
  } else if (!fs::exists(drawing)) {
    row.failure = fmt::format("{}{} is not installed", kNotRun, drawing.filename().string());
  } else {
    row = command_row(name, what,
                      {gs->string(), "-q", "-dNOPAUSE", "-dBATCH", "-dSAFER", "-r100",
                       "-sDEVICE=pdfwrite", "-sOutputFile=/dev/null", drawing.string()},
                      {*preload}, plan.settings.limit_seconds);
    row.ours_only = true;  // the preload is ours
    const auto run = row.run;
    row.run = [run, variables](Setting setting) {
      setting.variables.insert(setting.variables.end(), variables.begin(), variables.end());
      setting.variables.emplace_back("JACKDAW_MALLOC=ignore");
      return run(setting);
    };
  }
  row.name = name;
  row.what = what;
  return row;
}

std::vector<Row> program_rows(const Plan& plan) {
  std::vector<Row> rows;
  rows.push_back(program(plan, "gcbench", "conservative objects", known("gcbench")));
  rows.push_back(program(plan, "gcbench, descriptors", "descriptors through the first word",
                         known("gcbench-descriptors")));
  rows.push_back(program(plan, "holes", "a dead node between retained ones", known("holes")));
  rows.push_back(
      program(plan, "syntax", "one large syntax tree is built and kept", known("syntax")));
  rows.push_back(
      ghostscript(plan, "ghostscript", "its malloc is the collector, its free nothing", {}));
  rows.push_back(program(plan, "syntax, incremental", "with partial collections",
                         known("syntax", {kIncremental})));
  rows.push_back(
      ghostscript(plan, "ghostscript, incremental", "with partial collections", {kIncremental}));
  // Ten times what is live.
  rows.push_back(program(plan, "gcbench, large heap", "the heap is 80 MiB from the start",
                         known("gcbench", {"GC_INITIAL_HEAP_SIZE=80M"})));
  rows.push_back(program(plan, "syntax, large heap", "the heap is 800 MiB from the start",
                         known("syntax", {"GC_INITIAL_HEAP_SIZE=800M"})));
  rows.push_back(ghostscript(plan, "ghostscript, large heap", "the heap is 200 MiB from the start",
                             {"GC_INITIAL_HEAP_SIZE=200M"}));
  if (!plan.settings.quick) {
    rows.push_back(program(plan, "gcbench-big", "68 MB live", known("gcbench-big")));
    rows.push_back(program(plan, "gcbench-big, incremental", "with partial collections",
                           known("gcbench-big", {kIncremental})));
  }
  return rows;
}

std::vector<Row> marking_rows(const Plan& plan) {
  std::vector<std::string> names = {"mark-random-8m-32",  "mark-random-8m-64",  "mark-tree",
                                    "mark-tree-shuffled", "mark-list-shuffled", "mark-table"};
  if (plan.settings.quick) names = {"mark-random-2m-32", "mark-tree", "mark-tree-shuffled"};
  std::vector<Row> rows;
  for (const std::string& name : names) {
    const Benchmark benchmark = known(name);
    rows.push_back(program(plan, name, benchmark.what, benchmark));
  }
  return rows;
}

// --- the limit -----------------------------------------------------------------------------------

Limit measure_limit(const Plan& plan, Progress* progress) {
  Limit limit;
  progress->say("the memory system's limit");
  try {
    const Sample sample =
        run_benchmark(known("limit"), plan.ours, false, plan.settings.limit_seconds);
    for (std::size_t i = 0; i < sample.names.size(); ++i) {
      if (sample.names[i].unit == "B") continue;
      limit.table.add(
          {sample.names[i].name, fmt::format("{:.3g} {}", sample.values[i], sample.names[i].unit)});
      if (sample.names[i].name == "independent miss") limit.independent_ns = sample.values[i];
    }
  } catch (const Failure& failure) {
    limit.failure = failure.what();
  }
  return limit;
}

// --- the simulator -------------------------------------------------------------------------------

// bench/cachegrind.py's table: misses do not depend on the machine there.
Simulation simulate(const Plan& plan, Progress* progress) {
  const std::optional<fs::path> python = find_program("python3");
  if (!python) return {"", fmt::format("{}there is no python3 here", kNotRun)};
  if (!find_program("valgrind")) {
    return {"",
            fmt::format("{}there is no valgrind here (Debian: apt-get install valgrind)", kNotRun)};
  }
  progress->say(plan.settings.quick ? "misses in a simulated cache: half a minute"
                                    : "misses in a simulated cache: some minutes");
  const File null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const File output = make_memory_file("jackdaw-cachegrind");
  const File complaint = make_memory_file("jackdaw-cachegrind-complaint");
  Command command;
  command.file = *python;
  command.arguments = {"python3",    benchmark_folder() / "cachegrind.py",
                       "--ours",     plan.ours.path.string(),
                       "--peer",     plan.peer.path.string(),
                       "--programs", benchmark_folder()};
  if (plan.settings.quick) command.arguments.emplace_back("--quick");
  command.environment = environment_with({}, {});
  command.in = null.fd();
  command.err = complaint.fd();
  command.out = output.fd();
  command.interactive = false;
  command.limit = std::chrono::minutes(30);
  const Outcome outcome = run(command, nullptr);
  if (!outcome.succeeded()) {
    return {"", fmt::format("cachegrind.py: {}: {}", outcome.describe(), contents(complaint))};
  }
  return {contents(output), ""};
}

// --- the report ----------------------------------------------------------------------------------

Json row_json(const Row& row, const std::vector<Setting>& settings) {
  Json json = {{"name", row.name}, {"what", row.what}};
  if (!row.failure.empty()) json["failure"] = row.failure;
  for (std::size_t s = 0; s < row.runs.size(); ++s) {
    for (const RunFigures& run : row.runs[s]) json["runs"][settings[s].key].push_back(to_json(run));
  }
  return json;
}

Json results_json(const CacheResults& results) {
  Json json = to_json(results, "cache-misses");
  json["rounds"] = results.rounds;
  json["independent_miss_ns"] = results.limit.independent_ns;
  for (const Row& row : results.programs) {
    json["programs"].push_back(row_json(row, results.settings));
  }
  for (const Row& row : results.marking) {
    json["marking"].push_back(row_json(row, results.marking_settings));
  }
  return json;
}

int count_failures(const CacheResults& results) {
  int failures = results.limit.failure.empty() ? 0 : 1;
  if (results.simulation.failure.starts_with("cachegrind.py")) ++failures;
  for (const std::vector<Row>* rows : {&results.programs, &results.marking}) {
    for (const Row& row : *rows) {
      if (!row.failure.empty() && !row.failure.starts_with(kNotRun)) ++failures;
    }
  }
  return failures;
}

// `save` is called after each row, so that an interrupted series leaves what it has.
void run_all(std::vector<Row>* rows, const std::vector<Setting>& settings, int rounds,
             const std::string& what, Progress* progress, const std::function<void()>& save) {
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (!(*rows)[i].failure.empty()) continue;
    std::vector<Setting> chosen = settings;
    if ((*rows)[i].ours_only) chosen.pop_back();
    run_rounds(&(*rows)[i], chosen, rounds, fmt::format("[{} {}/{}] ", what, i + 1, rows->size()),
               progress);
    save();
  }
}

}  // namespace

int cache_misses_command(const BenchSettings& settings) {
  const Plan plan{settings, our_library(settings.library), system_library(settings.peer)};
  CacheResults results;
  static_cast<Origin&>(results) = origin_now(settings.quick);
  results.ours = plan.ours.portable_path();
  results.peer = fmt::format("libgc {}, {}", plan.peer.version_text(), plan.peer.portable_path());
  results.rounds = settings.runs;
  results.settings = settings_for(plan.ours, plan.peer);
  for (const ProgramPlace place : {kNormal, kGrey, kRinged, kPeer}) {
    results.marking_settings.push_back(results.settings[place]);
  }
  const std::string target = report_target(settings, "cache-misses.md");
  fmt::print("{}\n", cache_conditions(results));
  std::fflush(stdout);
  const auto save = [&] {
    if (!settings.json.empty()) write_so_far(settings.json, to_text(results_json(results)));
  };
  {
    Progress progress;
    results.limit = measure_limit(plan, &progress);
    results.programs = program_rows(plan);
    run_all(&results.programs, results.settings, results.rounds, "programs", &progress, save);
    results.marking = marking_rows(plan);
    run_all(&results.marking, results.marking_settings, results.rounds, "marking", &progress, save);
    results.simulation = simulate(plan, &progress);
  }

  fmt::print("{}", cache_tables(results));
  write_report(settings, target,
               {to_text(results_json(results)), cache_plots(results),
                [&](const auto& plots) { return cache_page(results, plots); }});
  const int failures = count_failures(results);
  if (failures != 0) fmt::print("\n{} rows failed\n", failures);
  return failures == 0 ? 0 : kExitFailed;
}

}  // namespace jackdaw

#include "reports/work_stealing/work_stealing.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "figures/output.hpp"
#include "figures/table.hpp"
#include "measure/others.hpp"
#include "measure/sample.hpp"
#include "program/places.hpp"
#include "program/process.hpp"
#include "reports/catalogue.hpp"
#include "reports/cells.hpp"
#include "reports/work_stealing/results.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// --- what is run ---------------------------------------------------------------------------------

struct Problem {
  const char* name;
  const char* what;
  bool with_peers;
};
constexpr const char* kTrees = "trees";
constexpr const char* kLatency = "latency";
constexpr Problem kProblems[] = {
    {"jacobi", "100 steps of averaging four neighbours, 1024 x 1024 doubles, 256 points a leaf",
     true},
    {"lud", "LU decomposition in place, 1024 x 1024 doubles, blocks of 16 x 16", true},
    {"heat", "heat diffusion, 4096 x 1024 doubles, 200 steps, ten rows a leaf", true},
    {"fib-42", "fib(42): nothing but forks", false},
    {"fib", "fib(34)", true},
    {"queens", "12 queens, a task for each safe square", true},
    {"integrate", "adaptive integration of x^3 + x, to 2000", true},
    {"multiply", "matrix multiplication, 1024 x 1024 doubles, 64 x 64 a leaf", true},
    {"sort", "merge sort of 4 million 64-bit numbers with cut merges", true},
    {"search", "unbalanced tree search: a binomial tree that unfolds as it is searched", true},
    {kTrees,
     "a tree of a million nodes and 100 of 65,535 in the collected heap, Jackdaw's for all, each "
     "node made by a task",
     true},
};

const char* program_of(Runner runner) {
  switch (runner) {
    case Runner::Sequential:
      return "sequential";
    case Runner::Calls:
      return "calls";
    case Runner::Counting:
      return "counting";
    case Runner::Barrier:
    case Runner::Stop:
    case Runner::Deque:
    case Runner::Copies:
      return "jackdaw";
    case Runner::Tbb:
      return "tbb";
    case Runner::OpenMp:
      return "openmp";
    case Runner::Taskflow:
      return "taskflow";
    case Runner::Libfork:
      return "libfork";
  }
  return "";
}

struct Plan {
  const BenchSettings& settings;
  Library ours;
  std::vector<unsigned> workers;  // 1, 2, 4 ... up to four for each processor
  std::vector<unsigned> few;      // those up to one for each processor
  std::vector<Runner> peers;      // those that were built
  std::size_t rounds_before = 0;  // in the file that this series is added to
};

Plan make_plan(const BenchSettings& settings, std::vector<std::string>* notes) {
  Plan plan{settings, our_library(settings.library), {}, {}, {}};
  const auto cpus = static_cast<unsigned>(std::max(this_machine().cpus, 1L));
  plan.workers = powers_up_to(4 * cpus);
  // Two workers at least, or nothing is stolen.
  plan.few = powers_up_to(std::max(cpus, 2U));
  const std::pair<Runner, const char*> peers[] = {
      {Runner::Tbb, "Debian: apt-get install libtbb-dev, then build again"},
      {Runner::OpenMp, "the compiler had no OpenMP"},
      {Runner::Taskflow, "scripts/fetch-peers brings it, then build again"},
      {Runner::Libfork, "scripts/fetch-peers brings it, then build again"}};
  for (const auto& [runner, remedy] : peers) {
    if (fs::exists(benchmark_folder() / fmt::format("tasks-{}", program_of(runner)))) {
      plan.peers.push_back(runner);
    } else {
      notes->push_back(not_run(name_of(runner), fmt::format("it was not built ({})", remedy)));
    }
  }
  notes->push_back(not_run(
      "Cilk", "no Debian package has OpenCilk, and GCC and clang have no Cilk of their own"));
  return plan;
}

TaskRow problem_row(const Plan& plan, const Problem& problem, std::vector<std::string>* notes) {
  TaskRow row;
  row.name = problem.name;
  row.what = problem.what;
  // Neighbours are what is compared most closely: the machine changes from minute to minute.
  row.cells = {{Runner::Counting, 1, ""},
               {Runner::Calls, 1, ""},
               {Runner::Sequential, 1, ""},
               {Runner::Barrier, 1, ""}};
  for (const unsigned workers : plan.few) {
    if (workers == 1) continue;
    row.cells.push_back({Runner::Copies, workers, ""});
    row.cells.push_back({Runner::Barrier, workers, ""});
    row.cells.push_back({Runner::Stop, workers, ""});
  }
  const bool trees = row.name == kTrees;
  for (const unsigned workers : plan.workers) {
    const bool few = std::find(plan.few.begin(), plan.few.end(), workers) != plan.few.end();
    if (!few) row.cells.push_back({Runner::Barrier, workers, ""});
    if (workers == 1 || (!few && is_of_papers(row.name))) {
      row.cells.push_back({Runner::Stop, workers, ""});
    }
    if (few) row.cells.push_back({Runner::Deque, workers, ""});
    if (!few || !problem.with_peers) continue;
    for (const Runner peer : plan.peers) {
      if (trees && peer == Runner::Libfork) continue;
      row.cells.push_back({peer, workers, ""});
    }
  }
  if (trees) {
    notes->push_back(not_run("trees on libfork", "its frames lie where no collector looks"));
  }
  return row;
}

TaskRow latency_row() {
  TaskRow row;
  row.name = kLatency;
  row.what = "single steps of the scheduler, two workers";
  row.cells = {{Runner::Barrier, 2, ""}, {Runner::Stop, 2, ""}, {Runner::Deque, 2, ""}};
  return row;
}

// --- running -------------------------------------------------------------------------------------

const char* mode_of(Runner runner) {
  return runner == Runner::Stop ? "stop" : runner == Runner::Deque ? "deque" : "barrier";
}

// Where a cell with one worker runs: every such cell of a round on the same processor, for one that
// serves interrupts or shares its core with another guest is slower by several hundredths, and the
// kernel would leave the sequential program on one and put a worker on the other. Cells with more
// workers may use all.
std::optional<int> processor_for(const TaskCell& cell, std::size_t round) {
  const std::vector<int> usable = usable_processors();
  if (cell.workers != 1 || usable.empty()) return std::nullopt;
  return usable[round % usable.size()];
}

RunFigures run_program(const Plan& plan, const std::string& problem, const TaskCell& cell,
                       std::optional<int> processor) {
  const File out = make_memory_file("jackdaw-bench");
  const File null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Command command;
  std::string name = "tasks-latency";
  if (problem != kLatency) {
    name = fmt::format("{}-{}", problem == kTrees ? kTrees : "tasks", program_of(cell.runner));
  }
  command.file = benchmark_folder() / name;
  command.arguments = {name};
  if (problem != kLatency) {
    command.arguments.push_back(problem);
    command.arguments.push_back(std::to_string(cell.workers));
  }
  if (plan.settings.quick) command.arguments.emplace_back("--quick");
  std::vector<fs::path> preload;
  std::vector<std::string> variables;
  if (is_ours(cell.runner)) {
    variables.push_back(fmt::format("JACKDAW_TASK_MODE={}", mode_of(cell.runner)));
  } else if (problem == kTrees) {
    // One collector for all: schedulers are compared here, and not heaps.
    preload.push_back(plan.ours.path);
  }
  // On one processor: libgc counts those of the machine.
  if (cell.workers == 1) variables.emplace_back("GC_MARKERS=1");
  command.environment = environment_with(preload, variables);
  command.in = null.fd();
  command.out = out.fd();
  command.interactive = false;
  command.processor = processor;
  command.limit = std::chrono::seconds(plan.settings.limit_seconds);
  const Outcome outcome = run(command, nullptr);
  if (!outcome.succeeded()) throw Failure(kExitFailed, outcome.describe());
  const Json line = Json::parse(contents(out), nullptr, false);
  if (!line.is_object()) throw Failure(kExitFailed, "it printed something else than JSON");
  if (problem == kTrees) {
    if (is_ours(cell.runner)) {
      require_libjackdaw(line);
    } else {
      require_library(line, preload.front());
    }
  }
  if (is_ours(cell.runner) && line.value("mode", "") != mode_of(cell.runner)) {
    throw Failure(kExitFailed, fmt::format("it ran in mode {}: this machine cannot do the other",
                                           line.value("mode", "unknown")));
  }
  RunFigures figures;
  figures.seconds = line.value("time", 0.0);
  figures.peak_bytes = static_cast<double>(outcome.resident_peak_kib) * 1024;
  for (const auto& [key, value] : line.items()) {
    if (value.is_number()) figures.named[key] = value.get<double>();
  }
  return figures;
}

// The time of the slowest, the memory of all. This thread waits for those that run the copies, with
// its signals as ever: what ends the process ends them all. Their times are those that the programs
// measured themselves, for run() may be late here.
RunFigures run_copies(const Plan& plan, const std::string& problem, const TaskCell& cell) {
  const std::vector<int> usable = usable_processors();
  std::vector<std::future<RunFigures>> copies;
  for (unsigned i = 0; i < cell.workers; ++i) {
    const std::optional<int> processor =
        usable.empty() ? std::nullopt : std::optional(usable[i % usable.size()]);
    copies.push_back(std::async(std::launch::async, [&plan, &problem, processor] {
      return run_program(plan, problem, {Runner::Copies, 1, ""}, processor);
    }));
  }
  RunFigures all;
  all.named["workers"] = cell.workers;
  for (std::future<RunFigures>& copy : copies) {
    const RunFigures one = copy.get();
    all.seconds = std::max(all.seconds, one.seconds);
    all.peak_bytes += one.peak_bytes;
  }
  return all;
}

RunFigures run_cell(const Plan& plan, const std::string& problem, const TaskCell& cell, int round) {
  if (cell.runner == Runner::Copies) return run_copies(plan, problem, cell);
  const std::size_t nth = plan.rounds_before + static_cast<std::size_t>(round);
  return run_program(plan, problem, cell, processor_for(cell, nth));
}

void run_row(const Plan& plan, const std::string& prefix, TaskRow* row, Progress* progress) {
  const int rounds = plan.settings.runs;
  run_cells<TaskCell>(
      rounds,
      [&](const TaskCell& cell, int round) -> std::optional<RunFigures> {
        if (cell.runner == Runner::Counting && round > 0) return std::nullopt;
        progress->say(fmt::format("{}{}: round {} of {}, {}", prefix, row->name, round + 1, rounds,
                                  cell.key()));
        return run_cell(plan, row->name, cell, round);
      },
      &row->cells, &row->row);
}

// After each part, so that an interrupted series leaves what it has.
void save(const std::string& path, const std::optional<Json>& before, TaskResults results) {
  if (path.empty()) return;
  if (before) add_task_rounds(*before, &results);
  write_so_far(path, to_text(to_json(results)));
}

void run_parts(const Plan& plan, const std::vector<std::string>& parts,
               const std::optional<Json>& before, TaskResults* results) {
  Progress progress;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string prefix = fmt::format("[{}/{}] ", i + 1, parts.size());
    const Others others;
    if (parts[i] == kLatency) {
      results->latencies.push_back(latency_row());
      run_row(plan, prefix, &results->latencies.back(), &progress);
    }
    for (const Problem& problem : kProblems) {
      if (parts[i] != problem.name) continue;
      results->rows.push_back(problem_row(plan, problem, &results->notes));
      run_row(plan, prefix, &results->rows.back(), &progress);
    }
    if (const auto note = others.note(parts[i])) results->notes.push_back(*note);
    save(plan.settings.json, before, *results);
  }
}

int count_failures(const std::vector<TaskRow>& rows) {
  int failures = 0;
  for (const TaskRow& row : rows) {
    for (const TaskCell& cell : row.cells) {
      if (cell.failure.empty()) continue;
      fmt::print("FAILED: {}, {}: {}\n", row.name, cell.key(), cell.failure);
      ++failures;
    }
  }
  return failures;
}

}  // namespace

std::vector<std::string> work_stealing_parts() {
  std::vector<std::string> parts;
  for (const Problem& problem : kProblems) parts.emplace_back(problem.name);
  parts.emplace_back(kLatency);
  return parts;
}

int work_stealing_command(const BenchSettings& settings) {
  const std::string target = report_target(settings, "work-stealing.md");
  const std::optional<Json> before = earlier_results(settings);
  const std::vector<std::string> parts = chosen_parts(settings);
  TaskResults results;
  static_cast<Origin&>(results) = origin_now(settings.quick);
  Plan plan = make_plan(settings, &results.notes);
  results.ours = fmt::format("{} and lib/libjackdaw.so", plan.ours.portable_path());
  if (!fs::exists(benchmark_folder() / "tasks-jackdaw")) {
    throw Failure(kExitRefused, "this build has no benchmarks of tasks");
  }
  // Before minutes of runs: is it a file to add to?
  if (before) {
    TaskResults probe = results;
    add_task_rounds(*before, &probe);
    for (const TaskRow& row : probe.rows) {
      for (const auto& runs : row.row.runs) {
        plan.rounds_before = std::max(plan.rounds_before, runs.size());
      }
    }
  }
  run_parts(plan, parts, before, &results);
  const int failures = count_failures(results.rows) + count_failures(results.latencies);
  if (before) add_task_rounds(*before, &results);
  fmt::print("{}", task_page(results, {}));
  write_report(settings, target,
               {to_text(to_json(results)), task_plots(results),
                [&](const auto& plots) { return task_page(results, plots); }});
  return failures == 0 ? 0 : kExitFailed;
}

}  // namespace jackdaw

#include "reports/mostly_copying/runs.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "measure/sample.hpp"
#include "program/process.hpp"
#include "program/temporary.hpp"
#include "reports/cells.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A program that finds no memory ends so (bench/copy/run.h).
constexpr int kOutOfMemory = 3;
// A heap in which a program takes longer than this, where it takes seconds, is too small for it.
constexpr int kLongestInHeap = 30;

struct CopyRun {
  std::string program;
  const Collector& collector;
  double heap_bytes = 0;  // 0: as the collector has it
  bool live = false;
};

std::string build_of(const CopyRun& wanted) {
  // It counts objects by their sizes, and what is live in every collection.
  const bool sizes = wanted.live && wanted.collector.provider == Provider::Peer;
  return sizes ? "sizes" : wanted.collector.build;
}

fs::path file_of(const CopyRun& wanted) {
  return benchmark_folder() / fmt::format("copy-{}-{}", wanted.program, build_of(wanted));
}

std::vector<std::string> variables_of(const CopyRun& wanted, const fs::path& report,
                                      const fs::path& statistics) {
  // One marker everywhere: the paper's collectors had one.
  std::vector<std::string> variables = {"GC_MARKERS=1", "COPY_REPORT=" + report.string(),
                                        "JACKDAW_STATISTICS=" + statistics.string()};
  if (*wanted.collector.policy != '\0') {
    variables.push_back(fmt::format("JACKDAW_POLICY={}", wanted.collector.policy));
  }
  if (*wanted.collector.mixed != '\0') {
    variables.push_back(fmt::format("JACKDAW_MIXED_BLOCKS={}", wanted.collector.mixed));
  }
  if (wanted.live) {
    // A count takes as long as a collection.
    variables.emplace_back("COPY_LIVE=4");
    // The peer's says how large heaps are to be, and what is live between two collections is not
    // seen: four times as many as by default.
    if (wanted.collector.provider == Provider::Peer) {
      variables.emplace_back("GC_FREE_SPACE_DIVISOR=12");
    }
  }
  // Only a limit. With a heap of that size from the start, nothing would be collected before all
  // its blocks are in use, and in each of them something may be left.
  if (wanted.heap_bytes > 0) {
    variables.push_back(fmt::format("GC_MAXIMUM_HEAP_SIZE={:.0f}", wanted.heap_bytes));
  }
  return variables;
}

void add_numbers(const Json& json, RunFigures* figures) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (value.is_number()) figures->named[key] = value.get<double>();
  }
}

// "sizes/pointer_free/17-64/objects"
void add_sizes(const Json& line, RunFigures* figures) {
  if (!line.contains("sizes")) return;
  for (const auto& [kind, classes] : line.at("sizes").items()) {
    for (const Json& size : classes) {
      for (const char* what : {"objects", "bytes"}) {
        figures->named[fmt::format("sizes/{}/{}/{}", kind, size.at("words").get<std::string>(),
                                   what)] = size.at(what).get<double>();
      }
    }
  }
}

// A line or two of what a program said, for a message.
std::string beginning_of(const std::string& text) {
  std::string line = text.substr(0, 160);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

[[noreturn]] void fail(const CopyRun& wanted, const Outcome& outcome, const std::string& said) {
  const bool no_memory = outcome.exit_status() == kOutOfMemory ||
                         said.find("ut of memory") != std::string::npos ||
                         said.find("ut of Memory") != std::string::npos ||
                         said.find("nsufficient memory") != std::string::npos;
  if (wanted.heap_bytes > 0 && outcome.timed_out) {
    throw Failure(kExitFailed, fmt::format("{}: {}", kDoesNotFit, outcome.describe()));
  }
  if (wanted.heap_bytes > 0 && no_memory) throw Failure(kExitFailed, kDoesNotFit);
  throw Failure(kExitFailed, fmt::format("{} {}", outcome.describe(), beginning_of(said)));
}

RunFigures run_copy(const CopyPlan& plan, const CopyRun& wanted) {
  const TemporaryFile report;
  const TemporaryFile statistics;
  const File null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const File said = make_memory_file("jackdaw-bench");
  Command command;
  command.file = file_of(wanted);
  command.arguments = {command.file.filename().string(), plan.settings.quick ? "0" : "1"};
  std::vector<fs::path> preload;
  if (wanted.collector.provider == Provider::Peer) preload.push_back(plan.peer.path);
  if (wanted.collector.provider == Provider::Ours) preload.push_back(plan.ours.path);
  command.environment =
      environment_with(preload, variables_of(wanted, report.path(), statistics.path()));
  command.in = command.out = null.fd();
  command.err = said.fd();
  command.interactive = false;
  command.limit = std::chrono::seconds(wanted.heap_bytes > 0
                                           ? std::min(kLongestInHeap, plan.settings.limit_seconds)
                                           : plan.settings.limit_seconds);
  const Outcome outcome = run(command, nullptr);
  if (!outcome.succeeded()) fail(wanted, outcome, contents(said));

  std::ifstream lines(report.path());
  const Json line = Json::parse(lines, nullptr, false);
  if (!line.is_object()) throw Failure(kExitFailed, "it wrote no line of JSON");
  if (preload.empty()) {
    require_libjackdaw(line);
  } else {
    require_library(line, preload.front());
  }
  if (line.value("policy", "") != wanted.collector.policy) {
    throw Failure(kExitFailed,
                  fmt::format("it ran under the policy '{}'", line.value("policy", "")));
  }
  RunFigures figures;
  std::ifstream written(statistics.path());
  add_numbers(Json::parse(written, nullptr, false), &figures);
  add_numbers(line, &figures);
  add_sizes(line, &figures);
  // Its mark is the move.
  if (line.value("policy", "") == kMcc) figures.named["moves_in_mark"] = 1;
  figures.seconds = line.value("wall", 0.0);
  figures.collections = line.value("collections", 0.0);
  figures.heap_bytes = line.value("peak_heap", 0.0);
  figures.peak_bytes = line.value("peak_rss", 0.0);
  return figures;
}

bool ran_mcc(const CopyPlan& plan) {
  try {
    run_copy(plan, {"life", collector_named(kMccHeader)});
    return true;
  } catch (const Failure&) {
    return false;
  }
}

CopyRun cell_run(const CopyRow& row, const CopyCell& cell) {
  return {row.program, collector_named(cell.collector), row.heap_bytes, row.part == kLive};
}

}  // namespace

CopyPlan make_copy_plan(const BenchSettings& settings, std::vector<std::string>* notes) {
  CopyPlan plan{settings, our_library(settings.library), system_library(settings.peer)};
  if (!fs::exists(file_of({"life", collector_named(kPeerHeap)}))) {
    throw Failure(kExitRefused, "this build has no programs of bench/copy");
  }
  if (!fs::exists(file_of({"life", collector_named(kMccHeader)}))) {
    notes->push_back(not_run(kTheTypedHeap, "its programs were not built"));
    return plan;
  }
  BenchSettings small = settings;
  small.quick = true;
  plan.has_mcc = ran_mcc({small, plan.ours, plan.peer});
  if (!plan.has_mcc) {
    notes->push_back(not_run(kMcc, "this library does not have JACKDAW_POLICY=mcc"));
  }
  return plan;
}

CopyRow copy_row(const CopyPlan& plan, const std::string& part, const std::string& program,
                 const std::vector<std::string>& collectors, double factor, double heap_bytes) {
  CopyRow row;
  row.part = part;
  row.program = program;
  row.factor = factor;
  row.heap_bytes = heap_bytes;
  for (const std::string& key : collectors) {
    CopyCell cell{key, ""};
    if (!fs::exists(file_of(cell_run(row, cell)))) {
      cell.failure = fmt::format("{}it was not built", kNotRun);
    } else if (std::string_view(collector_named(key).policy) == kMcc && !plan.has_mcc) {
      cell.failure = fmt::format("{}the library has no such policy", kNotRun);
    }
    row.cells.push_back(std::move(cell));
  }
  row.row.runs.resize(row.cells.size());
  return row;
}

void run_copy_cells(const CopyPlan& plan, const std::string& prefix, int rounds, CopyRow* row,
                    Progress* progress) {
  run_cells<CopyCell>(
      rounds,
      [&](const CopyCell& cell, int round) {
        progress->say(fmt::format("{}{}: round {} of {}, {}", prefix, row->program, round + 1,
                                  rounds, cell.collector));
        return run_copy(plan, cell_run(*row, cell));
      },
      &row->cells, &row->row);
}

double base_of_heaps(double live_peak) {
  // The smallest limit that the libraries take.
  constexpr double kLeastBase = 64 * 1024;
  return std::max(live_peak, kLeastBase);
}

double heap_of(double base, double factor) {
  // A multiple of both libraries' blocks.
  constexpr double kStep = 16 * 1024;
  return std::ceil(base * factor / kStep) * kStep;
}

void find_least_heaps(const CopyPlan& plan, const std::string& prefix, double live,
                      const KnownToFit& fits, CopyRow* row, Progress* progress) {
  constexpr std::array kGrid = {1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5,
                                3.0, 4.0, 6.0,  8.0, 12.0, 16.0};
  for (std::size_t c = 0; c < row->cells.size(); ++c) {
    CopyCell& cell = row->cells[c];
    if (!cell.failure.empty()) continue;
    // Places on the grid: it fits at `high` and above, if that is one, and not at `low` and below.
    int low = -1;
    int high = static_cast<int>(kGrid.size());
    for (std::size_t i = 0; i < kGrid.size(); ++i) {
      const std::optional<bool> known = fits(cell.collector, kGrid[i]);
      if (known && !*known) low = static_cast<int>(i);
      if (known && *known) high = std::min(high, static_cast<int>(i));
    }
    const auto at = [&](int place) {
      CopyRun wanted = cell_run(*row, cell);
      wanted.heap_bytes = heap_of(live, kGrid.at(static_cast<std::size_t>(place)));
      progress->say(fmt::format("{}{}: the least heap, {}: {:.0f} KiB?", prefix, row->program,
                                cell.collector, wanted.heap_bytes / 1024));
      RunFigures figures = run_copy(plan, wanted);
      figures.named["least"] = wanted.heap_bytes;
      return figures;
    };
    std::optional<RunFigures> found;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      try {
        found = at(middle);
        high = middle;
      } catch (const Failure& failure) {
        cell.failure = failure.what();
        if (cell.failed()) break;  // it crashed
        cell.failure.clear();
        low = middle;
      }
    }
    if (cell.failure.empty() && !found && high < static_cast<int>(kGrid.size())) {
      try {
        found = at(high);
      } catch (const Failure& failure) {
        cell.failure = failure.what();
      }
    }
    if (cell.failure.empty() && !found) {
      cell.failure = fmt::format("{} {:g} times the live data", kDoesNotFit, kGrid.back());
    }
    if (cell.failure.empty()) row->row.runs[c].push_back(std::move(*found));
  }
}

}  // namespace jackdaw

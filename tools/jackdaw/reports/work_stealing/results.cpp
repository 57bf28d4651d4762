#include "reports/work_stealing/results.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "reports/cells.hpp"

namespace jackdaw {
namespace {

constexpr const char* kReport = "work-stealing";

using Json = nlohmann::ordered_json;

Json rows_to_json(const std::vector<TaskRow>& rows) {
  Json list = Json::array();
  for (const TaskRow& row : rows) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const TaskCell& cell = row.cells[i];
      Json described = {{"runner", name_of(cell.runner)}, {"workers", cell.workers}};
      if (!cell.failure.empty()) described["failure"] = cell.failure;
      described["runs"] = runs_to_json(row.row, i);
      cells.push_back(std::move(described));
    }
    list.push_back({{"name", row.name}, {"what", row.what}, {"cells", std::move(cells)}});
  }
  return list;
}

Runner runner_named(const std::string& name) {
  for (int i = 0; *name_of(static_cast<Runner>(i)) != '\0'; ++i) {
    if (name == name_of(static_cast<Runner>(i))) return static_cast<Runner>(i);
  }
  throw Failure(kExitUsage,
                fmt::format("--add: the file names a runner '{}', and there is none", name));
}

// Only the page is made of such a row: it has cells and runs, and nothing that could run.
TaskRow row_from(const Json& json) {
  TaskRow row;
  row.name = json.at("name");
  row.what = json.at("what");
  for (const Json& cell : json.at("cells")) {
    TaskCell read{runner_named(cell.at("runner")), cell.at("workers"), ""};
    if (cell.contains("failure")) read.failure = cell.at("failure");
    row.cells.push_back(std::move(read));
    row.row.runs.push_back(runs_from(cell));
  }
  return row;
}

// In the order of the file, then what is new.
void merge(std::vector<TaskRow> before, std::vector<TaskRow>* rows) {
  for (TaskRow& row : *rows) {
    bool known = false;
    for (TaskRow& old : before) {
      if (old.name != row.name) continue;
      add_cells_in_front(old.cells, old.row, &row.cells, &row.row);
      old = row;
      known = true;
      break;
    }
    if (!known) before.push_back(row);
  }
  *rows = std::move(before);
}

// `what`: of a note.
bool was_run(const TaskResults& results, const std::string& what) {
  for (const TaskRow& row : results.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (what == name_of(row.cells[i].runner) && has_runs(row.row, i)) return true;
    }
  }
  return false;
}

}  // namespace

const char* name_of(Runner runner) {
  switch (runner) {
    case Runner::Sequential:
      return "sequential";
    case Runner::Calls:
      return "calls";
    case Runner::Counting:
      return "counting";
    case Runner::Barrier:
      return "barrier";
    case Runner::Stop:
      return "stop";
    case Runner::Deque:
      return "deque";
    case Runner::Tbb:
      return "oneTBB";
    case Runner::OpenMp:
      return "OpenMP";
    case Runner::Taskflow:
      return "Taskflow";
    case Runner::Libfork:
      return "libfork";
    case Runner::Copies:
      return "copies";
  }
  return "";
}

bool is_ours(Runner runner) {
  return runner == Runner::Barrier || runner == Runner::Stop || runner == Runner::Deque ||
         runner == Runner::Copies;
}
bool is_peer(Runner runner) {
  return runner == Runner::Tbb || runner == Runner::OpenMp || runner == Runner::Taskflow ||
         runner == Runner::Libfork;
}

bool is_of_papers(const std::string& problem) {
  return problem == "jacobi" || problem == "lud" || problem == "heat";
}

std::string TaskCell::key() const {
  return fmt::format("{}, {} worker{}", name_of(runner), workers, workers == 1 ? "" : "s");
}

std::optional<std::size_t> TaskRow::find(Runner runner, unsigned workers) const {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].runner == runner && cells[i].workers == workers && cells[i].failure.empty()) {
      return i;
    }
  }
  return std::nullopt;
}

const TaskRow* TaskResults::find(const std::string& name) const {
  for (const TaskRow& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Json to_json(const TaskResults& results) {
  Json json = to_json(results, kReport);
  json["rows"] = rows_to_json(results.rows);
  json["latencies"] = rows_to_json(results.latencies);
  return json;
}

void add_task_rounds(const Json& json, TaskResults* results) {
  add_origin(json, kReport, results);
  read_results([&] {
    const auto read = [&json](const char* name) {
      std::vector<TaskRow> rows;
      for (const Json& described : json.at(name)) rows.push_back(row_from(described));
      return rows;
    };
    merge(read("rows"), &results->rows);
    merge(read("latencies"), &results->latencies);
  });
  drop_untrue_notes([&](const std::string& what) { return was_run(*results, what); }, results);
}

std::optional<double> lost_share(const RunFigures& f) {
  double lost = 0;
  for (const char* const part : kVictimParts) {
    const auto ticks = named(part)(f);
    if (!ticks) return std::nullopt;
    lost += *ticks;
  }
  const auto ticks = named("ticks")(f);
  const auto workers = named("workers")(f);
  if (!ticks || !workers || *ticks <= 0) return std::nullopt;
  return lost / (*ticks * *workers);
}

Figure lost_with_signals(const TaskResults& results) {
  std::optional<double> standstill;
  for (const TaskRow& row : results.latencies) {
    const auto measured = median_in(row, row.find(Runner::Barrier, 2), named("standstill"));
    if (measured) standstill = measured->median * 1e-9;
  }
  return [standstill](const RunFigures& f) -> std::optional<double> {
    const auto lost = lost_share(f);
    const auto requests = named("requests")(f);
    const auto elapsed = named("elapsed")(f);
    const auto workers = named("workers")(f);
    // Nothing, rather than a sum without the signals: there may be rounds of older programs, too.
    if (!lost || !requests || !elapsed || !workers || !standstill) return std::nullopt;
    if (*elapsed <= 0) return std::nullopt;
    return *lost + *requests * *standstill / (*elapsed * *workers);
  };
}

std::optional<Summary> median_in(const TaskRow& row, Cell cell, const Figure& figure) {
  return cell ? median_of(row.row, *cell, figure) : std::nullopt;
}
std::optional<Summary> quotient(const TaskRow& row, Cell a, Cell b, const Figure& figure) {
  return a && b ? share(row.row, *a, figure, *b, figure) : std::nullopt;
}

std::set<unsigned> workers_of(const TaskRow& row) {
  std::set<unsigned> all;
  for (const TaskCell& cell : row.cells) all.insert(cell.workers);
  return all;
}

std::optional<Summary> machine_gives(const TaskRow& row, unsigned workers) {
  return scaled(quotient(row, row.find(Runner::Barrier, 1), row.find(Runner::Copies, workers)),
                workers);
}

std::optional<double> peak(const RunFigures& f) { return f.peak_bytes; }

}  // namespace jackdaw

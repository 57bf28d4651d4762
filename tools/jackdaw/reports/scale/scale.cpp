#include "reports/scale/scale.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "figures/output.hpp"
#include "measure/catalogue.hpp"
#include "program/loader.hpp"
#include "program/places.hpp"
#include "reports/catalogue.hpp"
#include "reports/cells.hpp"
#include "reports/scale/results.hpp"

namespace jackdaw {
namespace {

using Json = nlohmann::ordered_json;

// --- what is run ---------------------------------------------------------------------------------

struct Workload {
  const char* name;
  const char* what;
};
constexpr Workload kWorkloads[] = {
    {"gcbench", "each client runs gcbench (stretch 18, long-lived 16) on trees of its own"},
    {"gcbench-big", "the same with stretch 20, long-lived 20: 68 MB live a client"},
    {"list",
     "each client builds lists of 100,000 to 300,000 cells of 16 bytes with GC_malloc, and drops "
     "them"},
    {"list-many", "the same with GC_malloc_many; on the malloc side as above"},
    {"message", "clients in a ring: chains of messages are made here, and dropped or freed there"},
    {"large", "buffers of 8 KiB to 1 MiB, every page touched, 16 of them alive a client"},
};

struct Plan {
  const BenchSettings& settings;
  Library ours;
  Library peer;
  Library glibc;
  std::optional<Library> mimalloc;
  std::optional<Library> counted;
  std::vector<unsigned> clients;  // 1, 2, 4 ... up to four for each processor
  std::vector<unsigned> markers;  // 1, 2, 4 ... up to two for each
};

std::string marker_variable(unsigned markers) { return fmt::format("GC_MARKERS={}", markers); }

std::string key_of(Server server, unsigned clients, unsigned markers) {
  std::string key =
      fmt::format("{}, {} client{}", name_of(server), clients, clients == 1 ? "" : "s");
  if (markers != 0) key += fmt::format(", {} marker{}", markers, markers == 1 ? "" : "s");
  return key;
}

ScaleCell collector_cell(const Plan& plan, Server server, unsigned clients, unsigned markers,
                         std::vector<std::string> arguments = {}) {
  return {server,
          clients,
          markers,
          {key_of(server, clients, markers),
           server == Server::Ours ? plan.ours : plan.peer,
           {marker_variable(markers)},
           std::move(arguments)}};
}

ScaleCell malloc_cell(const Plan& plan, Server server, const std::string& workload,
                      unsigned clients) {
  return {server,
          clients,
          0,
          {key_of(server, clients, 0),
           server == Server::Glibc ? plan.glibc : *plan.mimalloc,
           {},
           {workload, "malloc", std::to_string(clients)},
           plan.peer.path}};
}

ScaleRow make_row(const Plan& plan, const std::string& part, const Benchmark& benchmark) {
  ScaleRow row;
  row.part = part;
  row.row = benchmark_row(benchmark.name, benchmark.what, benchmark, plan.settings.quick,
                          plan.settings.limit_seconds);
  return row;
}

// Ours and the others in turn, so that neighbours in time are of one size.
ScaleRow workload_row(const Plan& plan, const Workload& workload) {
  ScaleRow row = make_row(plan, workload.name,
                          {workload.name, "scale", {}, {}, workload.what, false, std::nullopt});
  for (const unsigned clients : plan.clients) {
    const std::vector<std::string> arguments = {workload.name, "gc", std::to_string(clients)};
    for (const unsigned markers : plan.markers) {
      row.cells.push_back(collector_cell(plan, Server::Ours, clients, markers, arguments));
      row.cells.push_back(collector_cell(plan, Server::Peer, clients, markers, arguments));
    }
    row.cells.push_back(malloc_cell(plan, Server::Glibc, workload.name, clients));
    if (plan.mimalloc) {
      row.cells.push_back(malloc_cell(plan, Server::Mimalloc, workload.name, clients));
    }
  }
  return row;
}

// Existing benchmarks of marking, in sizes of over 200 MB.
void add_marking_rows(const Plan& plan, std::vector<ScaleRow>* rows) {
  const auto add = [&](const char* name, const char* program, std::vector<std::string> arguments,
                       const char* what) {
    ScaleRow row = make_row(plan, kMarkingPart,
                            {name, program, std::move(arguments), {}, what, false, std::nullopt});
    for (const unsigned markers : {1U, 2U}) {
      row.cells.push_back(collector_cell(plan, Server::Ours, 1, markers));
      row.cells.push_back(collector_cell(plan, Server::Peer, 1, markers));
    }
    rows->push_back(std::move(row));
  };
  add("random graph", "mark_random", {"8000000", "32"}, "8 million nodes of 32 bytes, 256 MB");
  add("tree", "mark_tree", {"ordered", "22"},
      "8.4 million nodes of 32 bytes in allocation order, 268 MB");
  add("tree, shuffled", "mark_tree", {"shuffled", "22"}, "the same nodes in random order");
  add("table", "mark_table", {"4000000"}, "4 million pairs, 264 MB");
  add("list", "mark_list", {"ordered"}, "10 million nodes of 32 bytes, 320 MB");
}

// What two threads gain where both wait for memory and nothing else.
void add_memory_rows(const Plan& plan, std::vector<ScaleRow>* rows) {
  ScaleRow row = make_row(plan, kMemoryPart, {"memory", "limit", {}, {}, "", false, std::nullopt});
  for (const unsigned threads : {1U, 2U}) {
    row.cells.push_back(collector_cell(plan, Server::Ours, threads, 1, {std::to_string(threads)}));
  }
  rows->push_back(std::move(row));
}

void add_stopping_rows(const Plan& plan, std::vector<ScaleRow>* rows) {
  const auto add = [&](const char* name, const char* running, const char* sleeping) {
    ScaleRow row = make_row(plan, kStoppingPart,
                            {name, "stop", {running, sleeping}, {}, "", false, std::nullopt});
    row.cells.push_back(collector_cell(plan, Server::Ours, 1, 1));
    row.cells.push_back(collector_cell(plan, Server::Peer, 1, 1));
    rows->push_back(std::move(row));
  };
  add("1 running", "1", "0");
  add("2 running", "2", "0");
  add("20 sleeping", "0", "20");
  add("200 sleeping", "0", "200");
}

void add_model_rows(const Plan& plan, std::vector<ScaleRow>* rows,
                    std::vector<std::string>* notes) {
  if (!plan.counted) {
    notes->push_back(not_run(kTheModel, "the counting library was not built"));
    return;
  }
  for (const char* name : {"list", "list-many", "gcbench-small", "message"}) {
    ScaleRow row = make_row(plan, kModelPart, {name, "scale", {}, {}, "", false, std::nullopt});
    for (unsigned clients = 1; clients <= 64; clients *= 2) {
      ScaleCell cell =
          collector_cell(plan, Server::Ours, clients, 2, {name, "gc", std::to_string(clients)});
      cell.setting.library = *plan.counted;
      row.cells.push_back(std::move(cell));
    }
    rows->push_back(std::move(row));
  }
}

std::optional<Library> system_malloc(const char* name) {
  const auto path = find_system_library(name, {});
  if (!path) return std::nullopt;
  Library library;
  library.path = *path;
  return library;
}

Plan make_plan(const BenchSettings& settings) {
  Plan plan{settings, our_library(settings.library), system_library(settings.peer), {}, {}, {}, {},
            {}};
  const std::optional<Library> glibc = system_malloc("libc.so.6");
  if (!glibc) throw Failure(kExitRefused, "this system has no libc.so.6");
  plan.glibc = *glibc;
  plan.mimalloc = system_malloc("libmimalloc.so.2");
  plan.counted = counting_library();
  const auto cpus = static_cast<unsigned>(std::max(this_machine().cpus, 1L));
  plan.clients = powers_up_to(4 * cpus);
  plan.markers = powers_up_to(2 * cpus);
  return plan;
}

// --- running -------------------------------------------------------------------------------------

void add_rows(const Plan& plan, const std::string& part, ScaleResults* results) {
  if (part == kMarkingPart) return add_marking_rows(plan, &results->rows);
  if (part == kMemoryPart) return add_memory_rows(plan, &results->rows);
  if (part == kStoppingPart) return add_stopping_rows(plan, &results->rows);
  if (part == kModelPart) return add_model_rows(plan, &results->rows, &results->notes);
  for (const Workload& workload : kWorkloads) {
    if (part == workload.name) results->rows.push_back(workload_row(plan, workload));
  }
}

// The rows that were run, so that an interrupted series leaves what it has. (Of the others, the
// file's rounds stay.)
void save(const std::string& path, const std::optional<Json>& before, ScaleResults results,
          std::size_t rows_run) {
  if (path.empty()) return;
  results.rows.resize(rows_run);
  if (before) add_rounds(*before, &results);
  write_so_far(path, to_text(to_json(results)));
}

void run_rows(const BenchSettings& settings, const std::optional<Json>& before,
              ScaleResults* results) {
  Progress progress;
  for (std::size_t i = 0; i < results->rows.size(); ++i) {
    ScaleRow& row = results->rows[i];
    std::vector<Setting> cells;
    cells.reserve(row.cells.size());
    for (const ScaleCell& cell : row.cells) cells.push_back(cell.setting);
    // Counts hardly differ from round to round.
    run_rounds(&row.row, cells, row.part == kModelPart ? 1 : settings.runs,
               fmt::format("[{} {}/{}] ", row.part, i + 1, results->rows.size()), &progress);
    save(settings.json, before, *results, i + 1);
  }
}

int count_failures(const ScaleResults& results) {
  int failures = 0;
  for (const ScaleRow& row : results.rows) {
    if (row.row.failure.empty()) continue;
    fmt::print("FAILED: {}, {}: {}\n", row.part, row.row.name, row.row.failure);
    ++failures;
  }
  return failures;
}

}  // namespace

std::vector<std::string> scale_parts() {
  std::vector<std::string> parts;
  for (const Workload& workload : kWorkloads) parts.emplace_back(workload.name);
  for (const char* part : {kMarkingPart, kMemoryPart, kStoppingPart, kModelPart}) {
    parts.emplace_back(part);
  }
  return parts;
}

int scale_command(const BenchSettings& settings) {
  const std::string target = report_target(settings, "scale.md");
  const std::optional<Json> before = earlier_results(settings);
  const std::vector<std::string> parts = chosen_parts(settings);
  const Plan plan = make_plan(settings);
  ScaleResults results;
  static_cast<Origin&>(results) = origin_now(settings.quick);
  results.ours = plan.ours.portable_path();
  results.peer = fmt::format("libgc {}, {}", plan.peer.version_text(), plan.peer.portable_path());
  if (!plan.mimalloc) {
    results.notes.push_back(
        not_run(name_of(Server::Mimalloc),
                "this system has none (Debian: apt-get install libmimalloc2.0)"));
  }
  for (const std::string& part : parts) add_rows(plan, part, &results);
  if (before) {
    // Whether they go together shows before the runs.
    ScaleResults trial = results;
    add_rounds(*before, &trial);
  }
  run_rows(settings, before, &results);
  if (before) add_rounds(*before, &results);

  fmt::print("{}", scale_page(results, {}));
  write_report(settings, target,
               {to_text(to_json(results)), scale_plots(results),
                [&](const auto& plots) { return scale_page(results, plots); }});
  const int failures = count_failures(results);
  return failures == 0 ? 0 : kExitFailed;
}

}  // namespace jackdaw

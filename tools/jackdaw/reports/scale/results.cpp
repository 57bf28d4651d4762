#include "reports/scale/results.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "reports/cells.hpp"

namespace jackdaw {
namespace {

constexpr const char* kReport = "scale";

using Json = nlohmann::ordered_json;

Server server_named(const std::string& name) {
  for (int i = 0; *name_of(static_cast<Server>(i)) != '\0'; ++i) {
    if (name == name_of(static_cast<Server>(i))) return static_cast<Server>(i);
  }
  throw Failure(kExitUsage,
                fmt::format("--add: the file names a server '{}', and there is none", name));
}

// Only the page is made of such a row: it has cells and runs, and nothing that could run.
ScaleRow row_from(const Json& json) {
  ScaleRow row;
  row.part = json.at("part");
  row.row.name = json.at("name");
  row.row.what = json.at("what");
  if (json.contains("failure")) row.row.failure = json.at("failure");
  for (const Json& cell : json.at("cells")) {
    ScaleCell read{};
    read.server = server_named(cell.at("server"));
    read.clients = cell.at("clients");
    read.markers = cell.at("markers");
    read.setting.key = cell.at("key");
    row.cells.push_back(std::move(read));
    row.row.runs.push_back(runs_from(cell));
  }
  return row;
}

// `what`: of a note.
bool was_run(const ScaleResults& results, const std::string& what) {
  for (const ScaleRow& row : results.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const bool is_it =
          what == (row.part == kModelPart ? kTheModel : name_of(row.cells[i].server));
      if (is_it && has_runs(row.row, i)) return true;
    }
  }
  return false;
}

}  // namespace

const char* name_of(Server server) {
  switch (server) {
    case Server::Ours:
      return "ours";
    case Server::Peer:
      return "peer";
    case Server::Glibc:
      return "glibc";
    case Server::Mimalloc:
      return "mimalloc";
  }
  return "";
}

std::optional<std::size_t> ScaleRow::find(Server server, unsigned clients, unsigned markers) const {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].server == server && cells[i].clients == clients && cells[i].markers == markers) {
      return i;
    }
  }
  return std::nullopt;
}

const ScaleRow* ScaleResults::find(const std::string& part, const std::string& name) const {
  for (const ScaleRow& row : rows) {
    if (row.part == part && row.row.name == name) return &row;
  }
  return nullptr;
}

Json to_json(const ScaleResults& results) {
  Json json = to_json(results, kReport);
  json["rows"] = Json::array();
  for (const ScaleRow& row : results.rows) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const ScaleCell& cell = row.cells[i];
      cells.push_back({{"key", cell.setting.key},
                       {"server", name_of(cell.server)},
                       {"clients", cell.clients},
                       {"markers", cell.markers},
                       {"runs", runs_to_json(row.row, i)}});
    }
    Json described = {{"part", row.part}, {"name", row.row.name}, {"what", row.row.what}};
    if (!row.row.failure.empty()) described["failure"] = row.row.failure;
    described["cells"] = std::move(cells);
    json["rows"].push_back(std::move(described));
  }
  return json;
}

void add_rounds(const Json& json, ScaleResults* results) {
  add_origin(json, kReport, results);
  read_results([&] {
    std::vector<ScaleRow> rows;
    for (const Json& described : json.at("rows")) rows.push_back(row_from(described));
    for (ScaleRow& row : results->rows) {
      bool known = false;
      for (ScaleRow& before : rows) {
        if (before.part != row.part || before.row.name != row.row.name) continue;
        known = true;
        if (!row.row.failure.empty() && before.row.failure.empty()) {
          results->notes.push_back(fmt::format("{}: failed when rounds were to be added ({})",
                                               row.row.name, row.row.failure));
          break;
        }
        // Counts of the newest run.
        if (row.part != kModelPart && before.row.failure.empty()) {
          add_cells_in_front(before.cells, before.row, &row.cells, &row.row);
        }
        before = row;
        break;
      }
      if (!known) rows.push_back(row);
    }
    results->rows = std::move(rows);
  });
  drop_untrue_notes([&](const std::string& what) { return was_run(*results, what); }, results);
}

}  // namespace jackdaw

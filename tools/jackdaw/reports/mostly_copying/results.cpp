#include "reports/mostly_copying/results.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "failure.hpp"
#include "reports/cells.hpp"

namespace jackdaw {
namespace {

constexpr const char* kReport = "mostly-copying";

using Json = nlohmann::ordered_json;

constexpr Collector kCollectors[] = {
    {kPeerHeap, "libgc", Provider::Peer, "", ""},
    {kPeerHeader, "libgc-header", Provider::Peer, "", ""},
    {kOurHeap, "libgc", Provider::Ours, "", ""},
    {kOurHeader, "libgc-header", Provider::Ours, "", ""},
    {kStayHomogeneous, "homogeneous", Provider::Typed, "non-moving", ""},
    {kStaySelf, "self", Provider::Typed, "non-moving", ""},
    {kStayHeader, "header", Provider::Typed, "non-moving", ""},
    {kEvacuateHomogeneous, "homogeneous", Provider::Typed, "evacuate", ""},
    {kEvacuateSelf, "self", Provider::Typed, "evacuate", ""},
    {kEvacuateHeader, "header", Provider::Typed, "evacuate", ""},
    {kMccSelf, "self", Provider::Typed, kMcc, ""},
    {kMccHeader, "header", Provider::Typed, kMcc, ""},
    {kStaySegregated, "header", Provider::Typed, "non-moving", "0"},
    {kEvacuateSegregated, "header", Provider::Typed, "evacuate", "0"},
};

bool same_row(const CopyRow& a, const CopyRow& b) {
  return a.part == b.part && a.program == b.program && a.factor == b.factor;
}

Json to_json(const CopyRow& row) {
  Json cells = Json::array();
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    Json cell = {{"collector", row.cells[i].collector}};
    if (!row.cells[i].failure.empty()) cell["failure"] = row.cells[i].failure;
    cell["runs"] = runs_to_json(row.row, i);
    cells.push_back(std::move(cell));
  }
  return {{"part", row.part},
          {"program", row.program},
          {"factor", row.factor},
          {"heap_bytes", row.heap_bytes},
          {"cells", std::move(cells)}};
}

CopyRow row_from(const Json& json) {
  CopyRow row;
  row.part = json.at("part");
  row.program = json.at("program");
  row.factor = json.at("factor");
  row.heap_bytes = json.at("heap_bytes");
  for (const Json& cell : json.at("cells")) {
    row.cells.push_back({cell.at("collector"), cell.value("failure", "")});
    row.row.runs.push_back(runs_from(cell));
  }
  return row;
}

// `what`: of a note.
bool was_run(const CopyResults& results, std::string_view what) {
  const auto is_it = [&](const Collector& collector) {
    return what == kTheTypedHeap ? collector.provider == Provider::Typed : what == collector.policy;
  };
  for (const CopyRow& row : results.rows) {
    for (const Collector& collector : kCollectors) {
      const auto cell = row.find(collector.key);
      if (cell && is_it(collector) && has_runs(row.row, *cell)) return true;
    }
  }
  return false;
}

}  // namespace

const Collector& collector_named(std::string_view key) {
  for (const Collector& collector : kCollectors) {
    if (key == collector.key) return collector;
  }
  throw std::out_of_range("no such collector");
}

const std::vector<std::string>& all_collectors() {
  static const std::vector<std::string> all = {kPeerHeap,     kOurHeap,        kStayHomogeneous,
                                               kStaySelf,     kStayHeader,     kEvacuateHomogeneous,
                                               kEvacuateSelf, kEvacuateHeader, kMccSelf,
                                               kMccHeader};
  return all;
}

const std::vector<std::string>& copy_programs() {
  static const std::vector<std::string> all = {"checksum", "groebner", "knuth_bendix", "lexgen",
                                               "life",     "logic",    "mergesort",    "pia"};
  return all;
}

const std::vector<double>& heap_factors(bool quick) {
  static const std::vector<double> full = {1.5, 2, 4, 8};
  static const std::vector<double> few = {2, 4};
  return quick ? few : full;
}

bool CopyCell::failed() const {
  return !failure.empty() && !failure.starts_with(kNotRun) && !failure.starts_with(kDoesNotFit);
}

std::optional<std::size_t> CopyRow::find(std::string_view collector) const {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].collector == collector && cells[i].failure.empty()) return i;
  }
  return std::nullopt;
}

const CopyCell* CopyRow::cell(std::string_view collector) const {
  for (const CopyCell& cell : cells) {
    if (cell.collector == collector) return &cell;
  }
  return nullptr;
}

const CopyRow* CopyResults::find(std::string_view part, std::string_view program,
                                 double factor) const {
  for (const CopyRow& row : rows) {
    if (row.part == part && row.program == program && row.factor == factor) return &row;
  }
  return nullptr;
}

CopyRow* CopyResults::find(std::string_view part, std::string_view program, double factor) {
  return const_cast<CopyRow*>(static_cast<const CopyResults*>(this)->find(part, program, factor));
}

Json to_json(const CopyResults& results) {
  Json rows = Json::array();
  for (const CopyRow& row : results.rows) rows.push_back(to_json(row));
  Json json = to_json(results, kReport);
  json["rows"] = std::move(rows);
  return json;
}

void add_copy_rounds(const Json& json, CopyResults* results) {
  add_origin(json, kReport, results);
  read_results([&] {
    std::vector<CopyRow> all;
    for (const Json& described : json.at("rows")) all.push_back(row_from(described));
    for (CopyRow& row : results->rows) {
      const auto old =
          std::find_if(all.begin(), all.end(), [&](const CopyRow& r) { return same_row(r, row); });
      if (old == all.end()) {
        all.push_back(std::move(row));
      } else {
        add_cells_in_front(old->cells, old->row, &row.cells, &row.row);
        *old = std::move(row);
      }
    }
    results->rows = std::move(all);
  });
  drop_untrue_notes([&](const std::string& what) { return was_run(*results, what); }, results);
}

// --- figures -------------------------------------------------------------------------------------

std::optional<double> collecting(const RunFigures& f) { return named("collecting")(f); }

std::optional<double> client(const RunFigures& f) {
  const auto collector = collecting(f);
  if (!collector) return std::nullopt;
  return std::max(0.0, f.seconds - *collector);
}

std::optional<double> cpu(const RunFigures& f) { return named("cpu")(f); }
std::optional<double> peak_resident(const RunFigures& f) { return f.peak_bytes; }

std::optional<double> stack_share(const RunFigures& f) {
  const auto stacks = named("stack_ns")(f);
  const auto pauses = collecting(f);
  if (!stacks || !pauses || *pauses <= 0) return std::nullopt;
  return (*stacks + named("pin_ns")(f).value_or(0)) / 1e9 / *pauses;
}

std::optional<Summary> median_in(const CopyRow* row, std::string_view collector,
                                 const Figure& figure) {
  if (row == nullptr) return std::nullopt;
  const auto cell = row->find(collector);
  return cell ? median_of(row->row, *cell, figure) : std::nullopt;
}

std::optional<Summary> quotient(const CopyRow* row, std::string_view a, std::string_view b,
                                const Figure& figure) {
  if (row == nullptr) return std::nullopt;
  const auto first = row->find(a);
  const auto second = row->find(b);
  return first && second ? share(row->row, *first, figure, *second, figure) : std::nullopt;
}

std::optional<double> geometric_mean(const std::vector<std::optional<Summary>>& ratios) {
  double sum = 0;
  double count = 0;
  for (const auto& ratio : ratios) {
    if (!ratio || ratio->median <= 0) continue;
    sum += std::log(ratio->median);
    count += 1;
  }
  if (count == 0) return std::nullopt;
  return std::exp(sum / count);
}

}  // namespace jackdaw

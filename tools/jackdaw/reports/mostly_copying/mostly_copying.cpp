#include "reports/mostly_copying/mostly_copying.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "figures/output.hpp"
#include "measure/others.hpp"
#include "reports/catalogue.hpp"
#include "reports/cells.hpp"
#include "reports/mostly_copying/results.hpp"
#include "reports/mostly_copying/runs.hpp"

namespace jackdaw {
namespace {

using Json = nlohmann::ordered_json;

// The run of a report: what was measured, and in which files it is kept.
struct Session {
  CopyPlan plan;
  CopyResults results;         // of this run
  std::optional<Json> before;  // the file's, with --add
  CopyResults known;           // of before
  std::string target;          // the page
  Progress progress;

  [[nodiscard]] CopyResults all() const {
    CopyResults sum = results;
    if (before) add_copy_rounds(*before, &sum);
    return sum;
  }
  // After each program, so that an interrupted series leaves what it has.
  void save() const {
    const CopyResults sum = all();
    if (!plan.settings.json.empty()) write_so_far(plan.settings.json, to_text(to_json(sum)));
    if (!target.empty()) write_so_far(target, copy_page(sum, {}));
  }
};

// The peak of what the peer's collections find live.
std::optional<double> live_peak(const Session& session, const std::string& program) {
  for (const CopyResults* results : {&session.results, &session.known}) {
    const auto peak = median_in(results->find(kLive, program), kPeerHeap, named("live_peak"));
    if (peak) return peak->median;
  }
  return std::nullopt;
}

// Once for a program: it does not change. Those of the collectors that were not measured before.
void measure_live(Session* session, const std::string& prefix, const std::string& program,
                  const std::vector<std::string>& collectors) {
  std::vector<std::string> missing;
  for (const std::string& key : collectors) {
    const CopyRow* old = session->known.find(kLive, program);
    const CopyRow* row = session->results.find(kLive, program);
    if ((old == nullptr || !old->find(key)) && (row == nullptr || row->cell(key) == nullptr)) {
      missing.push_back(key);
    }
  }
  if (missing.empty()) return;
  CopyRow more = copy_row(session->plan, kLive, program, missing);
  run_copy_cells(session->plan, prefix + "live data, ", 1, &more, &session->progress);
  CopyRow* row = session->results.find(kLive, program);
  if (row == nullptr) {
    session->results.rows.push_back(std::move(more));
    return;
  }
  row->cells.insert(row->cells.end(), more.cells.begin(), more.cells.end());
  row->row.runs.insert(row->row.runs.end(), more.row.runs.begin(), more.row.runs.end());
}

void measure(Session* session, const std::string& prefix, CopyRow row) {
  run_copy_cells(session->plan, prefix, session->plan.settings.runs, &row, &session->progress);
  session->results.rows.push_back(std::move(row));
}

// Only the peer's counts say how large the others' heaps are to be.
void measure_heaps(Session* session, const std::string& prefix, const std::string& program) {
  measure_live(session, prefix, program, {kPeerHeap});
  const std::optional<double> live = live_peak(*session, program);
  if (!live) return;  // that failed, and its cell says so
  const double base = base_of_heaps(*live);
  for (const double factor : heap_factors(session->plan.settings.quick)) {
    measure(
        session, fmt::format("{}heap of {:g} times the live data, ", prefix, factor),
        copy_row(session->plan, kHeaps, program, all_collectors(), factor, heap_of(base, factor)));
    session->save();
  }
  std::vector<std::string> missing;
  const CopyRow* old = session->known.find(kLeast, program);
  for (const std::string& key : all_collectors()) {
    if (old == nullptr || !old->find(key)) missing.push_back(key);
  }
  // With --quick it is enough to see that it works.
  if (session->plan.settings.quick && program != copy_programs().front()) return;
  if (missing.empty()) return;
  CopyRow least = copy_row(session->plan, kLeast, program, missing);
  const KnownToFit fits = [&](const std::string& key, double factor) -> std::optional<bool> {
    const CopyRow* row = session->results.find(kHeaps, program, factor);
    const CopyCell* cell = row == nullptr ? nullptr : row->cell(key);
    if (cell == nullptr || cell->failure.starts_with(kNotRun) || cell->failed()) {
      return std::nullopt;
    }
    return cell->failure.empty();
  };
  find_least_heaps(session->plan, prefix, base, fits, &least, &session->progress);
  session->results.rows.push_back(std::move(least));
}

void run_part(Session* session, const std::string& part, const std::string& prefix) {
  if (part == kResolve) {
    measure(session, prefix,
            copy_row(session->plan, part, part,
                     {kPeerHeap, kOurHeap, kStayHomogeneous, kStayHeader, kEvacuateHomogeneous,
                      kEvacuateSelf, kEvacuateHeader, kEvacuateSegregated, kMccHeader}));
    return;
  }
  if (part == kFragmentation) {
    measure(session, prefix,
            copy_row(session->plan, part, part,
                     {kPeerHeap, kOurHeap, kEvacuateHomogeneous, kEvacuateSelf, kEvacuateHeader,
                      kMccHeader}));
    return;
  }
  for (const std::string& program : copy_programs()) {
    if (part == kPrograms) {
      // Where layouts come from tells little of fragmentation.
      measure_live(session, prefix, program,
                   {kPeerHeap, kOurHeap, kStayHeader, kEvacuateHomogeneous, kEvacuateSelf,
                    kEvacuateHeader, kMccHeader});
      measure(session, prefix, copy_row(session->plan, part, program, all_collectors()));
    } else if (part == kHeader) {
      measure(
          session, prefix,
          copy_row(session->plan, part, program,
                   {kPeerHeap, kPeerHeader, kOurHeap, kOurHeader, kStayHomogeneous, kStayHeader}));
    } else if (part == kOrder) {
      measure(session, prefix,
              copy_row(session->plan, part, program,
                       {kStayHeader, kStaySegregated, kEvacuateHeader, kEvacuateSegregated}));
    } else {
      measure_heaps(session, prefix, program);
    }
    session->save();
  }
}

void run_parts(Session* session, const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Others others;
    run_part(session, parts[i], fmt::format("[{}/{}] {}: ", i + 1, parts.size(), parts[i]));
    if (const auto note = others.note(parts[i])) session->results.notes.push_back(*note);
    session->save();
  }
  session->progress.clear();
}

int count_failures(const CopyResults& results) {
  int failures = 0;
  for (const CopyRow& row : results.rows) {
    for (const CopyCell& cell : row.cells) {
      if (!cell.failed()) continue;
      fmt::print("FAILED: {}, {}, {}: {}\n", row.part, row.program, cell.collector, cell.failure);
      ++failures;
    }
  }
  return failures;
}

}  // namespace

std::vector<std::string> mostly_copying_parts() {
  return {kPrograms, kHeader, kHeaps, kOrder, kResolve, kFragmentation};
}

int mostly_copying_command(const BenchSettings& settings) {
  std::optional<Json> before = earlier_results(settings);
  const std::vector<std::string> parts = chosen_parts(settings);
  const std::string target = report_target(settings, "mostly-copying.md");
  std::vector<std::string> notes;
  Session session{make_copy_plan(settings, &notes), {}, {}, {}, target, {}};
  CopyResults& results = session.results;
  static_cast<Origin&>(results) = origin_now(settings.quick);
  results.ours = fmt::format("libgc {}, {}, and the typed heap of lib/libjackdaw.so",
                             session.plan.ours.version_text(), session.plan.ours.portable_path());
  results.peer = fmt::format("libgc {}, {}", session.plan.peer.version_text(),
                             session.plan.peer.portable_path());
  results.notes = std::move(notes);
  if (before) {
    session.before = std::move(before);
    // Before minutes of runs: is it a file to add to?
    static_cast<Origin&>(session.known) = results;
    add_copy_rounds(*session.before, &session.known);
  }
  run_parts(&session, parts);
  const int failures = count_failures(results);
  const CopyResults all = session.all();
  fmt::print("{}", copy_page(all, {}));
  write_report(settings, target, {to_text(to_json(all)), copy_plots(all), [&](const auto& plots) {
                                    return copy_page(all, plots);
                                  }});
  return failures == 0 ? 0 : kExitFailed;
}

}  // namespace jackdaw

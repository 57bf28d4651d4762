#include "reports/cache_misses.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "figures/output.hpp"
#include "measure/catalogue.hpp"
#include "measure/origin.hpp"
#include "measure/rounds.hpp"
#include "measure/sample.hpp"
#include "page/report.hpp"
#include "program/places.hpp"
#include "program/process.hpp"

namespace jackdaw {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kOneMarker = "GC_MARKERS=1";
constexpr const char* kIncremental = "GC_ENABLE_INCREMENTAL=1";
constexpr const char* kNoPrefetch = "JACKDAW_MARK_STRATEGY=none";
constexpr const char* kOnGrey = "JACKDAW_MARK_STRATEGY=on-grey";
constexpr const char* kRing = "JACKDAW_MARK_STRATEGY=ring";

// The settings of the paper's tables, by place in settings_for().
enum SettingPlace : std::size_t { kNormal, kTimed, kEager, kGrey, kRinged, kPeer };

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
  int rounds = 5;
  Origin origin;
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
    row.failure = "not run: there is no gs here (Debian: apt-get install ghostscript)";
  } else if (!preload) {
    row.failure = "not run: lib/libjackdaw-malloc.so was not built";
  } else if (!fs::exists(drawing)) {
    row.failure = "not run: " + drawing.filename().string() + " is not installed";
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

// --- cells ---------------------------------------------------------------------------------------

// How much longer than `of`; negative: shorter.
std::optional<Summary> longer(const Row& row, std::size_t setting, std::size_t of) {
  std::optional<Summary> s = share(row, setting, whole, of, whole);
  if (s) *s = {s->median - 1, s->least - 1, s->most - 1, s->count};
  return s;
}

std::optional<Summary> shorter(const Row& row, std::size_t setting, std::size_t of) {
  std::optional<Summary> s = longer(row, setting, of);
  if (s) *s = {-s->median, -s->most, -s->least, s->count};
  return s;
}

std::optional<double> mark(const RunFigures& f) { return f.mark_seconds; }
std::optional<double> finding(const RunFigures& f) {
  if (!f.finding_seconds) return std::nullopt;
  return *f.finding_seconds + f.sweep_seconds.value_or(0);
}
std::optional<double> clearing(const RunFigures& f) { return f.clearing_seconds; }
std::optional<double> heap_mib(const RunFigures& f) { return f.heap_bytes / (1 << 20); }
std::optional<double> peak_mib(const RunFigures& f) { return f.peak_bytes / (1 << 20); }
std::optional<double> collections(const RunFigures& f) { return f.collections; }

// --- the tables ----------------------------------------------------------------------------------

Table paper_table(const std::vector<Row>& rows) {
  Table table({"program", "normal", "mark", "sweep: finding", "sweep: clearing", "eager sweep",
               "on-grey", "ring"});
  for (const Row& row : rows) {
    if (!row.failure.empty()) {
      table.add({row.name, row.failure});
      continue;
    }
    table.add({row.name, show_figure(median_of(row, kNormal, whole), " s"),
               show_percent(share(row, kNormal, mark, kNormal, whole)),
               show_percent(share(row, kTimed, finding, kNormal, whole)),
               show_percent(share(row, kTimed, clearing, kNormal, whole)),
               show_percent(longer(row, kEager, kNormal)),
               show_percent(shorter(row, kGrey, kNormal)),
               show_percent(shorter(row, kRinged, kNormal))});
  }
  return table;
}

Table likeness_table(const std::vector<Row>& rows, const std::vector<Setting>& settings) {
  std::vector<std::string> headings = {"program"};
  for (const Setting& setting : settings) headings.push_back(setting.key);
  Table table(headings);
  for (const Row& row : rows) {
    if (!row.failure.empty()) continue;
    std::vector<std::string> cells = {row.name};
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      cells.push_back(fmt::format("{}, {}", show_figure(median_of(row, s, heap_mib), " MiB"),
                                  show_figure(median_of(row, s, collections), "")));
    }
    table.add(cells);
  }
  return table;
}

Table peer_table(const std::vector<Row>& rows) {
  Table table({"program", "peer", "mark", "collections", "peak memory", "normal / peer",
               "ring / peer", "peak: ring / peer"});
  for (const Row& row : rows) {
    if (!row.failure.empty() || row.runs.size() <= kPeer) continue;
    table.add({row.name, show_figure(median_of(row, kPeer, whole), " s"),
               show_percent(share(row, kPeer, mark, kPeer, whole)),
               show_figure(median_of(row, kPeer, collections), ""),
               show_figure(median_of(row, kPeer, peak_mib), " MiB"),
               show_ratio(share(row, kNormal, whole, kPeer, whole)),
               show_ratio(share(row, kRinged, whole, kPeer, whole)),
               show_ratio(share(row, kRinged, peak_mib, kPeer, peak_mib))});
  }
  return table;
}

// The marking rows' settings: without timed and eager, which make no difference there.
enum MarkingPlace : std::size_t { kMarkNone, kMarkGrey, kMarkRing, kMarkPeer };

Table marking_table(const std::vector<Row>& rows, double miss_ns) {
  Table table({"heap", "none", "on-grey", "ring", "peer", "ring / none", "ring / peer",
               "ring, in independent misses"});
  for (const Row& row : rows) {
    if (!row.failure.empty()) {
      table.add({row.name, row.failure});
      continue;
    }
    const std::optional<Summary> ring = median_of(row, kMarkRing, whole);
    table.add({row.name, show_figure(median_of(row, kMarkNone, whole), " ns"),
               show_figure(median_of(row, kMarkGrey, whole), " ns"), show_figure(ring, " ns"),
               show_figure(median_of(row, kMarkPeer, whole), " ns"),
               show_ratio(share(row, kMarkRing, whole, kMarkNone, whole)),
               show_ratio(share(row, kMarkRing, whole, kMarkPeer, whole)),
               ring && miss_ns > 0 ? fmt::format("{:.2f}", ring->median / miss_ns) : "-"});
  }
  return table;
}

// --- the limit -----------------------------------------------------------------------------------

struct Limit {
  Table table{{"probe of the memory system", "figure"}};
  double independent_ns = 0;
  std::string failure;
};

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

struct Simulation {
  std::string markdown;
  std::string failure;
};

// bench/cachegrind.py's table: misses do not depend on the machine there.
Simulation simulate(const Plan& plan, Progress* progress) {
  const std::optional<fs::path> python = find_program("python3");
  if (!python) return {"", "not run: there is no python3 here"};
  if (!find_program("valgrind")) {
    return {"", "not run: there is no valgrind here (Debian: apt-get install valgrind)"};
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

struct Results {
  std::vector<Setting> settings;
  std::vector<Row> programs;
  std::vector<Row> marking;
  Limit limit;
  Simulation simulation;
};

std::string conditions(const Plan& plan) {
  return fmt::format(
      "{}runs     {} of each setting in turn, each in its own process; medians "
      "(smallest..largest);\n         fractions and ratios are taken round by round\n",
      to_text(plan.origin), plan.rounds);
}

std::string markdown(const Plan& plan, const Results& results,
                     const std::vector<std::string>& plots) {
  std::string text =
      fmt::format("# Cache misses\n\nWritten by `jackdaw bench cache-misses{}`.\n\n```\n{}```\n\n",
                  plan.settings.quick ? " --quick" : "", conditions(plan));
  text +=
      "After Boehm, \"Reducing Garbage Collector Cache Misses\" (ISMM 2000). *normal* is the "
      "paper's: lazy sweep, no prefetch. Every setting runs with one marker.\n\n## Fractions of "
      "the whole run\n\n*mark*, *sweep*: of the normal run's time; *finding* is what looking at "
      "the records in a collection and for free slots at allocation takes, *clearing* the zeroing "
      "of free slots. *eager sweep*: how much longer the run takes when both are done in the "
      "collection. *on-grey*, *ring*: how much shorter with that marking strategy. *ring* is the "
      "default, which takes turns without the ring and keeps to what was quicker "
      "(JACKDAW_MARK_TURN); only in the simulated cache it always has the ring. Ghostscript draws "
      "this repository's bench/ghostscript/drawing.ps, since no package has its examples.\n\n";
  text += paper_table(results.programs).markdown();
  text +=
      "\nThe paper's own figures are not beside them: its tables were not to be had where this "
      "was written, and none are quoted from memory. *incremental*: most collections are partial, "
      "on "
      "the peer as well (GC_ENABLE_INCREMENTAL); its own count of them and their time include the "
      "steps of a collection.\n";
  for (const std::string& plot : plots) text += fmt::format("\n![]({})\n", plot);
  text +=
      "\n## Like with like\n\nPeak heap (the peer's is its size at the end, which is all that it "
      "tells) and number of collections under each setting.\n\n";
  text += likeness_table(results.programs, results.settings).markdown();
  text +=
      "\n## The peer\n\nIts only like settings are the heap's first size and one marker; its "
      "marker prefetches on grey.\n\n";
  text += peer_table(results.programs).markdown();
  text += "\n## Marking\n\nNanoseconds an object, one marker.\n\n";
  text += marking_table(results.marking, results.limit.independent_ns).markdown();
  text += "\n## The limit\n\nMeasured in the same run.\n\n";
  text += results.limit.failure.empty() ? results.limit.table.markdown()
                                        : "FAILED: " + results.limit.failure + "\n";
  text += "\n## In a simulated cache\n\n";
  text += results.simulation.failure.empty() ? results.simulation.markdown
                                             : results.simulation.failure + "\n";
  return text;
}

Json row_json(const Row& row, const std::vector<Setting>& settings) {
  Json json = {{"name", row.name}, {"what", row.what}};
  if (!row.failure.empty()) json["failure"] = row.failure;
  for (std::size_t s = 0; s < row.runs.size(); ++s) {
    for (const RunFigures& run : row.runs[s]) json["runs"][settings[s].key].push_back(to_json(run));
  }
  return json;
}

std::vector<Plot> plots_of(const Results& results) {
  Bars speed{"Share of the normal run that is saved", "%", {"on-grey", "ring"}, {}};
  for (const Row& row : results.programs) {
    const auto grey = shorter(row, kGrey, kNormal);
    const auto ring = shorter(row, kRinged, kNormal);
    if (grey && ring) speed.groups.push_back({row.name, {grey->median * 100, ring->median * 100}});
  }
  Bars marking{"Marking, nanoseconds an object", "ns", {"none", "on-grey", "ring", "peer"}, {}};
  for (const Row& row : results.marking) {
    std::vector<double> values;
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      if (const auto value = median_of(row, s, whole)) values.push_back(value->median);
    }
    if (values.size() == marking.series.size()) marking.groups.push_back({row.name, values});
  }
  return {{"-saved", speed}, {"-marking", marking}};
}

void run_all(std::vector<Row>* rows, const std::vector<Setting>& settings, int rounds,
             const std::string& what, Progress* progress) {
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (!(*rows)[i].failure.empty()) continue;
    std::vector<Setting> chosen = settings;
    if ((*rows)[i].ours_only) chosen.pop_back();
    run_rounds(&(*rows)[i], chosen, rounds, fmt::format("[{} {}/{}] ", what, i + 1, rows->size()),
               progress);
  }
}

}  // namespace

int cache_misses_command(const BenchSettings& settings) {
  Plan plan{settings, our_library(settings.library), system_library(settings.peer), settings.runs,
            origin_now(settings.quick)};
  plan.origin.ours = plan.ours.portable_path();
  plan.origin.peer =
      fmt::format("libgc {}, {}", plan.peer.version_text(), plan.peer.portable_path());
  const std::string target = report_target(settings, "cache-misses.md");
  fmt::print("{}\n", conditions(plan));
  std::fflush(stdout);
  Results results;
  results.settings = settings_for(plan.ours, plan.peer);
  const std::vector<Setting> marking_settings = {results.settings[kNormal], results.settings[kGrey],
                                                 results.settings[kRinged],
                                                 results.settings[kPeer]};
  {
    Progress progress;
    results.limit = measure_limit(plan, &progress);
    results.programs = program_rows(plan);
    run_all(&results.programs, results.settings, plan.rounds, "programs", &progress);
    results.marking = marking_rows(plan);
    run_all(&results.marking, marking_settings, plan.rounds, "marking", &progress);
    results.simulation = simulate(plan, &progress);
  }

  fmt::print("fractions of the normal run\n{}\n", paper_table(results.programs).text());
  fmt::print("peak heap, collections\n{}\n",
             likeness_table(results.programs, results.settings).text());
  fmt::print("the peer\n{}\n", peer_table(results.programs).text());
  fmt::print("marking\n{}\n", marking_table(results.marking, results.limit.independent_ns).text());
  fmt::print("the limit\n{}\n", results.limit.table.text());
  fmt::print("in a simulated cache\n{}{}\n", results.simulation.markdown,
             results.simulation.failure);
  if (!target.empty()) {
    write_file(target, markdown(plan, results, draw_plots(plots_of(results), target)));
    fmt::print("\nwritten: {}\n", target);
  }
  if (!settings.json.empty()) {
    Json json = to_json(plan.origin, "cache-misses");
    json["rounds"] = plan.rounds;
    json["independent_miss_ns"] = results.limit.independent_ns;
    for (const Row& row : results.programs) {
      json["programs"].push_back(row_json(row, results.settings));
    }
    for (const Row& row : results.marking) {
      json["marking"].push_back(row_json(row, marking_settings));
    }
    write_file(settings.json, to_text(json));
  }
  int failures = results.limit.failure.empty() ? 0 : 1;
  if (results.simulation.failure.starts_with("cachegrind.py")) ++failures;
  for (const std::vector<Row>* rows : {&results.programs, &results.marking}) {
    for (const Row& row : *rows) {
      if (!row.failure.empty() && !row.failure.starts_with("not run")) ++failures;
    }
  }
  if (failures != 0) fmt::print("\n{} rows failed\n", failures);
  return failures == 0 ? 0 : kExitFailed;
}

}  // namespace jackdaw

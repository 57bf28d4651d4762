// `jackdaw bench`: each benchmark on our libgc and on a peer's, in turn, each run in a process of
// its own. The programs (bench/) print one line of JSON with their figures; peak memory and the
// process's time are taken here. All figures are such that less is better.
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.hpp"
#include "failure.hpp"
#include "figures/output.hpp"
#include "figures/statistics.hpp"
#include "figures/table.hpp"
#include "figures/units.hpp"
#include "measure/catalogue.hpp"
#include "measure/origin.hpp"
#include "measure/pairs.hpp"
#include "measure/sample.hpp"
#include "program/loader.hpp"
#include "program/places.hpp"
#include "program/process.hpp"
#include "reports/catalogue.hpp"

namespace jackdaw {
namespace {

using Json = nlohmann::ordered_json;

Side libgc_side(const char* key, const Benchmark& b, const Library& library) {
  return {key, library.path, {library.path}, b.arguments, {}, {}, ""};
}

// Nothing if the system has no such library. The program is linked with libgc all the same, and
// gets the peer's.
std::optional<Side> rival_side(const char* key, const Rival& rival, const Library& peer) {
  const auto path = find_system_library(rival.library, {});
  if (!path) return std::nullopt;
  return Side{key, *path, {*path, peer.path}, rival.arguments, {}, {}, ""};
}

void run_benchmark_pairs(const Benchmark& b, const std::string& prefix,
                         const BenchSettings& settings, std::array<Side*, 2> sides,
                         Progress* progress) {
  // The warm-up is a small one: it brings the files into memory and shows early what cannot run.
  const int warm_ups = settings.quick ? 0 : 1;
  run_pairs(warm_ups, settings.runs, sides, [&](const Side& side, int pair) {
    const bool warming_up = pair < 0;
    progress->say(warming_up ? fmt::format("{}{}: warming up, {}", prefix, b.name, side.key)
                             : fmt::format("{}{}: pair {} of {}, {}", prefix, b.name, pair + 1,
                                           settings.runs, side.key));
    return run_benchmark({b, side.measured, side.preload, side.arguments, side.variables,
                          settings.quick || warming_up, settings.limit_seconds});
  });
}

// --- the report ----------------------------------------------------------------------------------

std::string show(double value, const std::string& unit) {
  if (unit == "s") return show_seconds(value);
  if (unit == "B") return show_bytes(value);
  return unit.empty() ? show_number(value) : fmt::format("{} {}", show_number(value), unit);
}

std::vector<double> column(const Side& side, std::size_t figure) {
  std::vector<double> values;
  values.reserve(side.samples.size());
  for (const Sample& sample : side.samples) values.push_back(sample.values.at(figure));
  return values;
}

Json describe(const Benchmark& b) {
  Json json;
  json["name"] = b.name;
  json["what"] = b.what;
  json["program"] = b.program;
  json["arguments"] = b.arguments;
  json["environment"] = b.variables;
  if (b.rival) json["rival"] = {{"library", b.rival->library}, {"arguments", b.rival->arguments}};
  return json;
}

Json leave_out(const Benchmark& b, Table* table) {
  Json json = describe(b);
  json["left_out"] = fmt::format("this system has no {} (Debian: apt-get install {})",
                                 b.rival->library, b.rival->package);
  table->add({b.name, "left out: " + json["left_out"].get<std::string>()});
  return json;
}

Json report(const Benchmark& b, const Side& ours, const Side& peer, Table* table) {
  Json json = describe(b);
  for (const Side* side : {&ours, &peer}) {
    if (side->failure.empty()) continue;
    json["failure"][side->key] = side->failure;
    table->add({b.name, fmt::format("FAILED on {}: {}", side->key, side->failure)});
  }
  if (json.contains("failure")) return json;
  json["facts"] = {{ours.key, ours.samples.back().facts}, {peer.key, peer.samples.back().facts}};
  json["figures"] = Json::array();
  const std::vector<FigureName>& names = ours.samples.front().names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<double> a = column(ours, i);
    const std::vector<double> b_values = column(peer, i);
    Json figure = {{"name", names[i].name},
                   {"unit", names[i].unit},
                   {ours.key, to_json(summarize(a))},
                   {peer.key, to_json(summarize(b_values))}};
    figure[ours.key]["samples"] = a;
    figure[peer.key]["samples"] = b_values;
    const std::optional<Summary> ratio = ratio_of(a, b_values);
    figure["ratio"] = to_json(ratio);
    const auto spread = [&](const std::vector<double>& values) {
      return show_spread(summarize(values),
                         [&](double value) { return show(value, names[i].unit); });
    };
    table->add(
        {i == 0 ? b.name : "", names[i].name, spread(a), spread(b_values), show_ratio(ratio)});
    json["figures"].push_back(std::move(figure));
  }
  return json;
}

void list_benchmarks(const std::vector<Benchmark>& chosen) {
  std::size_t width = 0;
  for (const Benchmark& b : chosen) width = std::max(width, b.name.size());
  for (const Benchmark& b : chosen) fmt::print("{:<{}}  {}\n", b.name, width, b.what);
}

std::string conditions(const BenchSettings& settings, Origin origin, const Library& ours,
                       const std::string& our_path, const Library& peer,
                       const std::string& peer_path) {
  origin.ours = fmt::format("libgc {}, {}", ours.version_text(), our_path);
  for (const std::string& variable : settings.variables) origin.ours += ", with " + variable;
  origin.peer = fmt::format("libgc {}, {}", peer.version_text(), peer_path);
  return fmt::format(
      "{}runs     {} of each in turn{}, each in its own process; medians (smallest..largest);\n"
      "         ratio: ours / peer, pair by pair; less is better\n",
      to_text(origin), settings.runs,
      settings.quick ? " with --quick: small sizes, the figures mean nothing"
                     : " after a small warm-up");
}

void require_two_files(const BenchSettings& settings) {
  if (settings.json.empty() || settings.markdown.empty()) return;
  std::error_code error;
  const auto json =
      std::filesystem::weakly_canonical(std::filesystem::absolute(settings.json, error), error);
  const auto markdown =
      std::filesystem::weakly_canonical(std::filesystem::absolute(settings.markdown, error), error);
  const bool is_device =  // /dev/null takes both
      std::filesystem::is_character_file(std::filesystem::status(json, error));
  if (json != markdown || is_device) return;
  throw Failure(kExitUsage, "--json and --markdown name the same file");
}

void require_assignments(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos && equals != 0) continue;
    throw Failure(kExitUsage, fmt::format("--set wants NAME=VALUE, not '{}'", variable));
  }
}

[[noreturn]] void complain_of_add() {
  throw Failure(kExitUsage, "--add is for the reports " + reports_with_parts());
}

}  // namespace

int bench_command(const BenchSettings& settings) {
  require_writable(settings.json, kExitRefused);
  require_writable(settings.markdown, kExitRefused);
  require_two_files(settings);
  require_assignments(settings.variables);
  if (const Report* report = chosen_report(settings); report != nullptr) {
    chosen_parts(settings);  // throws if one is none
    if (settings.list) {
      fmt::print("{}", description_of(*report));
      return 0;
    }
    if (settings.add && report->parts == nullptr) complain_of_add();
    if (!settings.variables.empty()) {
      throw Failure(kExitUsage, "--set is for benchmarks; reports have settings of their own");
    }
    return report->run(settings);
  }
  if (settings.add) complain_of_add();
  const std::vector<Benchmark> chosen = choose_benchmarks(settings.names);
  if (settings.list) {
    list_benchmarks(chosen);
    if (settings.names.empty()) fmt::print("\nReports, by their names:\n{}", list_of_reports());
    return 0;
  }
  const Library ours = our_library(settings.library);
  const Library peer = system_library(settings.peer);
  const Origin origin = origin_now(settings.quick);
  fmt::print("{}\n",
             conditions(settings, origin, ours, ours.path.string(), peer, peer.path.string()));
  std::fflush(stdout);

  Json json;
  json["format"] = 1;
  json["machine"] = to_json(origin.machine);
  json["days"] = origin.days;
  json["ours"] = {{"path", ours.portable_path()}, {"version", ours.version_text()}};
  if (!settings.variables.empty()) json["ours"]["environment"] = settings.variables;
  json["peer"] = {{"path", peer.portable_path()}, {"version", peer.version_text()}};
  json["runs"] = settings.runs;
  json["quick"] = settings.quick;
  json["benchmarks"] = Json::array();
  Table table({"benchmark", "figure", "ours", "peer", "ratio"});
  const std::string heading =
      conditions(settings, origin, ours, ours.portable_path(), peer, peer.portable_path());
  const auto write_files = [&](auto write) {
    if (!settings.json.empty()) write(settings.json, to_text(json));
    if (settings.markdown.empty()) return;
    write(settings.markdown,
          fmt::format("# Benchmarks\n\nWritten by `jackdaw bench --markdown`.\n\n"
                      "```\n{}```\n\n{}",
                      heading, table.markdown()));
  };
  int failures = 0;
  {
    Progress progress;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Side a = libgc_side("ours", chosen[i], ours);
      a.variables = settings.variables;
      std::optional<Side> b = chosen[i].rival ? rival_side("peer", *chosen[i].rival, peer)
                                              : libgc_side("peer", chosen[i], peer);
      if (b) {
        run_benchmark_pairs(chosen[i], fmt::format("[{}/{}] ", i + 1, chosen.size()), settings,
                            {&a, &*b}, &progress);
      }
      json["benchmarks"].push_back(b ? report(chosen[i], a, *b, &table)
                                     : leave_out(chosen[i], &table));
      if (json["benchmarks"].back().contains("failure")) ++failures;
      // After each, so that an interrupted series leaves what it has.
      write_files(write_so_far);
    }
  }
  fmt::print("{}", table.text());
  write_files(write_file);
  if (failures == 0) return 0;
  fmt::print("\n{} of {} benchmarks failed\n", failures, chosen.size());
  return kExitFailed;
}

}  // namespace jackdaw

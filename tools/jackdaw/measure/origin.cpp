#include "measure/origin.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "failure.hpp"

namespace jackdaw {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 2;

// Those of a file, and then what it lacks.
std::vector<std::string> joined(std::vector<std::string> before,
                                const std::vector<std::string>& now) {
  for (const std::string& line : now) {
    if (std::find(before.begin(), before.end(), line) == before.end()) before.push_back(line);
  }
  return before;
}

std::vector<std::string> lines(const Json& file, const char* name) {
  return file.value(name, std::vector<std::string>{});
}

constexpr std::string_view kNotRunSince = ": not run, since ";

// What a note says was not run.
std::optional<std::string> unrun(const std::string& note) {
  const std::size_t end = note.find(kNotRunSince);
  if (end == std::string::npos) return std::nullopt;
  return note.substr(0, end);
}

}  // namespace

std::string not_run(const std::string& what, const std::string& why) {
  return fmt::format("{}{}{}", what, kNotRunSince, why);
}

void drop_untrue_notes(const std::function<bool(const std::string& what)>& was_run,
                       Origin* origin) {
  std::erase_if(origin->notes, [&](const std::string& note) {
    const std::optional<std::string> what = unrun(note);
    return what && was_run(*what);
  });
}

Origin origin_now(bool quick) {
  Origin origin;
  origin.machine = this_machine();
  origin.quick = quick;
  origin.days = {fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
  return origin;
}

std::string to_text(const Origin& origin) {
  std::string text = to_text(origin.machine);
  if (!origin.days.empty()) text += fmt::format("measured {}\n", fmt::join(origin.days, ", "));
  if (!origin.ours.empty()) text += fmt::format("ours     {}\n", origin.ours);
  if (!origin.peer.empty()) text += fmt::format("peer     {}\n", origin.peer);
  return text;
}

Json to_json(const Origin& origin, const std::string& report) {
  Json json = {{"format", kFormat},
               {"report", report},
               {"machine", to_json(origin.machine)},
               {"quick", origin.quick},
               {"days", origin.days}};
  if (!origin.ours.empty()) json["ours"] = origin.ours;
  if (!origin.peer.empty()) json["peer"] = origin.peer;
  json["notes"] = origin.notes;
  return json;
}

void add_origin(const Json& file, const std::string& report, Origin* origin) {
  if (!file.is_object()) {
    throw Failure(kExitUsage, "--add: the file that --json names holds no results");
  }
  try {
    if (file.at("report") != report) {
      throw Failure(kExitUsage, "--add: the file holds the results of something else");
    }
    if (file.at("format") != kFormat) {
      throw Failure(kExitUsage, "--add: the file is of another version of jackdaw; use a new one");
    }
    if (file.at("machine") != to_json(origin->machine)) {
      throw Failure(kExitUsage, "--add: the file's results are of another machine");
    }
    if (file.at("quick") != origin->quick) {
      throw Failure(kExitUsage, "--add: the file's results are of another size (--quick)");
    }
    if (file.value("ours", "") != origin->ours || file.value("peer", "") != origin->peer) {
      throw Failure(kExitUsage, "--add: the file's results are of another library");
    }
    origin->days = joined(lines(file, "days"), origin->days);
    std::vector<std::string> notes = lines(file, "notes");
    std::erase_if(notes, [&](const std::string& before) {
      const auto what = unrun(before);
      return what && std::any_of(origin->notes.begin(), origin->notes.end(),
                                 [&](const std::string& now) { return unrun(now) == what; });
    });
    origin->notes = joined(std::move(notes), origin->notes);
  } catch (const Json::exception& e) {
    throw Failure(kExitUsage, fmt::format("--add: {}", e.what()));
  }
}

}  // namespace jackdaw

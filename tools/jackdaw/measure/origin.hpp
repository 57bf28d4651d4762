// Where a report's rounds come from. Files of reports begin with it, and rounds that go together
// have the same one.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/machine.hpp"

namespace jackdaw {

struct Origin {
  Machine machine;
  bool quick = false;
  // The libraries; empty where the report names none.
  std::string ours;
  std::string peer;
  std::vector<std::string> days;   // on which rounds were measured, in UTC: 2026-11-23
  std::vector<std::string> notes;  // what could not be measured
};

// A note that something was not run at all: "oneTBB: not run, since it was not built".
std::string not_run(const std::string& what, const std::string& why);
// Drops those of something that was run after all: when other rounds were added to these.
void drop_untrue_notes(const std::function<bool(const std::string& what)>& was_run, Origin* origin);

// Of what is measured now, on this machine.
Origin origin_now(bool quick);

std::string to_text(const Origin& origin);

nlohmann::ordered_json to_json(const Origin& origin, const std::string& report);
// Adds the days and notes of a file that begins with what to_json made. (Of two notes that the same
// was not run, that of now stays.) Throws Failure if its
// rounds may not be added to these: those of another report, machine, library or size.
void add_origin(const nlohmann::ordered_json& file, const std::string& report, Origin* origin);

}  // namespace jackdaw

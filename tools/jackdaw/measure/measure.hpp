// A run of a program under the probe (probe/probe.c), and what it measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "program/places.hpp"
#include "program/process.hpp"

namespace jackdaw {

// What is not measured is absent, never zero; `notes` says why.
struct Measurement {
  Outcome outcome;
  std::string library;  // the file that was in the process
  std::string version;

  std::optional<std::uint64_t> collections;
  std::optional<std::uint64_t> timed_collections;  // those whose beginning and end were reported
  std::optional<double> collection_seconds;
  std::optional<double> longest_collection_seconds;
  std::optional<std::uint64_t> pauses;
  std::optional<double> pause_seconds;
  std::optional<double> longest_pause_seconds;
  std::optional<std::uint64_t> allocated_bytes;
  std::optional<std::uint64_t> heap_peak_bytes;
  std::uint64_t resident_peak_bytes = 0;

  std::vector<std::string> notes;

  // Seconds in collections for each second of the run.
  [[nodiscard]] std::optional<double> collector_share() const;
};

// Runs a program on a library under the probe. The command's environment is made here:
// the probe and the library are preloaded, `variables` are set.
struct MeasuredRun {
  Command command;
  Library library;
  std::vector<std::string> variables;
  bool serves_malloc = false;  // the library is the one that does
};
Measurement run_measured(const MeasuredRun& request);

// For people: the lines after the headline.
std::string to_text(const Measurement& m);
nlohmann::ordered_json to_json(const Measurement& m);

}  // namespace jackdaw

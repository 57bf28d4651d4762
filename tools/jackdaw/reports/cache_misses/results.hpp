// What `jackdaw bench cache-misses` measured, between its runs (cache_misses.cpp) and its page
// (page.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "figures/table.hpp"
#include "measure/origin.hpp"
#include "measure/rounds.hpp"
#include "page/report.hpp"

namespace jackdaw {

// The places of a row's settings, in the rows of programs, which are the paper's tables, and in
// those of marking: timing and eagerness make no difference there.
enum ProgramPlace : std::size_t { kNormal, kTimed, kEager, kGrey, kRinged, kPeer };
enum MarkingPlace : std::size_t { kMarkNone, kMarkGrey, kMarkRing, kMarkPeer };

// The memory system's limit.
struct Limit {
  Table table{{"probe of the memory system", "figure"}};
  double independent_ns = 0;  // of one independent miss; 0: not measured
  std::string failure;
};

// Misses in a simulated cache: a table, or why there is none.
struct Simulation {
  std::string markdown;
  std::string failure;
};

struct CacheResults : Origin {
  int rounds = 0;
  std::vector<Setting> settings;          // by ProgramPlace
  std::vector<Setting> marking_settings;  // by MarkingPlace
  std::vector<Row> programs;
  std::vector<Row> marking;
  Limit limit;
  Simulation simulation;
};

// How it was measured.
std::string cache_conditions(const CacheResults& results);
// The tables, for a terminal.
std::string cache_tables(const CacheResults& results);
std::string cache_page(const CacheResults& results, const std::vector<std::string>& plots);
std::vector<Plot> cache_plots(const CacheResults& results);

}  // namespace jackdaw

// Runs of the programs of bench/copy for `jackdaw bench mostly-copying`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "commands.hpp"
#include "figures/table.hpp"
#include "program/places.hpp"
#include "reports/mostly_copying/results.hpp"

namespace jackdaw {

struct CopyPlan {
  const BenchSettings& settings;
  Library ours;
  Library peer;
  bool has_mcc = false;  // JACKDAW_POLICY=mcc is one that the library has
};

// Throws Failure if there is nothing to run. `notes`: what cannot be measured here.
CopyPlan make_copy_plan(const BenchSettings& settings, std::vector<std::string>* notes);

// A row for these collectors, without figures.
CopyRow copy_row(const CopyPlan& plan, const std::string& part, const std::string& program,
                 const std::vector<std::string>& collectors, double factor = 0,
                 double heap_bytes = 0);

// Every cell so many times, each round beginning with another one. A cell that fails is left out
// from then on.
void run_copy_cells(const CopyPlan& plan, const std::string& prefix, int rounds, CopyRow* row,
                    Progress* progress);

// The smallest heap of each cell of a row, by bisection of multiples of `live` bytes between those
// of which `fits` knows (true: it ran; nothing: unknown). The cell has the figures of its run
// there, and that heap's bytes as "least".
using KnownToFit = std::function<std::optional<bool>(const std::string& collector, double factor)>;
void find_least_heaps(const CopyPlan& plan, const std::string& prefix, double live,
                      const KnownToFit& fits, CopyRow* row, Progress* progress);

// What heaps are multiples of: the peak of the live data, or what is more.
double base_of_heaps(double live_peak);
// A heap's size, which both libraries take as it is.
double heap_of(double base, double factor);

}  // namespace jackdaw

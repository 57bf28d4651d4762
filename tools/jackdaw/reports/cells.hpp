// What the reports share whose rows have cells: running them in turn, round by round, keeping them
// in a file, and adding them to the rounds of a file (--add).
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "failure.hpp"
#include "measure/rounds.hpp"

namespace jackdaw {

// How a cell's failure begins that is an answer: it cannot run here.
inline constexpr const char* kNotRun = "not run: ";

// 1, 2, 4 ...: numbers of threads.
std::vector<unsigned> powers_up_to(unsigned most);

// A figure of each round of a cell. What failed has none.
nlohmann::ordered_json runs_to_json(const Row& row, std::size_t cell);
std::vector<RunFigures> runs_from(const nlohmann::ordered_json& cell);

// The results that this run's are added to: those in the file of --json. Nothing without --add, or
// where there is no file yet. Throws Failure for --add without --json.
std::optional<nlohmann::ordered_json> earlier_results(const BenchSettings& settings);
// Reads from such a file: what is not as agreed is a Failure.
void read_results(const std::function<void()>& read);

// Whether the cell ran in any round.
bool has_runs(const Row& row, std::size_t cell);
// The rounds of the cell that ran most.
std::size_t rounds_of(const Row& row);
// Puts a cell's rounds of before in front of those of now. In rounds of others' in which it did not
// run it has absent ones: what was measured side by side keeps the same place in every cell.
void add_in_front(std::vector<RunFigures> before, std::size_t rounds_before, std::size_t rounds_now,
                  std::vector<RunFigures>* runs);

// A Cell has `failure`, empty if it has figures, and same_as(); row.runs holds the figures of each.

// Every cell so many times, each round beginning with another one. A cell that fails is left out
// from then on. `run` may do without one in a round.
template <class Cell>
void run_cells(int rounds,
               const std::function<std::optional<RunFigures>(const Cell&, int round)>& run,
               std::vector<Cell>* cells, Row* row) {
  row->runs.resize(cells->size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < cells->size(); ++i) {
      const std::size_t c = (i + static_cast<std::size_t>(round)) % cells->size();
      Cell& cell = (*cells)[c];
      if (!cell.failure.empty()) continue;
      try {
        if (auto figures = run(cell, round)) row->runs[c].push_back(std::move(*figures));
      } catch (const Failure& failure) {
        cell.failure = failure.what();
        row->runs[c].clear();
      }
    }
  }
}

// Adds the cells of an earlier row. One that failed now or before has failed. But one that could
// not run then can now, and one that cannot run now, or is not there, as that of a peer which is
// not installed, keeps what it has.
template <class Cell>
void add_cells_in_front(const std::vector<Cell>& earlier, const Row& earlier_row,
                        std::vector<Cell>* cells, Row* row) {
  const std::size_t rounds_before = rounds_of(earlier_row);
  const std::size_t rounds_now = rounds_of(*row);
  std::vector<std::vector<RunFigures>> before(cells->size());
  for (std::size_t j = 0; j < earlier.size(); ++j) {
    const Cell& old = earlier[j];
    const auto found = std::find_if(cells->begin(), cells->end(),
                                    [&old](const Cell& cell) { return cell.same_as(old); });
    const auto i = static_cast<std::size_t>(found - cells->begin());
    if (found == cells->end()) {
      cells->push_back(old);
      before.emplace_back();
    } else if (found->failure.starts_with(kNotRun) ||
               (found->failure.empty() && !old.failure.starts_with(kNotRun))) {
      found->failure = old.failure;
    }
    before[i] = earlier_row.runs.at(j);
  }
  row->runs.resize(cells->size());
  for (std::size_t i = 0; i < cells->size(); ++i) {
    if ((*cells)[i].failure.empty()) {
      add_in_front(std::move(before[i]), rounds_before, rounds_now, &row->runs[i]);
    } else {
      row->runs[i].clear();
    }
  }
}

}  // namespace jackdaw

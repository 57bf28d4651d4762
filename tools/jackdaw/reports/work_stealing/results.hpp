// What `jackdaw bench work-stealing` measured, between its runs (work_stealing.cpp) and its page
// (page.cpp).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/origin.hpp"
#include "measure/rounds.hpp"
#include "page/goals.hpp"
#include "page/report.hpp"

namespace jackdaw {

// Who runs the tasks. No competitors are Counting, which gives the number of forks, and Copies: as
// many processes as workers, each with the whole problem and one worker, side by side. What becomes
// of their time by that of one alone is what the machine gives to programs that share nothing.
enum class Runner {
  Sequential,
  Calls,
  Counting,
  Barrier,
  Stop,
  Deque,
  Tbb,
  OpenMp,
  Taskflow,
  Libfork,
  Copies
};
const char* name_of(Runner runner);
bool is_ours(Runner runner);
bool is_peer(Runner runner);

// All but those that others are measured against.
inline constexpr Runner kAll[] = {Runner::Barrier, Runner::Stop,     Runner::Deque,  Runner::Tbb,
                                  Runner::OpenMp,  Runner::Taskflow, Runner::Libfork};

// One way to run a row: who, and with how many workers.
struct TaskCell {
  Runner runner;
  unsigned workers;
  std::string failure;  // why it has no figures; empty: it has

  [[nodiscard]] std::string key() const;
  [[nodiscard]] bool same_as(const TaskCell& other) const {
    return runner == other.runner && workers == other.workers;
  }
};

// A problem that runs in each of its cells, round by round; row.runs holds a cell's figures.
struct TaskRow {
  std::string name;
  std::string what;
  std::vector<TaskCell> cells;
  Row row;

  // Where that cell is, if it has figures.
  [[nodiscard]] std::optional<std::size_t> find(Runner runner, unsigned workers) const;
};

struct TaskResults : Origin {
  std::vector<TaskRow> rows;       // the problems'
  std::vector<TaskRow> latencies;  // none or one: a cell for each of our modes

  [[nodiscard]] const TaskRow* find(const std::string& name) const;
};

nlohmann::ordered_json to_json(const TaskResults& results);
// Adds the rounds of a file that to_json made, in front of those of the same cells; rows that the
// results lack are added whole, as are its notes. Throws Failure if they are of another machine or
// size.
void add_task_rounds(const nlohmann::ordered_json& json, TaskResults* results);

// The problems of the papers.
bool is_of_papers(const std::string& problem);

// The figures to reach.
std::vector<Goal> task_goals(const TaskResults& results);

// --- figures -------------------------------------------------------------------------------------

// What victims lose: in the handler of a thief's signal, in an answer at a fork or a poll, and in a
// wait at a barrier.
inline constexpr const char* kVictimParts[] = {"victim_stop_ticks", "victim_poll_ticks",
                                               "victim_barrier_ticks"};

// Of one cell's run: the share of the workers' time that victims lost by these.
std::optional<double> lost_share(const RunFigures& f);
// The same with what a signal costs its receiver beside the handler, for each, where it was
// measured.
Figure lost_with_signals(const TaskResults& results);

// A run's peak memory.
std::optional<double> peak(const RunFigures& f);

// A cell's index in its row, as TaskRow::find returns it.
using Cell = std::optional<std::size_t>;
std::optional<Summary> median_in(const TaskRow& row, Cell cell, const Figure& figure);
// A figure of one cell by the same of another, round by round.
std::optional<Summary> quotient(const TaskRow& row, Cell a, Cell b, const Figure& figure = whole);
// The numbers of workers of the row's cells.
std::set<unsigned> workers_of(const TaskRow& row);
// How much faster so many programs with one worker each are, side by side, than one after another.
std::optional<Summary> machine_gives(const TaskRow& row, unsigned workers);

// --- the page ------------------------------------------------------------------------------------

std::string task_page(const TaskResults& results, const std::vector<std::string>& plots);
std::vector<Plot> task_plots(const TaskResults& results);

}  // namespace jackdaw

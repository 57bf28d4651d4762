// `jackdaw bench work-stealing`: its parts run, small and untimed; rounds are added; the page and
// the goals are made of what was measured.
#include "reports/work_stealing/work_stealing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "reports/work_stealing/results.hpp"
#include "run_tool.hpp"

namespace {

using jackdaw::RunFigures;
using jackdaw::Runner;
using jackdaw::TaskCell;
using jackdaw::TaskResults;
using jackdaw::TaskRow;
using nlohmann::json;
using testing::HasSubstr;

Result run_report(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "bench", "work-stealing", "--quick", "--library", JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_jackdaw(arguments);
}

std::size_t runs_of(const json& row, Runner runner, unsigned workers) {
  for (const json& cell : row.at("cells")) {
    if (cell.at("runner") == jackdaw::name_of(runner) && cell.at("workers") == workers) {
      return cell.at("runs").size();
    }
  }
  return 0;
}

class WorkStealingPart : public testing::TestWithParam<std::string> {};

// Each program checks its results, and fails if one is wrong.
TEST_P(WorkStealingPart, RunsInEveryModeAndOnEveryPeer) {
  const Scratch scratch;
  const std::string file = scratch.path("tasks.json");
  const std::string page = scratch.path("page.md");
  const Result all = run_report({GetParam(), "--json", file, "--markdown", page});
  ASSERT_TRUE(all.exited_with(0)) << describe(all);
  const json results = json::parse(read_file(file));
  EXPECT_EQ(results.at("report"), "work-stealing");
  EXPECT_TRUE(results.at("quick"));
  const std::string text = read_file(page);
  for (const char* part : {"the figures mean nothing", "Cilk: not run"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  if (GetParam() == "latency") {
    ASSERT_EQ(results.at("latencies").size(), 1U);
    EXPECT_EQ(runs_of(results["latencies"][0], Runner::Stop, 2), 1U);
    EXPECT_THAT(text, HasSubstr("## Single steps"));
    return;
  }
  ASSERT_EQ(results.at("rows").size(), 1U);
  const json& row = results["rows"][0];
  for (const json& cell : row.at("cells")) {
    EXPECT_FALSE(cell.contains("failure")) << cell;
    ASSERT_EQ(cell.at("runs").size(), 1U) << cell;
    const json& run = cell.at("runs").front();
    EXPECT_GT(run.at("seconds"), 0) << cell;
    EXPECT_GT(run.at("peak_bytes"), 0) << cell;
    EXPECT_EQ(run.at("named").at("workers"), cell.at("workers")) << cell;
  }
  for (const Runner runner :
       {Runner::Sequential, Runner::Calls, Runner::Barrier, Runner::Stop, Runner::Deque}) {
    EXPECT_EQ(runs_of(row, runner, 1), 1U);
  }
  for (const char* part : {"(figure 5)", "(figures 2 and 4)", "(figures 6 and 7)"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(, WorkStealingPart, testing::ValuesIn(jackdaw::work_stealing_parts()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(WorkStealing, RoundsAreAdded) {
  const Scratch scratch;
  const std::string file = scratch.path("tasks.json");
  const std::vector<std::string> files = {"--json", file, "--markdown", scratch.path("page.md"),
                                          "--add"};
  for (const char* part : {"fib", "fib", "queens"}) {
    std::vector<std::string> arguments = {part};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const Result r = run_report(arguments);
    ASSERT_TRUE(r.exited_with(0)) << describe(r);
  }
  const json results = json::parse(read_file(file));
  ASSERT_EQ(results.at("rows").size(), 2U);
  EXPECT_EQ(runs_of(results["rows"][0], Runner::Barrier, 2), 2U);
  EXPECT_EQ(runs_of(results["rows"][1], Runner::Barrier, 2), 1U);
  // fib(16) has F(17) - 1 forks.
  for (const json& cell : results["rows"][0]["cells"]) {
    if (cell.at("runner") != jackdaw::name_of(Runner::Counting)) continue;
    EXPECT_EQ(cell.at("runs").front().at("named").at("forks"), 1596);
  }
}

// What the user preloads comes before the library that a program was built with, if not before one
// that is preloaded.
TEST(WorkStealing, AProgramOnAnotherLibraryFails) {
  const Result r = run_program({"/usr/bin/env", std::string("LD_PRELOAD=") + JD_TEST_LIBRARY,
                                JD_TEST_COMMAND, "bench", "work-stealing", "--quick", "--library",
                                JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY, "trees"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr(std::string("FAILED: trees, barrier, 1 worker: it ran on ") +
                               JD_TEST_LIBRARY + " instead of the libjackdaw of this command"));
  EXPECT_THAT(r.out, testing::Not(HasSubstr("FAILED: trees, sequential")));
}

TEST(WorkStealing, RefusesWhatItCannotDo) {
  const Result part = run_report({"fibs"});
  EXPECT_TRUE(part.exited_with(2)) << describe(part);
  EXPECT_THAT(part.err, HasSubstr("no part 'fibs'"));
  const Result add = run_report({"fib", "--add"});
  EXPECT_TRUE(add.exited_with(2)) << describe(add);
  const Result list = run_jackdaw({"bench", "--list"});
  EXPECT_THAT(list.out, HasSubstr("\nwork-stealing "));
  const Scratch scratch;
  write_file(scratch.path("other.json"), "{\"format\": 1}");
  const Result wrong = run_report({"fib", "--add", "--json", scratch.path("other.json"),
                                   "--markdown", scratch.path("page.md")});
  EXPECT_TRUE(wrong.exited_with(2)) << describe(wrong);
  EXPECT_EQ(read_file(scratch.path("other.json")), "{\"format\": 1}");
}

// --- what is made of the figures -----------------------------------------------------------------

// What is lost is lost in equal parts in handlers, at forks and at barriers. The signals themselves
// cost one tick more of the 2000, where one costs a microsecond.
RunFigures run_of(double seconds, double lost_ticks) {
  RunFigures f;
  f.seconds = seconds;
  f.named = {{"ticks", 1000},
             {"workers", 2},
             {"elapsed", 1},
             {"requests", 1000},
             {"victim_stop_ticks", lost_ticks / 3},
             {"victim_poll_ticks", lost_ticks / 3},
             {"victim_barrier_ticks", lost_ticks / 3}};
  return f;
}

// One worker takes a second; two take `two`. Victims lose so many of 2000 ticks.
TaskResults lud_results(double two, double lost, double lost_by_stop) {
  TaskRow row;
  row.name = "lud";
  row.cells = {{Runner::Barrier, 1, ""}, {Runner::Barrier, 2, ""}, {Runner::Stop, 2, ""}};
  row.row.runs = {{run_of(1, 0)}, {run_of(two, lost)}, {run_of(two, lost_by_stop)}};
  TaskResults results;
  results.machine.cpus = 2;
  results.rows = {row};
  TaskRow latency;
  latency.name = "latency";
  latency.cells = {{Runner::Barrier, 2, ""}};
  RunFigures of_signals;
  of_signals.named = {{"standstill", 1000}};
  latency.row.runs = {{of_signals}};
  results.latencies = {latency};
  return results;
}

const jackdaw::Goal* goal_about(const std::vector<jackdaw::Goal>& goals, const std::string& what) {
  for (const jackdaw::Goal& g : goals) {
    if (g.what.find(what) != std::string::npos) return &g;
  }
  return nullptr;
}

bool is_reached(const TaskResults& results, const std::string& what) {
  const std::vector<jackdaw::Goal> goals = task_goals(results);
  const jackdaw::Goal* goal = goal_about(goals, what);
  EXPECT_NE(goal, nullptr) << what;
  return goal != nullptr && goal->reached;
}

TEST(WorkStealingGoals, AreReachedByTheMedian) {
  EXPECT_TRUE(is_reached(lud_results(0.54, 4, 10), "speed of two workers"));
  EXPECT_FALSE(is_reached(lud_results(0.55, 4, 10), "speed of two workers"));
  EXPECT_TRUE(is_reached(lud_results(0.5, 4, 10), "by stop-the-victim's"));
  EXPECT_FALSE(is_reached(lud_results(0.5, 6, 10), "by stop-the-victim's"));
  EXPECT_TRUE(is_reached(lud_results(0.5, 8.5, 100), "of all cycles"));
  EXPECT_FALSE(is_reached(lud_results(0.5, 9.5, 100), "of all cycles"));
  // Nothing is said of what was measured in part only.
  TaskResults without_signals = lud_results(0.5, 4, 10);
  without_signals.latencies.clear();
  EXPECT_FALSE(is_reached(without_signals, "of all cycles"));
}

TEST(WorkStealingGoals, WhatFailedIsNotReached) {
  TaskResults results = lud_results(0.5, 4, 10);
  results.rows[0].cells[1].failure = "signal 11";
  EXPECT_FALSE(is_reached(results, "speed of two workers"));
  EXPECT_FALSE(is_reached(results, "by stop-the-victim's"));
  EXPECT_THAT(task_page(results, {}), HasSubstr("FAILED: signal 11"));
  EXPECT_THAT(task_page(results, {}), HasSubstr("not measured"));
}

// A problem that takes a second with one of our workers.
TaskRow problem(const char* name, std::vector<std::pair<TaskCell, double>> others) {
  TaskRow row;
  row.name = name;
  others.insert(others.begin(), {{Runner::Barrier, 1, ""}, 1});
  for (const auto& [cell, seconds] : others) {
    row.cells.push_back(cell);
    row.row.runs.push_back({run_of(seconds, 0)});
  }
  return row;
}

std::string measured(const TaskResults& results, const std::string& what) {
  const std::vector<jackdaw::Goal> goals = task_goals(results);
  const jackdaw::Goal* goal = goal_about(goals, what);
  return goal != nullptr ? goal->measured : "no such goal";
}

TEST(WorkStealingGoals, DivideByWhatTheyName) {
  TaskResults results;
  results.machine.cpus = 2;
  results.rows = {
      problem("fib", {{{Runner::Libfork, 1, ""}, 20}, {{Runner::Tbb, 1, ""}, 50}}),
      problem("fib-42", {{{Runner::Calls, 1, ""}, 0.8}, {{Runner::Sequential, 1, ""}, 0.1}}),
      problem("jacobi", {{{Runner::Sequential, 1, ""}, 0.5},
                         {{Runner::Barrier, 2, ""}, 0.625},
                         {{Runner::Copies, 2, ""}, 1.25},
                         {{Runner::Tbb, 2, ""}, 0.6},
                         {{Runner::OpenMp, 2, ""}, 0.5},
                         {{Runner::Stop, 2, ""}, 0.1}})};
  EXPECT_EQ(measured(results, "by libfork's time"), "0.05");
  EXPECT_EQ(measured(results, "by oneTBB's time"), "0.02");
  EXPECT_EQ(measured(results, "by the same with calls"), "1.25");
  EXPECT_EQ(measured(results, "jacobi, one worker, by sequential"), "2.00");
  // Two programs of 1.25 seconds side by side, where one takes a second.
  EXPECT_EQ(measured(results, "speed of two workers by that of one (the machine gives 1.60)"),
            "1.60");
  EXPECT_EQ(measured(results, "jacobi, two workers, by the best peer's time (OpenMP)"), "1.25");
}

TEST(WorkStealingRounds, OfAFileComeFirstAndFailuresStay) {
  TaskResults now = lud_results(0.5, 4, 10);
  add_task_rounds(to_json(lud_results(0.25, 4, 10)), &now);
  ASSERT_EQ(now.rows.size(), 1U);
  ASSERT_EQ(now.rows[0].row.runs[1].size(), 2U);
  EXPECT_EQ(now.rows[0].row.runs[1][0].seconds, 0.25);
  EXPECT_EQ(now.rows[0].row.runs[1][1].seconds, 0.5);

  TaskResults failed = lud_results(0.5, 4, 10);
  failed.rows[0].cells[2].failure = "signal 11";
  add_task_rounds(to_json(failed), &now);
  EXPECT_EQ(now.rows[0].cells[2].failure, "signal 11");
  EXPECT_TRUE(now.rows[0].row.runs[2].empty());

  // A cell that this build lacks, and one that the file lacks, have absent rounds.
  TaskResults fewer = lud_results(0.5, 4, 10);
  fewer.rows[0].cells[2].runner = Runner::Taskflow;
  TaskResults others = lud_results(0.25, 4, 10);
  others.rows[0].cells[2].runner = Runner::Tbb;
  add_task_rounds(to_json(others), &fewer);
  ASSERT_EQ(fewer.rows[0].cells.size(), 4U);
  EXPECT_EQ(fewer.rows[0].cells[3].runner, Runner::Tbb);
  for (const auto& runs : fewer.rows[0].row.runs) ASSERT_EQ(runs.size(), 2U);
  EXPECT_TRUE(fewer.rows[0].row.runs[2][0].absent);
  EXPECT_TRUE(fewer.rows[0].row.runs[3][1].absent);
  TaskResults read;
  read.machine = fewer.machine;
  add_task_rounds(to_json(fewer), &read);
  EXPECT_TRUE(read.rows[0].row.runs[2][0].absent);
  // Of the rounds in which both ran.
  const auto ratio = jackdaw::quotient(read.rows[0], 3, 1);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->count, 1U);
  EXPECT_EQ(ratio->median, 1);
  json unknown = to_json(fewer);
  unknown["rows"][0]["cells"][0]["runner"] = "somebody";
  EXPECT_THROW(add_task_rounds(unknown, &read), jackdaw::Failure);

  TaskResults elsewhere = lud_results(0.5, 4, 10);
  elsewhere.machine.cpus = 4;
  EXPECT_THROW(add_task_rounds(to_json(now), &elsewhere), jackdaw::Failure);
}

// Regression: they stayed above the figures of what they told of.
TEST(WorkStealingRounds, EndTheNotesThatTheyMakeUntrue) {
  TaskResults without = lud_results(0.5, 4, 10);
  without.notes = {jackdaw::not_run("oneTBB", "it was not built"),
                   jackdaw::not_run("Taskflow", "it was not built")};
  TaskResults with = lud_results(0.5, 4, 10);
  with.rows[0].cells[2].runner = Runner::Tbb;
  add_task_rounds(to_json(without), &with);
  EXPECT_THAT(with.notes, testing::ElementsAre(HasSubstr("Taskflow: not run")));
}

TEST(WorkStealingPlots, LeaveOutGroupsThatLackABar) {
  TaskResults results = lud_results(0.5, 4, 10);
  const auto lost = [](const TaskResults& r) { return task_plots(r).front().bars.groups.size(); };
  EXPECT_EQ(lost(results), 1U);
  results.rows[0].cells[2].failure = "signal 11";
  EXPECT_EQ(lost(results), 0U);
}

}  // namespace

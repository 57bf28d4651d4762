// `jackdaw bench mostly-copying`: its parts run, small and untimed; rounds are added; the page and
// the goals are made of what was measured, and what did not run is no result.
#include "reports/mostly_copying/mostly_copying.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "reports/cells.hpp"
#include "reports/mostly_copying/results.hpp"
#include "reports/mostly_copying/runs.hpp"
#include "run_tool.hpp"

namespace {

using jackdaw::CopyResults;
using jackdaw::CopyRow;
using jackdaw::Goal;
using jackdaw::RunFigures;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Result run_report(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench",        "mostly-copying", "--quick",
                                        "--library",    JD_TEST_LIBRARY,  "--peer",
                                        JD_TEST_LIBRARY};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_jackdaw(arguments);
}

bool is_answer(const json& cell) {
  const std::string failure = cell.value("failure", "");
  return failure.starts_with(jackdaw::kNotRun) || failure.starts_with(jackdaw::kDoesNotFit);
}

class MostlyCopyingPart : public testing::TestWithParam<std::string> {};

TEST_P(MostlyCopyingPart, RunsOnEveryCollector) {
  const Scratch scratch;
  const std::string file = scratch.path("copying.json");
  const std::string page = scratch.path("page.md");
  std::map<std::string, std::size_t> runs_of;
  const Result all = run_report({GetParam(), "--json", file, "--markdown", page});
  ASSERT_TRUE(all.exited_with(0)) << describe(all);
  const json results = json::parse(read_file(file));
  EXPECT_EQ(results.at("report"), "mostly-copying");
  EXPECT_TRUE(results.at("quick"));
  std::size_t rows = 0;
  for (const json& row : results.at("rows")) {
    if (row.at("part") != GetParam()) continue;
    ++rows;
    for (const json& cell : row.at("cells")) {
      std::size_t& runs = runs_of[cell.at("collector")];
      if (is_answer(cell)) continue;
      ++runs;
      ASSERT_EQ(cell.at("runs").size(), 1U) << row.at("program") << cell;
      EXPECT_GT(cell.at("runs")[0].at("seconds"), 0) << cell;
      EXPECT_GT(cell.at("runs")[0].at("peak_bytes"), 0) << cell;
      if (row.at("heap_bytes") > 0) {
        EXPECT_LE(cell.at("runs")[0].at("heap_bytes"), row.at("heap_bytes")) << cell;
      }
    }
  }
  EXPECT_GT(rows, 0U);
  // Each of the collectors runs somewhere: what fits into no heap of one size does into another's.
  for (const auto& [collector, runs] : runs_of) EXPECT_GT(runs, 0U) << collector;
  const std::string text = read_file(page);
  EXPECT_THAT(text, HasSubstr("the figures mean nothing"));
  EXPECT_THAT(text, HasSubstr("The paper's own figures are not beside them"));
  const std::pair<std::string, std::vector<const char*>> sections[] = {
      {"programs", {"(table 2)", "(table 3)", "(table 4)", "(table 5)"}},
      {"header", {"(table 6)"}},
      {"heaps", {"(table 7, figure 1)", "In heaps of 2 times", "In heaps of 4 times"}},
      {"order", {"## The order of allocation"}},
      {"resolve", {"## An ambiguous word"}},
      {"fragmentation", {"## Fragmentation"}}};
  for (const auto& [part, headings] : sections) {
    for (const char* heading : headings) {
      if (part == GetParam()) {
        EXPECT_THAT(text, HasSubstr(heading));
      } else {
        EXPECT_THAT(text, Not(HasSubstr(heading)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, MostlyCopyingPart, testing::ValuesIn(jackdaw::mostly_copying_parts()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

TEST(MostlyCopying, RoundsAreAddedAndWhatDoesNotChangeIsMeasuredOnce) {
  const Scratch scratch;
  const std::string file = scratch.path("copying.json");
  for (int i = 0; i < 2; ++i) {
    const Result r =
        run_report({"programs", "--json", file, "--add", "--markdown", scratch.path("page.md")});
    ASSERT_TRUE(r.exited_with(0)) << describe(r);
  }
  const json results = json::parse(read_file(file));
  for (const json& row : results.at("rows")) {
    for (const json& cell : row.at("cells")) {
      if (is_answer(cell)) continue;
      EXPECT_EQ(cell.at("runs").size(), row.at("part") == "live" ? 1U : 2U)
          << row.at("program") << cell.at("collector");
    }
  }
}

// What the user preloads comes before the library that a program was built with, if not before one
// that is preloaded.
TEST(MostlyCopying, AProgramOnAnotherLibraryFails) {
  const Result r = run_program({"/usr/bin/env", std::string("LD_PRELOAD=") + JD_TEST_LIBRARY,
                                JD_TEST_COMMAND, "bench", "mostly-copying", "--quick", "--library",
                                JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY, "resolve"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr(std::string("it ran on ") + JD_TEST_LIBRARY +
                               " instead of the libjackdaw of this command"));
  EXPECT_THAT(r.out, Not(HasSubstr("FAILED: resolve, resolve, untyped")));
}

TEST(MostlyCopying, RefusesWhatItCannotDo) {
  const Result part = run_report({"heap"});
  EXPECT_TRUE(part.exited_with(2)) << describe(part);
  EXPECT_THAT(part.err, HasSubstr("no part 'heap'"));
  const Result add = run_report({"resolve", "--add"});
  EXPECT_TRUE(add.exited_with(2)) << describe(add);
  const Result folder = run_report({"resolve", "--markdown", "/nowhere/at/all/page.md"});
  EXPECT_TRUE(folder.exited_with(125)) << describe(folder);
  const Result list = run_jackdaw({"bench", "--list"});
  EXPECT_THAT(list.out, HasSubstr("\nmostly-copying "));
  const Scratch scratch;
  write_file(scratch.path("other.json"), "{\"format\": 1}");
  const Result wrong = run_report({"resolve", "--add", "--json", scratch.path("other.json"),
                                   "--markdown", scratch.path("page.md")});
  EXPECT_TRUE(wrong.exited_with(2)) << describe(wrong);
  EXPECT_EQ(read_file(scratch.path("other.json")), "{\"format\": 1}");
}

// --- what is made of the figures -----------------------------------------------------------------

RunFigures run_of(double seconds, double collecting);
TEST(MostlyCopyingFigures, AClientsTimeIsWhatIsNotCollecting) {
  EXPECT_EQ(jackdaw::client(run_of(2, 0.5)), 1.5);
  EXPECT_EQ(jackdaw::collecting(run_of(2, 0.5)), 0.5);
}

RunFigures run_of(double seconds, double collecting) {
  RunFigures f;
  f.seconds = seconds;
  f.named = {{"collecting", collecting}};
  return f;
}

// In a heap of that size, all programs take two seconds on the peer, one of them in collections.
CopyResults heaps_results(double factor, double seconds, double collecting) {
  CopyResults results;
  for (const std::string& program : jackdaw::copy_programs()) {
    CopyRow row;
    row.part = jackdaw::kHeaps;
    row.program = program;
    row.factor = factor;
    row.cells = {{jackdaw::kPeerHeap, ""}, {jackdaw::kEvacuateHomogeneous, ""}};
    row.row.runs = {{run_of(2, 1)}, {run_of(seconds, collecting)}};
    results.rows.push_back(row);
  }
  return results;
}

Goal goal_about(const CopyResults& results, const std::string& what) {
  for (const Goal& g : copy_goals(results)) {
    if (g.what.find(what) != std::string::npos) return g;
  }
  ADD_FAILURE() << "no goal about " << what;
  return {};
}

TEST(MostlyCopyingGoals, AreReachedByTheGeometricMeanOfMedians) {
  EXPECT_TRUE(goal_about(heaps_results(2, 1.4, 0.4), "client and collector").reached);
  EXPECT_FALSE(goal_about(heaps_results(2, 1.42, 0.4), "client and collector").reached);
  EXPECT_TRUE(goal_about(heaps_results(4, 1.4, 0.4), "data: collector").reached);
  EXPECT_FALSE(goal_about(heaps_results(4, 1.4, 0.42), "data: collector").reached);
  EXPECT_TRUE(goal_about(heaps_results(2, 1.9, 0.4), "faster than libgc").reached);
  EXPECT_FALSE(goal_about(heaps_results(2, 2.1, 0.4), "faster than libgc").reached);
}

TEST(MostlyCopyingGoals, AProgramThatDoesNotFitIsNotFast) {
  CopyResults results = heaps_results(2, 1, 0.1);
  results.rows[3].cells[1].failure = jackdaw::kDoesNotFit;
  EXPECT_FALSE(goal_about(results, "faster than libgc").reached);
  EXPECT_THAT(goal_about(results, "client and collector").measured, HasSubstr("of 7 programs"));
  CopyResults tight = heaps_results(1.5, 1, 0.1);
  EXPECT_TRUE(goal_about(tight, "that run in a heap").reached);
  tight.rows[0].cells[1].failure = jackdaw::kDoesNotFit;
  EXPECT_FALSE(goal_about(tight, "that run in a heap").reached);
  EXPECT_THAT(copy_page(tight, {}), HasSubstr(jackdaw::kDoesNotFit));
}

TEST(MostlyCopyingGoals, AProgramThatRunsOnOursAloneIsFaster) {
  CopyResults results = heaps_results(2, 1, 0.1);
  results.rows[3].cells[0].failure = jackdaw::kDoesNotFit;
  const Goal goal = goal_about(results, "faster than libgc");
  EXPECT_TRUE(goal.reached);
  EXPECT_THAT(goal.measured, HasSubstr("8 of 8, of which 1 don't run on libgc"));
  // What was not tried, or fits neither, is not.
  results.rows[3].cells[1].failure = jackdaw::kDoesNotFit;
  EXPECT_FALSE(goal_about(results, "faster than libgc").reached);
  results.rows[3].cells[1].failure = "";
  results.rows[3].cells[0].failure = "not run: there is none";
  EXPECT_FALSE(goal_about(results, "faster than libgc").reached);
}

TEST(MostlyCopyingGoals, WhatDidNotRunIsNotMeasured) {
  CopyResults results;
  CopyRow row;
  row.part = row.program = jackdaw::kResolve;
  row.cells = {{jackdaw::kOurHeap, ""}, {jackdaw::kEvacuateHeader, "not run: it was not built"}};
  RunFigures f;
  f.named = {{"beginning_ns", 2}, {"middle_ns", 2}};
  row.row.runs = {{f}, {}};
  results.rows = {row};
  const Goal goal = goal_about(results, "a middle in mixed blocks");
  EXPECT_FALSE(goal.known);
  EXPECT_FALSE(goal.reached);
  EXPECT_FALSE(row.cells[1].failed());
  EXPECT_THAT(copy_page(results, {}), HasSubstr("not run: it was not built"));
}

TEST(MostlyCopyingRounds, OfAFileComeFirstAndFailuresStay) {
  CopyResults now = heaps_results(2, 1, 0.1);
  add_copy_rounds(to_json(heaps_results(2, 3, 0.1)), &now);
  ASSERT_EQ(now.rows.size(), jackdaw::copy_programs().size());
  ASSERT_EQ(now.rows[0].row.runs[1].size(), 2U);
  EXPECT_EQ(now.rows[0].row.runs[1][0].seconds, 3);
  EXPECT_EQ(now.rows[0].row.runs[1][1].seconds, 1);

  CopyResults failed = heaps_results(2, 1, 0.1);
  failed.rows[0].cells[1].failure = "signal 11";
  failed.rows[0].row.runs[1].clear();
  failed.rows[1].cells[1].failure = "not run: it was not built";
  failed.rows[1].row.runs[1].clear();
  add_copy_rounds(to_json(failed), &now);
  EXPECT_EQ(now.rows[0].cells[1].failure, "signal 11");
  EXPECT_TRUE(now.rows[0].row.runs[1].empty());
  // What could not run then, and can now, has what it has now, in the rounds of now.
  EXPECT_TRUE(now.rows[1].cells[1].failure.empty());
  ASSERT_EQ(now.rows[1].row.runs[1].size(), 3U);
  EXPECT_TRUE(now.rows[1].row.runs[1][0].absent);
  EXPECT_FALSE(now.rows[1].row.runs[1][1].absent);
  EXPECT_EQ(now.rows[1].row.runs[0].size(), 3U);

  CopyResults elsewhere = heaps_results(2, 1, 0.1);
  elsewhere.machine.cpus = 4;
  EXPECT_THROW(add_copy_rounds(to_json(now), &elsewhere), jackdaw::Failure);
}

TEST(MostlyCopyingHeaps, AreMultiplesThatBothLibrariesTake) {
  EXPECT_EQ(jackdaw::base_of_heaps(1000), 64 * 1024);
  EXPECT_EQ(jackdaw::base_of_heaps(100000), 100000);
  EXPECT_EQ(jackdaw::heap_of(100000, 1.5), 10 * 16 * 1024);
}

TEST(MostlyCopyingPlots, HaveAPanelForEachProgramThatRan) {
  const auto plots = copy_plots(heaps_results(2, 1, 0.1));
  ASSERT_EQ(plots.size(), 2U);
  EXPECT_EQ(plots[0].curves.panels.size(), 0U);  // without heap sizes there is no axis
  CopyResults sized = heaps_results(2, 1, 0.1);
  for (CopyRow& row : sized.rows) row.heap_bytes = 1 << 20;
  EXPECT_EQ(copy_plots(sized)[0].curves.panels.size(), jackdaw::copy_programs().size());
}

}  // namespace

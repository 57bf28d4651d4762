// What `jackdaw bench cache-misses` computes of its runs, and its plots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "failure.hpp"
#include "measure/rounds.hpp"
#include "page/plot.hpp"
#include "page/report.hpp"
#include "program/places.hpp"
#include "reports/cells.hpp"
#include "run_tool.hpp"

namespace {

using jackdaw::Failure;
using jackdaw::RunFigures;
using jackdaw::Setting;
using testing::ElementsAre;
using testing::HasSubstr;

RunFigures seconds(double whole, double mark) {
  RunFigures f;
  f.seconds = whole;
  f.mark_seconds = mark;
  return f;
}

std::optional<double> mark(const RunFigures& f) { return f.mark_seconds; }
std::optional<double> clearing(const RunFigures& f) { return f.clearing_seconds; }

jackdaw::Row row_with(std::vector<std::vector<RunFigures>> runs) {
  jackdaw::Row row;
  row.name = "row";
  row.runs = std::move(runs);
  return row;
}

TEST(Rounds, SharesAreTakenWithinARound) {
  // The machine was twice as slow in the second round.
  const jackdaw::Row row =
      row_with({{seconds(1, 0.5), seconds(2, 1)}, {seconds(0.5, 0.1), seconds(1, 0.2)}});
  const auto time = jackdaw::share(row, 1, jackdaw::whole, 0, jackdaw::whole);
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->median, 0.5);
  EXPECT_DOUBLE_EQ(time->least, time->most);
  EXPECT_EQ(time->count, 2u);
  const auto marking = jackdaw::share(row, 1, mark, 0, jackdaw::whole);
  ASSERT_TRUE(marking);
  EXPECT_DOUBLE_EQ(marking->median, 0.1);
}

TEST(Rounds, WhatWasNotMeasuredIsAbsent) {
  jackdaw::Row row = row_with({{seconds(1, 0.5)}});
  EXPECT_FALSE(jackdaw::share(row, 0, clearing, 0, jackdaw::whole));
  EXPECT_FALSE(jackdaw::median_of(row, 0, clearing));
  EXPECT_FALSE(jackdaw::median_of(row, 1, jackdaw::whole));
  EXPECT_TRUE(jackdaw::median_of(row, 0, jackdaw::whole));
  row.failure = "it did not end";
  EXPECT_FALSE(jackdaw::median_of(row, 0, jackdaw::whole));
}

TEST(Rounds, WithADivisorOfZeroHaveNoShare) {
  const jackdaw::Row row =
      row_with({{seconds(1, 9), seconds(2, 1)}, {seconds(1, 0), seconds(2, 4)}});
  EXPECT_FALSE(jackdaw::share(row, 0, mark, 1, mark));
  EXPECT_TRUE(jackdaw::share(row, 1, mark, 0, mark));
}

TEST(Rounds, AreSharedInByThoseThatRanInThem) {
  jackdaw::Row row = row_with({{seconds(1, 0), seconds(4, 0), seconds(6, 0)}, {seconds(2, 0)}});
  // In the first round only the second setting ran.
  std::vector<jackdaw::RunFigures> later = {seconds(8, 0)};
  jackdaw::add_in_front({seconds(4, 0)}, 1, 2, &later);
  ASSERT_EQ(later.size(), 3U);
  EXPECT_TRUE(later[2].absent);
  row.runs[1] = later;
  const auto share = jackdaw::share(row, 1, jackdaw::whole, 0, jackdaw::whole);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->count, 2U);
  EXPECT_EQ(share->least, 2);
  EXPECT_EQ(share->most, 4);
  // One that has fewer.
  row.runs[1].resize(1);
  EXPECT_EQ(jackdaw::share(row, 0, jackdaw::whole, 1, jackdaw::whole)->count, 1U);
  EXPECT_EQ(jackdaw::median_of(row, 0, jackdaw::whole)->count, 3U);
  EXPECT_EQ(jackdaw::rounds_of(row), 3U);
}

TEST(Rounds, EachBeginsWithAnotherSettingAndEverySecondRunsInReverse) {
  std::vector<std::string> order;
  jackdaw::Row row;
  row.run = [&order](const Setting& setting) {
    order.push_back(setting.key);
    return RunFigures{};
  };
  jackdaw::Progress progress;
  jackdaw::run_rounds(&row, {{"a", {}, {}}, {"b", {}, {}}, {"c", {}, {}}}, 2, "", &progress);
  // The second one in reverse.
  EXPECT_THAT(order, ElementsAre("a", "b", "c", "b", "a", "c"));
  for (const auto& runs : row.runs) EXPECT_EQ(runs.size(), 2u);
}

TEST(Rounds, AFailureEndsTheRowAndNamesItsSetting) {
  int runs = 0;
  jackdaw::Row row;
  row.run = [&runs](const Setting& setting) -> RunFigures {
    ++runs;
    if (setting.key == "b") throw Failure(1, "exit status 3");
    return {};
  };
  jackdaw::Progress progress;
  jackdaw::run_rounds(&row, {{"a", {}, {}}, {"b", {}, {}}}, 5, "", &progress);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(row.failure, "b: exit status 3");
}

TEST(Plot, DrawsAnSvg) {
  if (!jackdaw::can_draw()) GTEST_SKIP() << "there is no gnuplot here";
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("jackdaw-plot-" + std::to_string(getpid()) + ".svg");
  jackdaw::draw_bars({"a title", "ns", {"first", "second"}, {{"it's a group", {1, 2}}}}, file);
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("<svg"));
  EXPECT_THAT(text.str(), HasSubstr("a title"));
  EXPECT_THAT(text.str(), HasSubstr("it's a group"));
  std::filesystem::remove(file);
  EXPECT_THROW(jackdaw::draw_bars({"", "", {"s"}, {{"g", {1}}}}, "/nowhere/at/all.svg"), Failure);
}

TEST(Plot, DrawsCurvesInPanels) {
  if (!jackdaw::can_draw()) GTEST_SKIP() << "there is no gnuplot here";
  const Scratch scratch;
  const std::string file = scratch.path("curves.svg");
  jackdaw::Curves curves{"a title", "MiB", "s", {"first", "second"}, {}};
  curves.panels.push_back({"it's a panel", {{{1, 2}, {2, 1}}, {}}});
  curves.panels.push_back({"another_panel", {{{1, 2}}, {{1, 3}}}});
  curves.panels.push_back({"an empty one", {{}, {}}});
  jackdaw::draw_curves(curves, file);
  const std::string text = read_file(file);
  for (const char* part : {"<svg", "a title", "it's a panel", "another_panel", "second"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

// Regression: it ended the report after all that was measured, without a page.
TEST(Plot, AGnuplotThatDoesNotWorkIsAsGoodAsNone) {
  const std::string path = std::getenv("PATH");
  const Scratch scratch;
  setenv("PATH", scratch.path("").c_str(), 1);
  jackdaw::Plot plot{"-all", {"a title", "ns", {"first"}, {{"a group", {1}}}}};
  for (const char* gnuplot : {"#!/no/such/interpreter\n", "#!/bin/sh\nexit 3\n"}) {
    write_file(scratch.path("gnuplot"), gnuplot, true);
    testing::internal::CaptureStdout();
    EXPECT_THAT(jackdaw::draw_plots({plot}, scratch.path("page.md")), testing::IsEmpty());
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("no plots: "));
  }
  setenv("PATH", path.c_str(), 1);
}

TEST(Places, AFolderIsNoProgram) {
  const std::string path = std::getenv("PATH");
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("sh"));
  setenv("PATH", (scratch.path("") + ":" + path).c_str(), 1);
  EXPECT_NE(jackdaw::find_program("sh"), scratch.path("sh"));
  setenv("PATH", path.c_str(), 1);
}

TEST(Places, FindsProgramsOnThePath) {
  EXPECT_TRUE(jackdaw::find_program("sh"));
  EXPECT_FALSE(jackdaw::find_program("no-such-program-anywhere"));
}

}  // namespace

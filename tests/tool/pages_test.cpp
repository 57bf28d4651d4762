// What the reports make of figures that are known: the page of `jackdaw bench cache-misses`, cells
// that run in turn, pairs of a benchmark's runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "failure.hpp"
#include "measure/others.hpp"
#include "measure/pairs.hpp"
#include "reports/cache_misses/results.hpp"
#include "reports/cells.hpp"

namespace {

using jackdaw::CacheResults;
using jackdaw::Failure;
using jackdaw::Row;
using jackdaw::RunFigures;
using jackdaw::Sample;
using jackdaw::Side;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunFigures taking(double seconds) {
  RunFigures f;
  f.seconds = seconds;
  return f;
}

// --- the page of cache-misses --------------------------------------------------------------------

// The normal run takes ten seconds, of which three are marking.
Row program() {
  Row row;
  row.name = "syntax";
  row.runs.resize(jackdaw::kPeer + 1);
  const auto set = [&row](jackdaw::ProgramPlace place, double seconds, double mark) {
    RunFigures f = taking(seconds);
    f.mark_seconds = mark;
    f.collections = 7;
    f.peak_bytes = 10 << 20;
    row.runs[place] = {f};
  };
  set(jackdaw::kNormal, 10, 3);
  set(jackdaw::kTimed, 10, 3);
  row.runs[jackdaw::kTimed][0].sweep_seconds = 0.5;
  row.runs[jackdaw::kTimed][0].finding_seconds = 1.1;
  row.runs[jackdaw::kTimed][0].clearing_seconds = 0.4;
  set(jackdaw::kEager, 12, 3);
  set(jackdaw::kGrey, 11, 4);
  set(jackdaw::kRinged, 8, 1);
  row.runs[jackdaw::kRinged][0].peak_bytes = 5 << 20;
  set(jackdaw::kPeer, 40, 20);
  return row;
}

Row marking() {
  Row row;
  row.name = "mark-tree";
  row.runs = {{taking(12)}, {taking(9)}, {taking(6)}, {taking(48)}};
  return row;
}

CacheResults results() {
  CacheResults r;
  for (const char* key : {"normal", "timed", "eager", "on-grey", "ring", "peer"}) {
    r.settings.push_back({key, {}, {}});
  }
  r.programs = {program()};
  r.marking = {marking()};
  r.limit.independent_ns = 5;
  return r;
}

TEST(CacheMisses, FractionsAreOfTheNormalRun) {
  const std::string page = cache_page(results(), {});
  EXPECT_THAT(page, HasSubstr("| syntax | 10 s | 30.0% | 16.0% | 4.0% | 20.0% | -10.0% | 20.0% |"));
  EXPECT_THAT(page, HasSubstr("| syntax | 40 s | 50.0% | 7 | 10 MiB | 0.25 | 0.20 | 0.50 |"));
  EXPECT_THAT(page, HasSubstr("| mark-tree | 12 ns | 9 ns | 6 ns | 48 ns | 0.50 | 0.12 | 1.20 |"));
}

TEST(CacheMisses, PlotsShowWhatIsSaved) {
  const std::vector<jackdaw::Plot> plots = cache_plots(results());
  ASSERT_EQ(plots.size(), 2U);
  ASSERT_EQ(plots[0].bars.groups.size(), 1U);
  EXPECT_THAT(plots[0].bars.groups[0].second,
              ElementsAre(testing::DoubleNear(-10, 1e-9), testing::DoubleNear(20, 1e-9)));
  EXPECT_THAT(plots[1].bars.groups.at(0).second, ElementsAre(12, 9, 6, 48));
}

TEST(CacheMisses, WhatFailedSaysSoAndIsNoFigure) {
  CacheResults failed = results();
  failed.programs[0].failure = "ring: signal 11";
  failed.limit.failure = "exit status 1";
  const std::string page = cache_page(failed, {});
  EXPECT_THAT(page, HasSubstr("| syntax | ring: signal 11 |"));
  EXPECT_THAT(page, HasSubstr("FAILED: exit status 1"));
  EXPECT_THAT(cache_plots(failed)[0].bars.groups, IsEmpty());
  // Neither among those of equal heaps, nor beside the peer.
  EXPECT_THAT(page, Not(HasSubstr("| syntax | -")));
}

// --- cells ---------------------------------------------------------------------------------------

struct Cell {
  std::string name;
  std::string failure;

  [[nodiscard]] bool same_as(const Cell& other) const { return name == other.name; }
};

TEST(Cells, RunInTurnEachRoundBeginningWithAnother) {
  std::vector<Cell> cells = {{"a", ""}, {"b", ""}, {"c", ""}};
  Row row;
  std::vector<std::string> order;
  jackdaw::run_cells<Cell>(
      3,
      [&order](const Cell& cell, int round) -> std::optional<RunFigures> {
        if (cell.name == "c" && round > 0) return std::nullopt;
        order.push_back(cell.name);
        if (cell.name == "b" && round == 1) throw Failure(1, "exit status 3");
        return taking(round);
      },
      &cells, &row);
  EXPECT_THAT(order, ElementsAre("a", "b", "c", "b", "a", "a"));
  EXPECT_EQ(cells[1].failure, "exit status 3");
  EXPECT_EQ(row.runs[0].size(), 3U);
  EXPECT_THAT(row.runs[1], IsEmpty());
  EXPECT_EQ(row.runs[2].size(), 1U);
}

TEST(Cells, ThatCannotRunNowKeepWhatTheyHave) {
  Row row_before;
  row_before.runs = {{taking(1)}, {}};
  std::vector<Cell> now = {{"absent", "not run: it was not built"},
                           {"failed", "not run: it was not built"}};
  Row row;
  row.runs = {{}, {}};
  jackdaw::add_cells_in_front({{"absent", ""}, {"failed", "signal 11"}}, row_before, &now, &row);
  EXPECT_EQ(now[0].failure, "");
  ASSERT_EQ(row.runs[0].size(), 1U);
  EXPECT_EQ(row.runs[0][0].seconds, 1);
  EXPECT_EQ(now[1].failure, "signal 11");
}

TEST(Cells, AreAddedByTheirNames) {
  const std::vector<Cell> before = {{"gone", ""},
                                    {"failed", "signal 11"},
                                    {"same", ""},
                                    {"not here", "not run: it was not built"}};
  Row row_before;
  row_before.runs = {{taking(1)}, {}, {taking(2)}, {}};
  std::vector<Cell> now = {{"same", ""}, {"failed", ""}, {"not here", ""}, {"new", ""}};
  Row row;
  row.runs = {{taking(3)}, {taking(4)}, {taking(5)}, {taking(6)}};
  jackdaw::add_cells_in_front(before, row_before, &now, &row);

  ASSERT_EQ(now.size(), 5U);
  EXPECT_EQ(row.runs[0][0].seconds, 2);
  EXPECT_EQ(row.runs[0][1].seconds, 3);
  EXPECT_EQ(now[1].failure, "signal 11");
  EXPECT_THAT(row.runs[1], IsEmpty());
  // What could not run then can now.
  EXPECT_EQ(now[2].failure, "");
  for (const std::size_t fresh : {2U, 3U}) {
    ASSERT_EQ(row.runs[fresh].size(), 2U);
    EXPECT_TRUE(row.runs[fresh][0].absent);
    EXPECT_FALSE(row.runs[fresh][1].absent);
  }
  EXPECT_EQ(now[4].name, "gone");
  ASSERT_EQ(row.runs[4].size(), 2U);
  EXPECT_EQ(row.runs[4][0].seconds, 1);
  EXPECT_TRUE(row.runs[4][1].absent);
}

// --- pairs ---------------------------------------------------------------------------------------

Side side(const char* key) { return {key, {}, {}, {}, {}, {}, ""}; }

TEST(Pairs, RunInTurnAndWarmUpsDoNotCount) {
  Side a = side("a");
  Side b = side("b");
  std::vector<std::string> order;
  jackdaw::run_pairs(1, 3, {&a, &b}, [&order](const Side& s, int pair) {
    order.push_back(s.key + std::to_string(pair));
    Sample sample;
    sample.values = {static_cast<double>(pair)};
    return sample;
  });
  // A drift of the machine's speed falls on both alike.
  EXPECT_THAT(order, ElementsAre("a-1", "b-1", "b0", "a0", "a1", "b1", "b2", "a2"));
  for (const Side* s : {&a, &b}) {
    ASSERT_EQ(s->samples.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(s->samples[i].values[0], i);
  }
}

TEST(Pairs, AFailureEndsThemAndStaysWithItsSide) {
  Side a = side("a");
  Side b = side("b");
  int runs = 0;
  jackdaw::run_pairs(0, 5, {&a, &b}, [&runs](const Side& s, int pair) {
    ++runs;
    if (pair == 1 && *s.key == 'b') throw Failure(1, "exit status 3");
    return Sample{};
  });
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(a.failure, "");
  EXPECT_EQ(b.failure, "exit status 3");
}

// --- others --------------------------------------------------------------------------------------

void compute(double seconds) {
  const std::clock_t end =
      std::clock() + static_cast<std::clock_t>(seconds * static_cast<double>(CLOCKS_PER_SEC));
  while (std::clock() < end) {
  }
}

TEST(Others, AreNotThisProcessNorThoseItWaitedFor) {
  const double before = jackdaw::Others::own();
  compute(0.1);
  const double after = jackdaw::Others::own();
  EXPECT_GE(after - before, 0.09);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    compute(0.1);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_GE(jackdaw::Others::own() - after, 0.09);
}

TEST(Others, HaveWhatIsUsedWithoutThisProcess) {
  EXPECT_DOUBLE_EQ(jackdaw::Others::share_of(8, 3, 1), 0.25);
  EXPECT_DOUBLE_EQ(jackdaw::Others::share_of(8, 1, 1.01), 0);
}

}  // namespace

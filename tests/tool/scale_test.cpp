// `jackdaw bench scale`: its parts run, small and untimed; rounds are added; the page and the goals
// are made of what was measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "reports/scale/results.hpp"
#include "run_tool.hpp"

namespace {

using jackdaw::RunFigures;
using jackdaw::ScaleResults;
using jackdaw::ScaleRow;
using jackdaw::Server;
using nlohmann::json;
using testing::HasSubstr;

Result run_scale(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench",         "scale",  "--quick",      "--library",
                                        JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_jackdaw(arguments);
}

TEST(Scale, APartIsPrintedAndDoesNotReplaceThePageOfAll) {
  const Result part = run_scale({"stopping"});
  ASSERT_TRUE(part.exited_with(0)) << describe(part);
  EXPECT_THAT(part.out, HasSubstr("## Time to stop"));
  EXPECT_THAT(part.out, testing::Not(HasSubstr("written:")));
}

std::size_t rounds_of(const json& row) {
  std::size_t rounds = row.at("cells").front().at("runs").size();
  for (const json& cell : row.at("cells")) EXPECT_EQ(cell.at("runs").size(), rounds) << cell;
  return rounds;
}

TEST(Scale, WorkloadsRunOnEveryServerAndRoundsAreAdded) {
  const Scratch scratch;
  const std::string file = scratch.path("scale.json");
  const std::string page = scratch.path("page.md");
  const std::vector<std::string> files = {"--json", file, "--markdown", page, "--add"};
  std::vector<std::string> list = {"list"};
  list.insert(list.end(), files.begin(), files.end());
  const Result first = run_scale(list);
  ASSERT_TRUE(first.exited_with(0)) << describe(first);
  std::vector<std::string> more = {"list",    "message",     "large",
                                   "gcbench", "gcbench-big", "list-many"};
  more.insert(more.end(), files.begin(), files.end());
  const Result second = run_scale(more);
  ASSERT_TRUE(second.exited_with(0)) << describe(second);

  const json results = json::parse(read_file(file));
  EXPECT_EQ(results.at("report"), "scale");
  EXPECT_TRUE(results.at("quick"));
  ASSERT_EQ(results.at("rows").size(), 6U);
  EXPECT_EQ(results["rows"][0]["name"], "list");
  EXPECT_EQ(rounds_of(results["rows"][0]), 2U);
  EXPECT_EQ(rounds_of(results["rows"][1]), 1U);
  for (const json& cell : results["rows"][0]["cells"]) {
    const json& run = cell.at("runs").front();
    EXPECT_GT(run.at("seconds"), 0) << cell;
    EXPECT_GT(run.at("peak_bytes"), 0) << cell;
    EXPECT_GT(run.at("named").at("processors"), 0) << cell;
    // 4 lists of 5,000 cells for each client.
    EXPECT_EQ(run.at("named").at("made_objects"), 20000 * cell.at("clients").get<int>()) << cell;
  }
  const std::string text = read_file(page);
  for (const char* part :
       {"### list", "### message", "This machine has", "| glibc |", "## Goals"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

// Regression: nothing was kept.
TEST(Scale, LeavesWhatItHasWhenItIsInterrupted) {
  const Scratch scratch;
  const std::string file = scratch.path("scale.json");
  const pid_t child = fork();
  if (child == 0) {
    execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "bench", "scale", "--quick", "--runs", "3", "--library",
          JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY, "--json", file.c_str(), nullptr);
    _exit(96);
  }
  int status = 0;
  while (!std::filesystem::exists(file)) {
    ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "it ended before it was interrupted";
    usleep(1000);
  }
  kill(child, SIGINT);
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << "wait status " << status;
  const json results = json::parse(read_file(file));
  ASSERT_GE(results.at("rows").size(), 1U);
  EXPECT_LT(results.at("rows").size(), 10U) << "it was kept only at the end";
  EXPECT_EQ(rounds_of(results["rows"][0]), 3U);
}

TEST(Scale, MarkingMemoryAndStoppingRun) {
  const Scratch scratch;
  const std::string file = scratch.path("scale.json");
  const Result r = run_scale(
      {"marking", "memory", "stopping", "--json", file, "--markdown", scratch.path("page.md")});
  ASSERT_TRUE(r.exited_with(0)) << describe(r);
  const json results = json::parse(read_file(file));
  ASSERT_EQ(results.at("rows").size(), 10U);
  for (const json& row : results["rows"]) {
    const char* figure = row.at("part") == "marking"  ? "marking, per object"
                         : row.at("part") == "memory" ? "independent miss"
                                                      : "stop, median";
    for (const json& cell : row.at("cells")) {
      EXPECT_GT(cell.at("runs").front().at("named").at(figure), 0) << row;
    }
  }
}

TEST(Scale, TheModelCountsWhatThreadsShare) {
  const Scratch scratch;
  const std::string file = scratch.path("scale.json");
  const Result r = run_scale({"model", "--json", file, "--markdown", scratch.path("page.md")});
  ASSERT_TRUE(r.exited_with(0)) << describe(r);
  const json results = json::parse(read_file(file));
#if !defined(JD_TEST_COUNTING)
  EXPECT_TRUE(results.at("rows").empty());
  EXPECT_THAT(r.out, HasSubstr("the counting library was not built"));
  GTEST_SKIP() << "this build makes no library that counts";
#endif
  ASSERT_FALSE(results.at("rows").empty()) << describe(r);
  for (const json& row : results["rows"]) {
    for (const json& cell : row.at("cells")) {
      const json& named = cell.at("runs").front().at("named");
      // Each client takes its first blocks under the lock, and registers.
      EXPECT_GE(named.at("lock_acquisitions"), cell.at("clients")) << row;
      EXPECT_GE(named.at("counted_threads"), cell.at("clients")) << row;
      EXPECT_LE(named.at("most_sharing"), named.at("lock_acquisitions").get<double>() +
                                              named.at("shared_atomics").get<double>());
    }
  }
}

TEST(Scale, RefusesWhatItCannotDo) {
  const Result part = run_scale({"lists"});
  EXPECT_TRUE(part.exited_with(2)) << describe(part);
  EXPECT_THAT(part.err, HasSubstr("no part 'lists'"));
  const Result add = run_scale({"list", "--add"});
  EXPECT_TRUE(add.exited_with(2)) << describe(add);
  const Result other = run_jackdaw({"bench", "startup", "--add"});
  EXPECT_TRUE(other.exited_with(2)) << describe(other);
  const Result list = run_jackdaw({"bench", "--list"});
  EXPECT_THAT(list.out, HasSubstr("\nscale "));
  const Scratch scratch;
  write_file(scratch.path("other.json"), "{\"format\": 1}");
  const Result wrong = run_scale({"stopping", "--add", "--json", scratch.path("other.json"),
                                  "--markdown", scratch.path("page.md")});
  EXPECT_TRUE(wrong.exited_with(2)) << describe(wrong);
  EXPECT_EQ(read_file(scratch.path("other.json")), "{\"format\": 1}");
}

// --- what is made of the figures -----------------------------------------------------------------

RunFigures taking(double seconds) {
  RunFigures f;
  f.seconds = seconds;
  return f;
}

ScaleRow list_row(double one, double two) {
  ScaleRow row;
  row.part = row.row.name = "list";
  for (const unsigned clients : {1U, 2U}) {
    row.cells.push_back({Server::Ours, clients, 2, {}});
    row.row.runs.push_back({taking(clients == 1 ? one : two)});
  }
  return row;
}

ScaleResults results_with(const ScaleRow& row) {
  ScaleResults results;
  results.machine.cpus = 2;
  results.rows = {row};
  return results;
}

const jackdaw::Goal& first_goal(const std::vector<jackdaw::Goal>& goals) { return goals.front(); }

TEST(ScaleGoals, AreReachedByTheMedian) {
  EXPECT_TRUE(first_goal(goals_of(results_with(list_row(1, 1.04)))).reached);
  EXPECT_FALSE(first_goal(goals_of(results_with(list_row(1, 1.06)))).reached);
  // Not measured is not reached.
  ScaleRow failed = list_row(1, 1);
  failed.row.failure = "ours: exit status 1";
  EXPECT_FALSE(first_goal(goals_of(results_with(failed))).reached);
  EXPECT_THAT(scale_page(results_with(failed), {}), HasSubstr("FAILED: ours: exit status 1"));
}

TEST(ScaleRounds, OfAFileComeFirstAndKeepTheirPlaces) {
  ScaleResults now = results_with(list_row(1, 2));
  add_rounds(to_json(results_with(list_row(10, 30))), &now);
  ASSERT_EQ(now.rows.size(), 1U);
  EXPECT_EQ(now.rows[0].row.runs[0][0].seconds, 10);
  EXPECT_EQ(now.rows[0].row.runs[0][1].seconds, 1);
  EXPECT_EQ(now.rows[0].row.runs[1][0].seconds, 30);
  // 3 and 2.
  EXPECT_THAT(first_goal(goals_of(now)).measured, HasSubstr("2.50"));

  // A failure now takes none of the rounds before.
  ScaleRow failing = list_row(1, 2);
  failing.row.failure = "ours: exit status 1";
  failing.row.runs.clear();
  ScaleResults failed = results_with(failing);
  add_rounds(to_json(now), &failed);
  EXPECT_TRUE(failed.rows[0].row.failure.empty());
  EXPECT_EQ(failed.rows[0].row.runs[0].size(), 2U);
  EXPECT_THAT(failed.notes, testing::ElementsAre(HasSubstr("ours: exit status 1")));

  ScaleResults elsewhere = results_with(list_row(1, 2));
  elsewhere.machine.cpus = 4;
  EXPECT_THROW(add_rounds(to_json(results_with(list_row(1, 2))), &elsewhere), jackdaw::Failure);
  EXPECT_THROW(add_rounds(json::parse("{\"report\": \"scale\", \"format\": 2}"), &now),
               jackdaw::Failure);
}

ScaleRow row_with_mimalloc(double ours, double others) {
  ScaleRow row = list_row(ours, 2 * ours);
  row.cells.push_back({Server::Mimalloc, 1, 0, {}});
  row.row.runs.push_back({taking(others)});
  return row;
}

// Regression: where mimalloc had come, nothing was written; where it had gone, its rounds were
// gone.
TEST(ScaleRounds, OfAPeerThatComesOrGoesStay) {
  const std::string note = jackdaw::not_run("mimalloc", "this system has none");
  ScaleResults come = results_with(row_with_mimalloc(1, 5));
  ScaleResults without = results_with(list_row(10, 20));
  without.notes = {note};
  add_rounds(to_json(without), &come);
  ScaleResults gone = without;
  add_rounds(to_json(results_with(row_with_mimalloc(1, 5))), &gone);
  for (const ScaleResults* sum : {&come, &gone}) {
    EXPECT_THAT(sum->notes, testing::IsEmpty());
    ASSERT_EQ(sum->rows.size(), 1U);
    const ScaleRow& row = sum->rows[0];
    const auto mimalloc = row.find(Server::Mimalloc, 1, 0);
    ASSERT_TRUE(mimalloc);
    // It keeps the round in which it ran.
    const std::size_t ran = sum == &come ? 1 : 0;
    ASSERT_EQ(row.row.runs[*mimalloc].size(), 2U);
    EXPECT_EQ(row.row.runs[*mimalloc][ran].seconds, 5);
    EXPECT_TRUE(row.row.runs[*mimalloc][1 - ran].absent);
    EXPECT_EQ(row.row.runs[0].size(), 2U);
  }
  // Whether a file can be added to is tried before the runs.
  ScaleRow not_yet = row_with_mimalloc(1, 5);
  not_yet.row.runs.clear();
  ScaleResults trial = results_with(not_yet);
  add_rounds(to_json(results_with(list_row(10, 20))), &trial);
  EXPECT_EQ(trial.rows[0].row.runs[0].size(), 1U);
}

}  // namespace

// `jackdaw run --compare`, `jackdaw bench` and `jackdaw options`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/options.hpp"
#include "program/loader.hpp"
#include "run_tool.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> comparing() {
  return {"--compare", "--runs", "2", "--system-library", JD_TEST_LIBRARY};
}

TEST(Compare, ShowsBothSidesAndEqualOutputs) {
  const Scratch scratch;
  std::vector<std::string> options = comparing();
  options.insert(options.end(), {"--stats-json", scratch.path("compare.json")});
  const Result r = run_client(options, {"allocate", "20000", "1000"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("outputs are the same"));
  for (const char* row : {"time", "resident, largest", "collections", "longest pause", "ratio"}) {
    EXPECT_THAT(r.out, HasSubstr(row));
  }
  const json figures = json::parse(read_file(scratch.path("compare.json")), nullptr, false);
  ASSERT_FALSE(figures.is_discarded());
  EXPECT_EQ(figures["pairs"], 2);
  EXPECT_EQ(figures["ours_runs"].size(), 2U);
  EXPECT_EQ(figures["system_runs"].size(), 2U);
  EXPECT_EQ(figures["figures"]["wall_s"]["ratio"]["count"], 2);
  EXPECT_GE(figures["figures"]["allocated_bytes"]["ours"]["median"], 20e6);
  EXPECT_EQ(figures["same_output_and_end"], true);
}

TEST(Compare, TakesTheSystemsLibraryByDefault) {
  const auto system = jackdaw::find_system_library("libgc.so.1", {JD_TEST_LIBRARY});
  if (!system) GTEST_SKIP() << "this system has no libgc.so.1 but the one under test";
  const Scratch scratch;
  const std::string file = scratch.path("compare.json");
  const Result r =
      run_client({"--compare", "--runs", "1", "--stats-json", file}, {"allocate", "20000", "1000"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  const json figures = json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(figures.is_discarded());
  EXPECT_EQ(figures["ours_runs"][0]["library"], JD_TEST_LIBRARY);
  EXPECT_EQ(figures["system_runs"][0]["library"], system->string());
  // Two collectors, one meaning of the figures: the same requests, give or take the rounding.
  EXPECT_NEAR(figures["figures"]["allocated_bytes"]["ratio"]["median"], 1, 0.2);
}

TEST(Compare, TellsDifferentOutputs) {
  const Result r = run_client(comparing(), {"pid"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("DIFFERENT OUTPUTS"));
  EXPECT_THAT(r.out, HasSubstr("from run to run on one library"));
}

TEST(Compare, PassesAnEqualExitStatus) {
  const Result r = run_client(comparing(), {"exit", "5"});
  EXPECT_TRUE(r.exited_with(5)) << describe(r);
}

// A drift of the machine's speed is to fall on both alike. The program writes down whose turn it
// is.
TEST(Compare, BeginsEverySecondPairWithTheOther) {
  const Scratch scratch;
  write_file(scratch.path("program"), "#!/bin/sh\necho \"$LD_PRELOAD\" >> \"$1\"\n", true);
  std::filesystem::copy_file(JD_TEST_LIBRARY, scratch.path("libgc.so.1"));
  const Result r = run_jackdaw({"run", "--compare", "--force", "--runs", "3", "--library",
                                JD_TEST_LIBRARY, "--system-library", scratch.path("libgc.so.1"),
                                "--", scratch.path("program"), scratch.path("turns")});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  std::istringstream lines(read_file(scratch.path("turns")));
  std::string turns;
  for (std::string line; std::getline(lines, line);) {
    turns += line.find(scratch.path("libgc.so.1")) == std::string::npos ? 'o' : 's';
  }
  EXPECT_EQ(turns, "ossoosso") << "ours, the system's, with the warm-up";
}

TEST(Compare, ShowsWhatTheProgramSaysOnStandardError) {
  const Result r = run_client(comparing(), {"complain"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("a complaint"));
}

// Regression: it was kept back just where one wants it.
TEST(Compare, ShowsItAlsoWhereOutputsDiffer) {
  const Result r = run_client(comparing(), {"pid", "and complain"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("DIFFERENT OUTPUTS"));
  EXPECT_THAT(r.out, HasSubstr("its stderr, on both:\na complaint"));
  EXPECT_THAT(r.out, HasSubstr("its stderr on ours (run 2):\na complaint"));
}

TEST(Compare, LeavesNoFileWhenItIsInterrupted) {
  const Scratch scratch;
  namespace fs = std::filesystem;
  fs::create_directories(scratch.path("tmp"));
  const Result r =
      run_program({"/usr/bin/env", "TMPDIR=" + scratch.path("tmp"), JD_TEST_COMMAND, "run",
                   "--compare", "--library", JD_TEST_LIBRARY, "--system-library", JD_TEST_LIBRARY,
                   "--", JD_TEST_CLIENT, "interrupt"});
  EXPECT_TRUE(r.killed_by(SIGTERM)) << describe(r);
  EXPECT_TRUE(fs::is_empty(scratch.path("tmp")));
}

TEST(Compare, EndsByAnAlarmThatWasSetBefore) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(1);
    execl(JD_TEST_COMMAND, JD_TEST_COMMAND, "run", "--compare", "--library", JD_TEST_LIBRARY,
          "--system-library", JD_TEST_LIBRARY, "--", JD_TEST_CLIENT, "sleep", "5", nullptr);
    _exit(96);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << "wait status " << status;
}

TEST(Compare, GivesEveryRunTheSamePipedInput) {
  const Result r = run_client(comparing(), {"count"}, std::string(300000, 'x'));
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("(7 bytes)")) << "each of them printed 300000 and a newline";
}

TEST(Bench, ListsItsBenchmarks) {
  const Result r = run_jackdaw({"bench", "--list"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  for (const char* name : {"gcbench",
                           "gcbench-big",
                           "gcbench-descriptors",
                           "gcbench-big-descriptors",
                           "holes",
                           "syntax",
                           "mark-random-2m-32",
                           "mark-random-8m-32",
                           "mark-random-2m-48",
                           "mark-random-8m-64",
                           "mark-tree",
                           "mark-tree-shuffled",
                           "mark-tree-typed",
                           "mark-list",
                           "mark-list-shuffled",
                           "mark-table",
                           "mark-array",
                           "alloc-16",
                           "alloc-256",
                           "alloc-atomic-16",
                           "alloc-atomic-256",
                           "fill-16",
                           "fill-256",
                           "fill-mimalloc-16",
                           "fill-mimalloc-256",
                           "large",
                           "large-36000",
                           "finalizers",
                           "pause-registered-both",
                           "pause-500m",
                           "steps-finalizable",
                           "startup",
                           "limit"}) {
    EXPECT_THAT(r.out, HasSubstr(std::string(name) + " "));
  }
}

TEST(Bench, ListsAReport) {
  const Result r = run_jackdaw({"bench", "--list", "scale"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, testing::StartsWith("scale "));
  EXPECT_THAT(r.out, HasSubstr(" stopping"));
  EXPECT_THAT(r.out, testing::Not(HasSubstr("work-stealing")));
}

TEST(Bench, NamesAnUnknownBenchmark) {
  const Result r = run_jackdaw({"bench", "gcbanch"});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("'gcbanch'"));
}

TEST(Bench, AReportRunsByItself) {
  const Result r = run_jackdaw({"bench", "startup", "scale"});
  EXPECT_TRUE(r.exited_with(2)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("the report scale runs by itself: jackdaw bench scale"));
}

// Every benchmark runs, checks its own data, and reports; small, and untimed.
TEST(Bench, AllRunQuickly) {
  const Scratch scratch;
  const std::string file = scratch.path("bench.json");
  const Result r =
      run_jackdaw({"bench", "--quick", "--library", JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY,
                   "--json", file, "--markdown", scratch.path("bench.md")});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(read_file(scratch.path("bench.md")), HasSubstr("| startup |"));
  const json results = json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(results.is_discarded()) << read_file(file);
  EXPECT_EQ(results["format"], 1);
  EXPECT_GE(results["machine"]["cpus"], 1);
  EXPECT_GE(results["benchmarks"].size(), 37U);
  for (const json& b : results["benchmarks"]) {
    SCOPED_TRACE(b["name"]);
    if (b.contains("left_out")) {
      // Only what needs more than a libgc may be.
      EXPECT_TRUE(b.contains("rival")) << b;
      continue;
    }
    ASSERT_TRUE(b.contains("figures")) << b;
    EXPECT_GE(b["figures"].size(), 2U);
    for (const json& figure : b["figures"]) {
      EXPECT_EQ(figure["ours"]["samples"].size(), 1U) << figure;
      EXPECT_GE(figure["ours"]["median"], 0) << figure;
    }
    EXPECT_EQ(b["figures"].back()["name"], "peak memory");
    EXPECT_GE(b["figures"].back()["peer"]["median"], 500000);
  }
}

TEST(Bench, ReportsABenchmarkThatFails) {
  // Too little memory for it: the library's out-of-memory path ends it.
  const Result r =
      run_program({"/usr/bin/env", "GC_MAXIMUM_HEAP_SIZE=1M", JD_TEST_COMMAND, "bench", "--runs",
                   "1", "--library", JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY, "gcbench"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("FAILED"));
  EXPECT_THAT(r.out, HasSubstr("1 of 1 benchmarks failed"));
}

TEST(Bench, SetsVariablesForOursAlone) {
  const Result r = run_jackdaw({"bench", "--runs", "1", "--library", JD_TEST_LIBRARY, "--peer",
                                JD_TEST_LIBRARY, "--set", "GC_MAXIMUM_HEAP_SIZE=1M", "gcbench"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr(", with GC_MAXIMUM_HEAP_SIZE=1M"));
  EXPECT_THAT(r.out, HasSubstr("FAILED on ours"));
  EXPECT_THAT(r.out, testing::Not(HasSubstr("FAILED on peer")));
  const Result wrong = run_jackdaw({"bench", "--set", "=1", "gcbench"});
  EXPECT_TRUE(wrong.exited_with(2)) << describe(wrong);
  EXPECT_THAT(wrong.err, HasSubstr("--set wants NAME=VALUE, not '=1'"));
  const Result report = run_jackdaw({"bench", "--set", "A=1", "scale"});
  EXPECT_TRUE(report.exited_with(2)) << describe(report);
  EXPECT_THAT(report.err, HasSubstr("--set is for benchmarks"));
}

// Regression: the line of JSON could not be read.
TEST(Bench, TakesALibraryWhosePathHasQuotes) {
  const Scratch scratch;
  const std::string folder = scratch.path("a\"b\\c");
  std::filesystem::create_directory(folder);
  const std::string library = folder + "/libgc.so.1";
  std::filesystem::copy_file(JD_TEST_LIBRARY, library);
  const Result r =
      run_jackdaw({"bench", "--quick", "--library", library, "--peer", JD_TEST_LIBRARY, "startup"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("1000 allocations"));
}

// Regression: all was run, and then nothing was kept.
TEST(Bench, ReportsAskFirstWhetherTheirPageCanBeWritten) {
  // A checkout of its own, in which folders have the pages' places.
  const Scratch scratch;
  namespace fs = std::filesystem;
  fs::create_directories(scratch.path("build/release/bin"));
  fs::copy_file(JD_TEST_COMMAND, scratch.path("build/release/bin/jackdaw"));
  for (const std::string report : {"cache-misses", "mostly-copying", "scale", "work-stealing"}) {
    const std::string page = scratch.path("docs/results/" + report + ".md");
    fs::create_directories(page);
    const Result r = run_program({scratch.path("build/release/bin/jackdaw"), "bench", report,
                                  "--library", JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY});
    EXPECT_TRUE(r.exited_with(125)) << describe(r);
    EXPECT_THAT(r.err, HasSubstr("cannot write " + page));
  }
}

TEST(Bench, KillsABenchmarkOverItsLimit) {
  // An installation of its own, whose benchmark has no end.
  const Scratch scratch;
  namespace fs = std::filesystem;
  fs::create_directories(scratch.path("bin"));
  fs::create_directories(scratch.path("lib/jackdaw/bench"));
  fs::copy_file(JD_TEST_COMMAND, scratch.path("bin/jackdaw"));
  write_file(scratch.path("lib/jackdaw/bench/gcbench"), "#!/bin/sh\nexec sleep 1000\n", true);
  const Result r =
      run_program({scratch.path("bin/jackdaw"), "bench", "--runs", "1", "--limit", "1", "--library",
                   JD_TEST_LIBRARY, "--peer", JD_TEST_LIBRARY, "gcbench"});
  EXPECT_TRUE(r.exited_with(1)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("over its time limit"));
}

TEST(Options, ListEveryVariable) {
  const Result text = run_jackdaw({"options"});
  const Result markdown = run_jackdaw({"options", "--markdown"});
  const Result man = run_jackdaw({"options", "--man"});
  for (const Result& r : {text, markdown, man}) EXPECT_TRUE(r.exited_with(0)) << describe(r);
  for (const jd::base::OptionInfo& option : jd::base::kOptions) {
    for (const Result& r : {text, markdown, man}) EXPECT_THAT(r.out, HasSubstr(option.name));
  }
}

// The pages in docs/ are made by the command; this fails when they were not made anew.
TEST(Options, DocumentsAreUpToDate) {
  const std::string page = read_file(JD_TEST_DOCS "/guide/options.md");
  EXPECT_EQ(page, run_jackdaw({"options", "--markdown"}).out) << "run: tools/jackdaw/update-docs";
  EXPECT_THAT(read_file(JD_TEST_DOCS "/man/jackdaw.1"),
              HasSubstr(run_jackdaw({"options", "--man"}).out))
      << "run: tools/jackdaw/update-docs";
}

}  // namespace

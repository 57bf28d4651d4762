// `jackdaw run --stats`: the figures against programs whose allocation is known
// (cycle.req.measured).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

// Runs the client with --stats-json and returns the figures.
json measure(const std::vector<std::string>& arguments, Result* result = nullptr) {
  const Scratch scratch;
  const std::string file = scratch.path("stats.json");
  const Result r = run_client({"--stats", "--stats-json", file}, arguments);
  if (result != nullptr) *result = r;
  json figures = json::parse(read_file(file), nullptr, false);
  EXPECT_FALSE(figures.is_discarded()) << "not JSON: " << read_file(file) << describe(r);
  return figures;
}

TEST(Stats, CountsTheBytesAllocated) {
  // 100000 objects of 1000 bytes; the collector rounds a request up to its size class.
  const json figures = measure({"allocate", "100000", "1000"});
  const double bytes = figures["allocated_bytes"];
  EXPECT_GE(bytes, 100e6);
  EXPECT_LE(bytes, 130e6);
}

TEST(Stats, FiguresAgreeWithEachOther) {
  Result r;
  const json figures = measure({"allocate", "200000", "1000"}, &r);
  EXPECT_GE(figures["collections"], 2);
  EXPECT_EQ(figures["collections"], figures["collections_timed"]);
  EXPECT_GT(figures["collections_s"], 0);
  EXPECT_LT(figures["collections_s"], figures["wall_s"]);
  EXPECT_NEAR(figures["collector_share"],
              double{figures["collections_s"]} / double{figures["wall_s"]}, 1e-9);
  EXPECT_GE(figures["pauses"], figures["collections"]);
  EXPECT_LE(figures["pauses_longest_s"], figures["pauses_s"]);
  EXPECT_LE(figures["collections_longest_s"], figures["collections_s"]);
  // None is longer than the longest, nor a collection's pauses than the collection.
  for (const char* what : {"collections", "pauses"}) {
    const std::string name = what;
    EXPECT_GE(double{figures[name + "_longest_s"]} * double{figures[name]} * 1.000001,
              double{figures[name + "_s"]});
  }
  EXPECT_LE(figures["pauses_s"], figures["collections_s"]);
  // 100 objects of 1000 bytes are live, so the heap stays small; all of it was touched.
  EXPECT_GE(figures["heap_peak_bytes"], 100000);
  EXPECT_LE(figures["heap_peak_bytes"], 50 << 20);
  EXPECT_GE(figures["resident_peak_bytes"], 500000);
  EXPECT_LE(figures["resident_peak_bytes"], 100 << 20);
  EXPECT_TRUE(figures["notes"].empty()) << figures["notes"];
  EXPECT_EQ(figures["exit_status"], 0);
  EXPECT_TRUE(std::filesystem::equivalent(std::string(figures["library"]), JD_TEST_LIBRARY));
  for (const char* line : {"collections", "longest pause", "allocated", "heap, largest",
                           "resident, largest", "% of the time"}) {
    EXPECT_THAT(r.err, HasSubstr(line));
  }
}

TEST(Stats, AddNoLineToTheProgramsOwn) {
  const Scratch scratch;
  const Result r =
      run_client({"--stats-json", scratch.path("stats.json")}, {"allocate", "10", "16"});
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_EQ(r.err, "") << describe(r);
}

TEST(Stats, SeesALargerHeapThatIsGoneAtTheEnd) {
  const json small = measure({"allocate", "100", "1000"});
  const json large = measure({"allocate", "100", "1000000"});
  EXPECT_GE(double{large["heap_peak_bytes"]}, 50e6);
  EXPECT_GT(large["heap_peak_bytes"], small["heap_peak_bytes"]);
}

TEST(Stats, SurviveExitWithoutDestructors) {
  const json figures = measure({"quit", "9"});
  EXPECT_EQ(figures["exit_status"], 9);
  EXPECT_GE(double{figures["allocated_bytes"]}, 10e6);
  EXPECT_TRUE(figures["notes"].empty()) << figures["notes"];
}

TEST(Stats, SurviveASignalAndSaySo) {
  Result r;
  const json figures = measure({"die", "9"}, &r);
  EXPECT_TRUE(r.killed_by(9)) << describe(r);
  EXPECT_GE(figures["collections"], 1);
  EXPECT_GT(double{figures["allocated_bytes"]}, 1e6);
  EXPECT_FALSE(figures["notes"].empty());
  EXPECT_THAT(r.err, HasSubstr("SIGKILL"));
}

TEST(Stats, LeaveForkedChildrenOut) {
  // The child allocates 100 MB, the parent 1 MB.
  const json figures = measure({"fork"});
  EXPECT_EQ(figures["exit_status"], 0);
  EXPECT_LE(double{figures["allocated_bytes"]}, 5e6);
}

TEST(Stats, BeginAnewWhenTheProcessExecutesAnotherProgram) {
  const json figures = measure({"exec", JD_TEST_CLIENT, "allocate", "100", "1000"});
  EXPECT_EQ(figures["exit_status"], 0);
  EXPECT_LE(double{figures["allocated_bytes"]}, 5e6);
  EXPECT_THAT(figures["notes"].dump(), HasSubstr("executed another program"));
}

TEST(Stats, CallTheProgramsOwnCallbacks) {
  Result r;
  const json figures = measure({"callbacks"}, &r);
  EXPECT_EQ(r.out, "callbacks: called\n") << describe(r);
  EXPECT_EQ(figures["collections"], figures["collections_timed"]);
  EXPECT_TRUE(figures["notes"].empty()) << figures["notes"];
}

TEST(Stats, AreZeroAndMeasuredForAnIdleProgram) {
  const json figures = measure({"idle"});
  EXPECT_EQ(figures["collections"], 0);
  EXPECT_EQ(figures["allocated_bytes"], 0);
  EXPECT_EQ(figures["pauses"], 0);
}

TEST(Stats, AnUnwritableFileIsAnError) {
  const Result r = run_client({"--stats-json", "/nonexistent/stats.json"}, {"exit", "0"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("/nonexistent/stats.json"));
}

// Regression: the command was ended by the signal, before the program began and without a word.
TEST(Stats, WhereNoFileMayBeWrittenThatIsSaid) {
#if defined(JD_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer writes a file before the command begins, and is ended";
#endif
  const Result r =
      run_program({"/bin/sh", "-c", "ulimit -f 0; exec \"$@\"", "sh", JD_TEST_COMMAND, "run",
                   "--stats", "--library", JD_TEST_LIBRARY, "--", JD_TEST_CLIENT, "exit", "0"});
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("the record of the measurement"));
}

}  // namespace

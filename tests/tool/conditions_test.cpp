// The command in a process that is not as usual: with files closed, signals ignored, small limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace {

using testing::HasSubstr;

const std::string command =
    std::string(JD_TEST_COMMAND) + " run --library " + JD_TEST_LIBRARY + " ";
const std::string client = std::string(JD_TEST_CLIENT) + " ";

Result run_shell(const std::string& line, const std::string& input = "") {
  return run_program({"/bin/sh", "-c", line}, input);
}

std::string compare(const std::string& program) {
  return command + "--system-library " + JD_TEST_LIBRARY + " --compare --runs 1 -- " + program;
}

// Of a shell: opens the file 9, a pipe whose reader has gone.
std::string without_reader(const Scratch& scratch) {
  const std::string pipe = scratch.path("pipe");
  return "mkfifo " + pipe + "; exec 7<>" + pipe + " 9>" + pipe + " 7<&-; ";
}

// What it says itself must not get into the program's files.
TEST(Closed, StandardErrorIsNotTheProgramsInput) {
  const Result r = run_shell(compare(client + "count") + " 2>&-", "abc");
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.out, HasSubstr("The outputs are the same (2 bytes)"));
}

TEST(Closed, StandardInputIsAnEmptyOne) {
  const Result r = run_shell(compare(client + "count") + " <&-");
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
  EXPECT_THAT(r.err, Not(HasSubstr("terminal")));
}

TEST(Closed, NothingIsLostWhereProgressCannotBeShown) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  for (const char* redirection : {" 2>/dev/full", " 2>&-"}) {
    const Result r = run_shell(compare(client + "idle") + redirection);
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    EXPECT_THAT(r.out, HasSubstr("The outputs are the same"));
  }
}

TEST(Closed, WhatIsClosedIsClosedForTheProgram) {
  for (const char* options : {"--force -- ", "--force --stats -- "}) {
    const Result r =
        run_shell(command + options + "/bin/sh -c 'echo x >&7; ls /proc/self/fd >&9' " +
                  "7>/dev/null 9>&1 <&- 2>&-");
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    // ls has its folder open under the lowest number that is free.
    EXPECT_THAT(r.out, testing::StartsWith("0\n1\n")) << options;
    EXPECT_THAT(r.out, Not(HasSubstr("\n2\n"))) << options;
  }
}

TEST(Closed, TheStatusTellsWhatNobodyCanBeTold) {
  EXPECT_TRUE(run_shell(command + "-- /nonexistent 2>&-").exited_with(127));
  EXPECT_TRUE(run_shell(command + "-- /etc/passwd 2>&-").exited_with(126));
}

// SIGPIPE ends the series, as it ends any command in a pipe, and is not passed on to a run's
// program.
TEST(Closed, AReaderThatHasGoneEndsTheSeriesAndNoProgram) {
  const Scratch scratch;
  const Result r = run_shell(without_reader(scratch) + compare(client + "idle") + " 2>&9; echo $?");
  struct sigaction ours {};
  ASSERT_EQ(sigaction(SIGPIPE, nullptr, &ours), 0);
  if (ours.sa_handler == SIG_IGN) {  // then so it is for the command
    EXPECT_THAT(r.out, testing::EndsWith("\n0\n")) << describe(r);
  } else {
    EXPECT_EQ(r.out, std::to_string(128 + SIGPIPE) + "\n") << describe(r);
  }
}

// Whoever reads the figures may have gone; the program ended as it did.
TEST(Unwritten, FiguresLeaveTheStatusAsItIs) {
  const Scratch scratch;
  const std::string json = scratch.path("figures");
  const std::string program = command + "--stats-json " + json + " -- " + client;
  Result r = run_shell("ulimit -f 0; " + program + "exit 5");
  // There is no room for the measurement's record either, and the program does not run.
  EXPECT_TRUE(r.exited_with(125)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("the record of the measurement"));
  r = run_shell("ulimit -f 4; " + program + "allocate 10 " + std::string(3000, '1'));
  EXPECT_TRUE(r.exited_with(99)) << describe(r);
  EXPECT_THAT(r.err, HasSubstr("could not be written"));
  EXPECT_FALSE(std::filesystem::exists(json));
  r = run_shell(without_reader(scratch) + command + "--stats-json /dev/fd/9 -- " + client +
                "exit 5; echo $?");
  EXPECT_EQ(r.out, "5\n") << describe(r);
  EXPECT_THAT(r.err, HasSubstr("could not be written"));
}

// As by nohup. What is blocked comes even if it is ignored.
TEST(Ignored, SignalsDoNotEndASeries) {
  const Result r = run_shell("trap '' TERM; " + compare(client + "nudge"));
  EXPECT_TRUE(r.exited_with(0)) << describe(r);
}

TEST(Ignored, ChildrenAreIgnoredByTheProgramAsBefore) {
  for (const bool measured : {false, true}) {
    std::vector<std::string> line = {
        "/usr/bin/env", "--ignore-signal=CHLD", JD_TEST_COMMAND, "run", "--force",
        "--library",    JD_TEST_LIBRARY};
    if (measured) line.emplace_back("--stats");
    for (const char* word : {"--", "/bin/grep", "SigIgn", "/proc/self/status"}) {
      line.emplace_back(word);
    }
    const Result r = run_program(line);
    EXPECT_TRUE(r.exited_with(0)) << describe(r);
    ASSERT_GE(r.out.size(), 17u);
    const unsigned long long ignored = std::stoull(r.out.substr(r.out.find('\t') + 1), nullptr, 16);
    EXPECT_NE(ignored & 1ull << (SIGCHLD - 1), 0u) << r.out;
    struct sigaction ours {};
    ASSERT_EQ(sigaction(SIGXFSZ, nullptr, &ours), 0);
    EXPECT_EQ((ignored & 1ull << (SIGXFSZ - 1)) != 0, ours.sa_handler == SIG_IGN) << r.out;
  }
}

}  // namespace
